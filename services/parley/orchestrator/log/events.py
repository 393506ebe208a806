"""The kinds of events, as the contract lists them, and what their payloads have in common."""

from functools import cache
from typing import Final

from google.protobuf.descriptor import Descriptor
from google.protobuf.message import Message

from parley.v1 import event_pb2

Payload = Message
"""One of the messages of `Event.payload`."""

_PAYLOADS: Final = event_pb2.Event.DESCRIPTOR.oneofs_by_name["payload"].fields
_KINDS: Final = {field.message_type.full_name: field.name for field in _PAYLOADS if field.message_type}


class CorruptEventError(Exception):
    """A stored event is damaged or of the wrong content: something else has changed the log."""


class UnknownEventError(Exception):
    """The log has a kind of event that this version of Parley does not know: a newer version must continue the debate."""


def kind_of(payload: Payload) -> str:
    """Return the name of a payload's kind, such as `step_succeeded`."""
    return _KINDS[payload.DESCRIPTOR.full_name]


def is_ignorable(payload: Payload) -> bool:
    """Return whether an owner that does not know this kind may ignore it."""
    return _is_ignorable(payload.DESCRIPTOR)


@cache
def _is_ignorable(kind: Descriptor) -> bool:
    return bool(kind.GetOptions().Extensions[event_pb2.ignorable])
