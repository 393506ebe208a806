"""Requests that nobody would write, made from the contract alone: well typed, nearly right, or no message at all."""

import random
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from google.protobuf import descriptor_pool
from google.protobuf.descriptor import Descriptor, FieldDescriptor, MethodDescriptor
from google.protobuf.message import Message
from google.protobuf.message_factory import GetMessageClass

import parley.v1.convergence_pb2
import parley.v1.gateway_pb2
import parley.v1.memory_pb2
import parley.v1.orchestrator_pb2
import parley.v1.ratings_pb2  # noqa: F401 - registers the service, as those above
from tests.support.right_requests import RIGHT_REQUESTS

SERVICES: Final = ("Orchestrator", "Gateway", "Convergence", "Ratings", "Memory")
_DEPTH: Final = 5
_TEXTS: Final = (
    *(
        "",
        " ",
        "a",
        "agent-1",
        "agent-2",
        "general",
        "1",
        "-1",
        "panel@1",
        "../../etc/passwd",
        "{}",
        "[1, 2]",
        "%s%n",
    ),
    *(
        "\0",
        "a\0b",
        "\u202e",
        "\ud7ff",
        "🙂" * 40,
        "ж" * 3000,
        "x" * 20_000,
        "\r\n",
        "\x85",
        "NaN",
        "deb-1",
        "null",
    ),
    *(
        "deb-20260101-000000-aaaaaaaa",
        "deb-99999999-999999-aaaaaaaa",
        '{"type": "object"}',
        '{"type": 7}',
        "{" * 3000,
    ),
    # Forged page tokens: no base64, no text, no JSON, a number that is none, places beyond every order.
    *(
        "!",
        "é",
        "_w==",
        "W10=",
        "W05hTiwgIiJd",
        "WzFlOTk5LCAiIl0=",
        "WyItMSIsIG51bGxd",
        "MjAyNi0wMS0wMQ==",
        "MjAyNg0=",
    ),
)
_WHOLE: Final = (0, 1, 2, 3, 7, 100, 101, 1000, 2**31 - 1, 2**32 - 1, 2**63 - 1, 2**64 - 1)
_REAL: Final = (0.0, 0.5, 1.0, -1.0, 1e308, -1e308, 5e-324, float("nan"), float("inf"), float("-inf"))
_BITS: Final = {
    FieldDescriptor.TYPE_INT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_SINT32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_SFIXED32: (-(2**31), 2**31 - 1),
    FieldDescriptor.TYPE_UINT32: (0, 2**32 - 1),
    FieldDescriptor.TYPE_FIXED32: (0, 2**32 - 1),
    FieldDescriptor.TYPE_INT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_SINT64: (-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_SFIXED64: (-(2**63), 2**63 - 1),
    FieldDescriptor.TYPE_UINT64: (0, 2**64 - 1),
    FieldDescriptor.TYPE_FIXED64: (0, 2**64 - 1),
}


def _methods() -> Iterator[MethodDescriptor]:
    pool = descriptor_pool.Default()
    for name in SERVICES:
        yield from pool.FindServiceByName(f"parley.v1.{name}Service").methods


METHODS: Final = tuple(_methods())
"""Every RPC of the five services."""


@dataclass(frozen=True)
class OddRequest:
    """What is sent to a method: the bytes of each message of its stream, or of its one request."""

    method: MethodDescriptor
    kind: str
    messages: tuple[bytes, ...]

    @property
    def service(self) -> str:
        """Such as `memory`."""
        return str(self.method.containing_service.name).removesuffix("Service").lower()

    @property
    def path(self) -> str:
        """As gRPC names the method."""
        return f"/{self.method.containing_service.full_name}/{self.method.name}"


def make_odd_request(seed: int, number: int) -> OddRequest:
    """Return the request of this number; the same seed gives the same."""
    dice = random.Random(f"{seed}/{number}")
    method = METHODS[number % len(METHODS)]
    kind = dice.choice(("garbage", "well typed", "well typed", "nearly right", "nearly right"))
    count = dice.randint(0, 4) if method.client_streaming else 1
    return OddRequest(method, kind, tuple(_bytes(dice, kind, method.input_type) for _ in range(count)))


def _bytes(dice: random.Random, kind: str, type_: Descriptor) -> bytes:
    if kind == "garbage":
        return _garbage(dice, type_)
    right = RIGHT_REQUESTS.get(type_.name, ())
    if kind == "nearly right" and right and type_.fields:
        message = GetMessageClass(type_)()
        message.CopyFrom(dice.choice(right))
        for _ in range(dice.choice((0, 1, 1, 2))):
            _change(dice, message)
        return message.SerializeToString()
    return _message(dice, type_, _DEPTH).SerializeToString()


def _garbage(dice: random.Random, type_: Descriptor) -> bytes:
    given = bytearray(_message(dice, type_, _DEPTH).SerializeToString())
    match dice.randrange(4):
        case 0:
            return dice.randbytes(dice.choice((1, 2, 10, 1000)))
        case 1:
            return bytes(given[: dice.randrange(len(given) + 1)])
        case 2:
            for _ in range(min(len(given), 8)):
                given[dice.randrange(len(given))] = dice.randrange(256)
            return bytes(given)
        case _:
            return b"\x0a\xff\xff\xff\xff\x0f" + dice.randbytes(
                20
            )  # a field that is longer than what follows


def _change(dice: random.Random, message: Message) -> None:
    """Set one field, however deep, to something odd."""
    while True:
        fields: list[Any] = list(message.DESCRIPTOR.fields)
        field = dice.choice(fields)
        held = getattr(message, field.name)
        if (
            isinstance(held, Message)
            and message.HasField(field.name)
            and held.ByteSize()
            and dice.random() < 0.7
        ):
            message = held
        elif field.message_type and field.is_repeated and held and not _is_map(field) and dice.random() < 0.7:
            message = dice.choice(held)
        else:
            message.ClearField(field.name)
            _set(dice, message, field, 2)
            return


def _message(dice: random.Random, type_: Descriptor, depth: int) -> Message:
    message = GetMessageClass(type_)()
    share = dice.choice((0.3, 0.7, 1.0))
    for field in type_.fields:
        if dice.random() < share:
            _set(dice, message, field, depth - 1)
    return message


def _set(dice: random.Random, message: Message, field: Any, depth: int) -> None:
    if field.message_type and depth < 0:
        return
    held = getattr(message, field.name)
    if _is_map(field):
        key, value = field.message_type.fields
        for _ in range(dice.randrange(3)):
            if value.message_type:
                held[_scalar(dice, key)].CopyFrom(_message(dice, value.message_type, depth))
            else:
                held[_scalar(dice, key)] = _scalar(dice, value)
    elif field.is_repeated:
        count = dice.choice((0, 1, 1, 2, 3, 40) if depth > 2 else (0, 1, 2, 3))
        held.extend(
            _message(dice, field.message_type, depth) if field.message_type else _scalar(dice, field)
            for _ in range(count)
        )
    elif field.message_type:
        held.CopyFrom(_message(dice, field.message_type, depth))
    else:
        setattr(message, field.name, _scalar(dice, field))


def _scalar(dice: random.Random, field: Any) -> Any:  # noqa: PLR0911 - a row a type
    match field.type:
        case FieldDescriptor.TYPE_STRING:
            return dice.choice(_TEXTS)
        case FieldDescriptor.TYPE_BYTES:
            return dice.choice(_TEXTS).encode()
        case FieldDescriptor.TYPE_BOOL:
            return dice.random() < 0.5
        case FieldDescriptor.TYPE_FLOAT:
            value = dice.choice(_REAL)
            return value if abs(value) < 1e38 or abs(value) == float("inf") else 3e38
        case FieldDescriptor.TYPE_DOUBLE:
            return dice.choice(_REAL)
        case FieldDescriptor.TYPE_ENUM:
            return dice.choice((*field.enum_type.values_by_number, 99))
        case number:
            lowest, highest = _BITS[number]
            return dice.choice([lowest, *(each for each in _WHOLE if each <= highest)])


def _is_map(field: FieldDescriptor) -> bool:
    return bool(field.message_type and field.message_type.GetOptions().map_entry)
