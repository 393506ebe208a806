"""Messages as plain JSON values: snake_case, numbers as numbers, times as RFC 3339, durations in seconds, bytes in hex.

A value of an enum is a word, or its number if only a newer server knows it.
"""

import json
from typing import Any

from google.protobuf.duration_pb2 import Duration
from google.protobuf.message import Message
from google.protobuf.timestamp_pb2 import Timestamp

from parley.cli.terminal.words import enum_text
from parley.runtime.printable import printable_json


def message_to_json(message: Message) -> str:
    """Return the whole message as JSON text."""
    return to_json(json_value(message))


def to_json(value: Any) -> str:
    """Return plain values as JSON text for people and programs."""
    return printable_json(json.dumps(value, indent=2, ensure_ascii=False)) + "\n"


def message_to_json_line(message: Message) -> str:
    """Return the whole message as JSON text on one line."""
    return printable_json(json.dumps(json_value(message), ensure_ascii=False)) + "\n"


def json_value(message: Message) -> Any:
    """Return the message with every field; fields that are not set are null."""
    if isinstance(message, Timestamp):
        return message.ToJsonString()
    if isinstance(message, Duration):
        return message.ToNanoseconds() / 1e9
    return {
        field.name: _field_value(message, field)
        for field in message.DESCRIPTOR.fields
        if _is_shown(message, field)
    }


def _is_shown(message: Message, field: Any) -> bool:
    choice = field.containing_oneof
    return choice is None or choice.name.startswith("_") or message.WhichOneof(choice.name) == field.name


def _field_value(message: Message, field: Any) -> Any:
    value = getattr(message, field.name)
    if field.message_type is not None and field.message_type.GetOptions().map_entry:
        inside = field.message_type.fields_by_name["value"]
        return {str(key): _value(inside, value[key]) for key in sorted(value)}
    if field.is_repeated:
        return [_value(field, each) for each in value]
    if field.has_presence and not message.HasField(field.name):
        return None
    return _value(field, value)


def _value(field: Any, value: Any) -> Any:
    if field.message_type is not None:
        return json_value(value)
    if field.enum_type is not None:
        known = value in field.enum_type.values_by_number
        return enum_text(field.enum_type, value) if known else value
    if isinstance(value, bytes):
        return value.hex()
    return value
