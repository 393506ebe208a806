"""Digests of what a step asks: the same for the same question, whatever the machine and the version."""

import hashlib
import json
from typing import Any, Final

import msgspec
from google.protobuf.json_format import MessageToDict
from google.protobuf.message import Message

DIGEST_BYTES: Final = 16
_JSON: Final = json.JSONEncoder(sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
_PLAIN_JSON: Final = msgspec.json.Encoder(order="sorted")
"""It writes texts and whole numbers to the same bytes, in a ninth of the time, and fractions to others."""


def digest(request: Message | dict[str, Any]) -> str:
    """Return 32 hex digits that stand for a message, or for a JSON value.

    A field of a message that holds its default is left out: what does not use a field that was added later has the digest
    that it had before.
    """
    if isinstance(request, Message):
        request = MessageToDict(request, preserving_proto_field_name=True)
    return hashlib.blake2b(canonical_json(request), digest_size=DIGEST_BYTES).hexdigest()


def canonical_json(value: Any) -> bytes:
    """Return a JSON value as the bytes that its digest is made of: the same for the same value."""
    return _PLAIN_JSON.encode(value) if _is_plain(value) else _JSON.encode(value).encode()


def _is_plain(value: Any) -> bool:
    """Return whether a value is an object of texts and whole numbers, as the parts of prompts are."""
    return type(value) is dict and {*map(type, value)} <= {str} and {*map(type, value.values())} <= {str, int}
