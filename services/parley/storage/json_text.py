"""Values of documents as JSON."""

from collections.abc import Mapping
from typing import Final

import msgspec

from parley.storage.ports import Value


def to_json(value: Value) -> bytes:
    """Return a value as JSON in UTF-8, without spaces."""
    return _JSON.encode(value)


def _to_plain(value: object) -> object:
    """Return a value of a type of our own, or of a library, as one of a type that JSON knows."""
    for plain in (str, int, float):
        if isinstance(value, plain):
            return plain(value)
    return dict(value) if isinstance(value, Mapping) else list(value)  # type: ignore[call-overload]


_JSON: Final = msgspec.json.Encoder(enc_hook=_to_plain)
