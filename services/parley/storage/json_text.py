"""Values of documents as JSON."""

from collections.abc import Mapping
from json import JSONEncoder
from typing import Final

from parley.storage.ports import Value


def to_json(value: Value) -> str:
    """Return a value as JSON without spaces; text stays as it is."""
    return _JSON.encode(value)


def _to_plain(value: object) -> dict[str, object] | list[object]:
    """Return a mapping or a sequence as a type that JSON knows."""
    return dict(value) if isinstance(value, Mapping) else list(value)  # type: ignore[call-overload]


_JSON: Final = JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=_to_plain)
