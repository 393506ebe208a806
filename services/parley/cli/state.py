"""Messages as plain JSON values: snake_case, numbers as numbers, times as RFC 3339, durations in seconds."""

from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

__all__ = ["as_json", "enum_word"]


def as_json(message: Message) -> Any:
    """The message with every field; a part that is not set is null."""
    if isinstance(message, Timestamp):
        return message.ToJsonString()
    if isinstance(message, Duration):
        return message.ToNanoseconds() / 1e9
    return {
        field.name: _field(message, field) for field in message.DESCRIPTOR.fields if _shown(message, field)
    }


def _shown(message: Message, field: Any) -> bool:
    choice = field.containing_oneof
    return choice is None or choice.name.startswith("_") or message.WhichOneof(choice.name) == field.name


def _field(message: Message, field: Any) -> Any:
    value = getattr(message, field.name)
    if field.is_repeated:
        return [_value(field, each) for each in value]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _value(field, value)


def _value(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return as_json(value)
    if field.enum_type is not None:
        return enum_word(field.enum_type.values_by_number[value].name, field.enum_type.name)
    return value


def enum_word(value: str, enum: str) -> str:
    """`completed` of DEBATE_STATUS_COMPLETED."""
    prefix = "".join(f"_{letter}" if letter.isupper() else letter.upper() for letter in enum).lstrip("_")
    return value.removeprefix(f"{prefix}_").lower()
