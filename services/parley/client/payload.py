"""What an event of a debate's log says, and the name of its kind.

match event_payload(event):
    case event_pb2.RoundStarted(number=number, total=total):
        print(f"round {number}/{total}")
"""

from google.protobuf.message import Message

from parley.v1 import event_pb2

__all__ = ["event_kind", "event_payload"]


def event_payload(event: event_pb2.Event) -> Message | None:
    """Return what the event says, such as a `StepStarted`; None for a kind that this client does not know."""
    kind = event.WhichOneof("payload")
    return None if kind is None else getattr(event, kind)


def event_kind(event: event_pb2.Event) -> str:
    """Return the name of the event's kind, such as `step_started`; empty for one that this client does not know."""
    return event.WhichOneof("payload") or ""
