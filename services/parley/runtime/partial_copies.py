"""Copies of messages without one field."""

from typing import TypeVar

from google.protobuf.message import Message

M = TypeVar("M", bound=Message)


def copy_without(message: M, name: str) -> M:
    """Return a copy without one field. It is created field by field: a message keeps the memory of a text that is cleared."""
    copy = type(message)()
    for field, value in message.ListFields():
        if field.name == name:
            continue
        if field.is_repeated:
            getattr(copy, field.name).MergeFrom(value)
        elif field.message_type is not None:
            part: Message = getattr(copy, field.name)
            part.CopyFrom(value)
            part.SetInParent()  # it may be empty
        else:
            setattr(copy, field.name, value)
    return copy
