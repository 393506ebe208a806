"""Events of a log, made by hand."""

from google.protobuf.message import Message

from parley.v1.event_pb2 import Event

_KINDS = {
    field.message_type.full_name: field.name
    for field in Event.DESCRIPTOR.oneofs_by_name["payload"].fields
    if field.message_type is not None
}
_UNKNOWN_FIELD = b"\xc2\x3e\x00"  # field 1000, an empty message


def made_event(payload: Message | None, key: str = "k", sequence: int = 1, attempt: int = 1) -> Event:
    """An event that says this; without a payload, one of a kind that nobody knows yet."""
    if payload is None:
        return unknown_event(key, sequence)
    event = Event(sequence=sequence, key=key, attempt=attempt)
    event.time.FromJsonString("2026-01-02T00:00:00Z")
    getattr(event, _KINDS[payload.DESCRIPTOR.full_name]).CopyFrom(payload)
    return event


def unknown_event(key: str = "k", sequence: int = 1) -> Event:
    """An event as a later version may write it, of a kind that this one does not know."""
    event = Event(sequence=sequence, key=key)
    event.MergeFromString(_UNKNOWN_FIELD)
    return event
