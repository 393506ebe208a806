"""The few names by which other debate systems call what happens, for watchers that were written for these.

The log's own kinds say more; its sequence is the one total order, whatever an event is called.
"""

from collections.abc import Mapping
from typing import Final

from parley.client.watching import TextPiece
from parley.v1.event_pb2 import Event, StepSucceeded

__all__ = ["EVENT_NAMES", "event_name"]

EVENT_NAMES: Final = (
    "debate_start",
    "round_start",
    "agent_message",
    "critique",
    "vote",
    "consensus",
    "synthesis",
    "debate_end",
    "token_delta",
)
"""All of them; `token_delta` is text of a step in flight, which is no event and is never recorded."""

_OF_KIND: Final[Mapping[str, str]] = {
    "debate_created": "debate_start",
    "round_started": "round_start",
    "concluded": "debate_end",
}
_OF_ACTIVITY: Final[Mapping[str, str]] = {
    "proposal": "agent_message",
    "refinement": "agent_message",
    "final-refinement": "agent_message",
    "critique": "critique",
    "vote": "vote",
    "synthesis": "synthesis",
    "merge": "synthesis",
}
_CONSENSUS: Final = frozenset({"CONSENSUS_REACHED", "NO_CONSENSUS"})


def event_name(happened: Event | TextPiece) -> str:
    """Return the name of an event, or of a piece of text; empty for one that other systems have no name for."""
    if isinstance(happened, TextPiece):
        return "token_delta"
    kind = happened.WhichOneof("payload") or ""
    if kind == "step_succeeded":
        return _step_name(happened.step_succeeded)
    if kind == "phase_entered" and happened.phase_entered.name in _CONSENSUS:
        return "consensus"
    return _OF_KIND.get(kind, "")


def _step_name(step: StepSucceeded) -> str:
    return _OF_ACTIVITY.get(step.work.activity, "") if step.HasField("reply") else ""
