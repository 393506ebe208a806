"""Summaries of long histories: the entry as it is written, and the message it becomes."""

from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import BeforeValidator, Field, WithJsonSchema
from pydantic_core import PydanticCustomError

from parley.v1 import agent_pb2

__all__ = ["SummarizationEntry", "summaries_message"]

_MAX_THRESHOLD: Final = 10_000_000
_MAX_LENGTH: Final = 1_000_000


def _automatic(given: object) -> object:
    """Return 0 for `auto`. Raises PydanticCustomError for what is neither that nor a number above 0."""
    if given == "auto":
        return 0
    if given is not None and (isinstance(given, str | bool) or given == 0):
        raise PydanticCustomError("characters", "must be auto or a number of characters, at least 1")
    return given


def _schema(maximum: int) -> dict[str, Any]:
    number = {"type": "integer", "minimum": 1, "maximum": maximum}
    return {"anyOf": [{"const": "auto"}, number, {"type": "null"}], "default": None}


@dataclass(frozen=True, slots=True)
class SummarizationEntry:
    """When an agent's own history is summarized before a round."""

    enabled: Annotated[bool | None, Field(description="Whether summaries are made. Default: true.")] = None
    threshold: Annotated[
        int | None,
        BeforeValidator(_automatic),
        WithJsonSchema(_schema(_MAX_THRESHOLD)),
        Field(
            le=_MAX_THRESHOLD,
            ge=0,
            description="`auto`: only what does not fit the model's context is summarized, oldest first. A number: an agent's "
            "own line of work is, once it has so many characters. Default: `auto`.",
        ),
    ] = None
    max_length: Annotated[
        int | None,
        BeforeValidator(_automatic),
        WithJsonSchema(_schema(_MAX_LENGTH)),
        Field(
            le=_MAX_LENGTH,
            ge=0,
            description="Characters of a summary at most. `auto`: 2500, and where the threshold is `auto` too a share of a "
            "large context. Default: `auto`.",
        ),
    ] = None
    method: Annotated[Literal["length-based"] | None, Field(description="How it is decided.")] = None


def summaries_message(entry: SummarizationEntry) -> agent_pb2.SummarySettings:
    """Return the settings of summaries; what is not said stays unset."""
    return agent_pb2.SummarySettings(
        enabled=entry.enabled,
        threshold=entry.threshold or 0,
        max_length=entry.max_length or 0,
    )
