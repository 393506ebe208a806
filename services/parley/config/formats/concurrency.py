"""How many calls of a phase run at a time: keys that the formats share which propose, criticize and refine."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Final

from pydantic import Field

from parley.v1.debate_pb2 import DebateSpec

__all__ = ["KEY_OF_CONCURRENCY", "ConcurrencyKeys", "set_concurrency"]


@dataclass(frozen=True)
class ConcurrencyKeys:
    """Bounds on calls at a time."""

    max_concurrent_proposals: Annotated[
        int | None, Field(ge=0, le=1024, description="Calls at a time. Default: 0, no limit.")
    ] = None
    max_concurrent_critiques: Annotated[
        int | None, Field(ge=0, le=1024, description="Calls at a time. Default: 0, no limit.")
    ] = None
    max_concurrent_revisions: Annotated[
        int | None, Field(ge=0, le=1024, description="Calls at a time. Default: 0, no limit.")
    ] = None


KEY_OF_CONCURRENCY: Final[Mapping[str, str]] = {
    "spec.concurrency.proposals": "max_concurrent_proposals",
    "spec.concurrency.critiques": "max_concurrent_critiques",
    "spec.concurrency.refinements": "max_concurrent_revisions",
}
"""The keys by the fields that they set."""


def set_concurrency(spec: DebateSpec, keys: ConcurrencyKeys) -> None:
    """Set the bounds that the keys say."""
    for field, key in KEY_OF_CONCURRENCY.items():
        limit = getattr(keys, key)
        if limit:
            spec.concurrency[field.rpartition(".")[2]] = limit
