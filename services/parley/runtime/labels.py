"""The tenant and debate of the current work, for logs, traces and outgoing calls."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Final

LABELS: Final[Mapping[str, str]] = {"tenant": "parley-tenant", "debate": "parley-debate"}
"""The labels of a call, and their metadata keys. They are for logs and traces; if callers must authenticate, they grant
nothing."""

_labels: ContextVar[Mapping[str, str]] = ContextVar("parley_labels", default={})  # noqa: B039 (never changed)


def labels() -> Mapping[str, str]:
    """Return the labels of the current work."""
    return _labels.get()


def set_labels(found: Mapping[str, str]) -> None:
    """Set the labels of this task, in place of inherited ones."""
    _labels.set(found)


@contextmanager
def label_scope(*, tenant: str | None = None, debate: str | None = None) -> Iterator[None]:
    """Add these labels to log lines and calls made inside."""
    added = {name: value for name, value in (("tenant", tenant), ("debate", debate)) if value is not None}
    token = _labels.set({**_labels.get(), **added})
    try:
        yield
    finally:
        _labels.reset(token)
