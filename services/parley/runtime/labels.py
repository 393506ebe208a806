"""What the work in hand is about: its tenant and debate, for logs, traces and the calls that it makes."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

__all__ = ["LABELS", "label_scope", "labels", "set_labels"]

LABELS: Final[Mapping[str, str]] = {"tenant": "parley-tenant", "debate": "parley-debate"}
"""What a call is about, and the metadata key it travels under. For logs and traces; where callers are asked who they are,
it grants nothing."""

_labels: ContextVar[Mapping[str, str]] = ContextVar("parley_labels", default={})  # noqa: B039 (never changed)


def labels() -> Mapping[str, str]:
    """Return the labels of the work in hand."""
    return _labels.get()


def set_labels(found: Mapping[str, str]) -> None:
    """Make these the labels of this task, replacing any that were inherited."""
    _labels.set(found)


@contextmanager
def label_scope(*, tenant: str | None = None, debate: str | None = None) -> Iterator[None]:
    """Put these labels on log lines written and calls made inside."""
    added = {name: value for name, value in (("tenant", tenant), ("debate", debate)) if value is not None}
    token = _labels.set({**_labels.get(), **added})
    try:
        yield
    finally:
        _labels.reset(token)
