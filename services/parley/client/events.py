"""The payload, the kind and the common name of an event.

match event_payload(event):
    case event_pb2.RoundStarted(number=number, total=total):
        print(f"round {number}/{total}")
"""

from google.protobuf.message import Message

from parley.runtime.watching import TextPiece
from parley.v1 import event_pb2
from parley.v1.event_pb2 import Event, PhaseEntered, StepSucceeded
from parley.v1.orchestrator_pb2 import StepDelta


def event_payload(event: event_pb2.Event) -> Message | None:
    """Return the payload of an event, such as a `StepStarted`; None for a kind that this client does not know."""
    kind = event.WhichOneof("payload")
    return None if kind is None else getattr(event, kind)


def event_kind(event: event_pb2.Event) -> str:
    """Return the name of the event's kind, such as `step_started`; empty for a kind that this client does not know."""
    return event.WhichOneof("payload") or ""


def event_name(happened: Event | TextPiece) -> str:
    """Return what other debate systems call an event, or a piece of text, as the contract says it: `agent_message`, `debate_end`, ….

    An event that others have no name for is called as `event_kind` does.
    """
    if isinstance(happened, TextPiece):
        return StepDelta.DESCRIPTOR.GetOptions().Extensions[event_pb2.common_names][0].name
    payload = event_payload(happened)
    if payload is None:
        return ""
    told = payload.DESCRIPTOR.GetOptions().Extensions[event_pb2.common_names]
    return next(
        (each.name for each in told if not each.of or _aspect(payload) in each.of), event_kind(happened)
    )


def _aspect(payload: Message) -> str:
    """Return what tells events of one kind apart that have several names."""
    match payload:
        case StepSucceeded():
            return payload.work.activity
        case PhaseEntered():
            return payload.name
        case _:
            return ""
