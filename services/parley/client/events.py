"""The payload and the kind of an event, and the names that other debate systems use.

match event_payload(event):
    case event_pb2.RoundStarted(number=number, total=total):
        print(f"round {number}/{total}")
"""

from collections.abc import Mapping
from typing import Final

from google.protobuf.message import Message

from parley.client.watching import TextPiece
from parley.v1 import event_pb2
from parley.v1.event_pb2 import Event, StepSucceeded


def event_payload(event: event_pb2.Event) -> Message | None:
    """Return the payload of an event, such as a `StepStarted`; None for a kind that this client does not know."""
    kind = event.WhichOneof("payload")
    return None if kind is None else getattr(event, kind)


def event_kind(event: event_pb2.Event) -> str:
    """Return the name of the event's kind, such as `step_started`; empty for a kind that this client does not know."""
    return event.WhichOneof("payload") or ""


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
    """Return the name of an event, or of a piece of text; empty if other systems have no name for it."""
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
