"""Copies of messages without one field."""

from typing import TypeVar

from google.protobuf.field_mask_pb2 import FieldMask
from google.protobuf.message import Message

M = TypeVar("M", bound=Message)


def copy_without(message: M, name: str) -> M:
    """Return a copy without one field. It is created field by field: a message keeps the memory of a text that is cleared."""
    copy = type(message)()
    names = [field.name for field, _ in message.ListFields() if field.name != name]
    FieldMask(paths=names).MergeMessage(message, copy)
    return copy
