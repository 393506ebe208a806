"""How large a message may be, and how many entries its lists may have: the event loop checks each entry, and all callers share it."""

import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from itertools import islice
from typing import Final

from google.protobuf.descriptor import Descriptor, FieldDescriptor
from google.protobuf.message import Message

from parley.runtime.contract_methods import method_option
from parley.v1.access_pb2 import max_request_bytes as max_bytes_option

MAX_MESSAGE_BYTES: Final = 16 * 1024 * 1024
"""gRPC refuses a larger message with a status that does not say why, so none is sent."""
MAX_PUBLIC_BYTES: Final = 16 * 1024
"""The maximum size of a request of health and reflection, which callers without credentials may use."""
MAX_ENTRIES: Final = 5000
MAX_FIELDS: Final = 4 * MAX_ENTRIES
"""The maximum number of fields in a large request, counted before it is decoded."""
_SMALL_BYTES: Final = 1024 * 1024
"""A request up to this size decodes fast, whatever it holds."""
_JSON_TEXT: Final = re.compile(rb'"(?:[^"\\]++|\\.)*+"', re.DOTALL)
_VARINT, _EIGHT_BYTES, _SIZED, _FOUR_BYTES = 0, 1, 2, 5
_COUNTED_TYPES: Final = frozenset(
    {FieldDescriptor.CPPTYPE_MESSAGE, FieldDescriptor.CPPTYPE_STRING, FieldDescriptor.CPPTYPE_ENUM}
)
"""Numbers are not counted: vectors have thousands of them, and no check looks at each."""


def max_request_bytes(method: str) -> int:
    """Return how large a request of an RPC (`parley.v1.GatewayService/Generate`) may be, in bytes."""
    declared: int = method_option(method, max_bytes_option)
    return declared or _SMALL_BYTES


def find_crowded_field_in_bytes(given: bytes | bytearray, descriptor: Descriptor) -> str | None:
    """Return the field with which a large message exceeds MAX_FIELDS, or None. 16 MiB can hold eight million fields, which take half a second to decode.

    Bytes that are no message are reported by the decoder.
    """
    if len(given) <= _SMALL_BYTES:
        return None
    crowded = next(islice(_list_fields(given, descriptor), MAX_FIELDS, None), None)
    if crowded is None:
        return None
    kind, number = crowded
    known = _fields_by_number(kind)
    return known[number].name if number in known else kind.name


def is_crowded_json(given: bytes | bytearray) -> bool:
    """Return whether a large message as JSON has more than MAX_FIELDS values: 15 MiB of `{}` take hundreds of megabytes once they are read."""
    if len(given) <= _SMALL_BYTES or _count_marks(given, 0, len(given)) <= MAX_FIELDS:
        return False
    marks, at = 0, 0
    for text in _JSON_TEXT.finditer(given):
        marks += _count_marks(given, at, text.start())
        at = text.end()
        if marks > MAX_FIELDS:
            return True
    return marks + _count_marks(given, at, len(given)) > MAX_FIELDS


def _count_marks(given: bytes | bytearray, start: int, end: int) -> int:
    """Return how many values begin or follow another between two places that are in no text."""
    return sum(given.count(mark, start, end) for mark in (b",", b"{", b"["))


def has_more_fields(messages: Iterable[bytes], descriptor: Descriptor, most: int) -> bool:
    """Return whether messages of one kind have more than `most` fields together, those of the messages within them too.

    Decoded, a field can take a hundred times its bytes. Bytes that are no message are reported by the decoder.
    """
    fields = (field for each in messages for field in _list_fields(each, descriptor))
    return next(islice(fields, most, None), None) is not None


def _list_fields(given: bytes | bytearray, descriptor: Descriptor) -> Iterator[tuple[Descriptor, int]]:
    """Yield each field of a message and of those within it: the kind of message that it is in, and its number. End where the bytes are no message."""
    left = [(descriptor, 0, len(given))]
    with suppress(IndexError):
        while left:
            kind, at, end = left.pop()
            known = _fields_by_number(kind)
            while at < end:
                tag, at = _read_varint(given, at)
                yield kind, tag >> 3
                wire = tag & 7
                if wire == _SIZED:
                    size, at = _read_varint(given, at)
                    field = known.get(tag >> 3)
                    if size and field is not None and field.message_type is not None:
                        # The rest later, so that no more wait than there are levels.
                        left += (kind, at + size, end), (field.message_type, at, at + size)
                        break
                    at += size
                elif wire == _VARINT:
                    _, at = _read_varint(given, at)
                else:
                    at += {_EIGHT_BYTES: 8, _FOUR_BYTES: 4}.get(wire, 0)


@cache
def _fields_by_number(kind: Descriptor) -> Mapping[int, FieldDescriptor]:
    return dict(kind.fields_by_number)


def _read_varint(given: bytes | bytearray, at: int) -> tuple[int, int]:
    """Return a number of variable length and the position after it. Raise IndexError if the bytes end before."""
    byte = given[at]
    if byte < 0x80:
        return byte, at + 1
    found, shift = byte & 0x7F, 7
    while byte >= 0x80 and shift < 64:
        at += 1
        byte = given[at]
        found |= (byte & 0x7F) << shift
        shift += 7
    return found, at + 1


def find_crowded_field(message: Message) -> str | None:
    """Return the field with which the lists of `message` exceed MAX_ENTRIES texts, messages and enums, or None."""
    left, entries = [message], 0
    while left:
        held = left.pop()
        for field in _counted_fields(held.DESCRIPTOR):
            if not field.is_repeated:
                left += [getattr(held, field.name)] if held.HasField(field.name) else []
                continue
            value = getattr(held, field.name)
            entries += len(value)
            if entries > MAX_ENTRIES:
                return str(field.name)
            if field.message_type is not None:
                values = value.values() if hasattr(value, "values") else value
                left += [
                    each for each in values if isinstance(each, Message) and _counted_fields(each.DESCRIPTOR)
                ]
    return None


@cache
def _counted_fields(kind: Descriptor) -> tuple[FieldDescriptor, ...]:
    """Return the lists and messages among the fields of a message type. No other field is read: reading a text copies it."""
    return tuple(
        field
        for field in kind.fields
        if field.cpp_type in _COUNTED_TYPES and (field.is_repeated or field.message_type is not None)
    )
