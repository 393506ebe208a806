"""Whether a value fills its form just as it stands, as nearly all answers do.

This takes a tenth of the time in which a value is read as it may be meant, and checked by the library. These decide on all others.
"""

from collections.abc import Callable, Mapping
from typing import Any, Final

_COMMON: Final = frozenset({"type", "title", "description"})
_MAX_OPTIONS: Final = 16
"""Of an enum, so that many texts that are compared with many options do not hold the loop."""


def fills_form(value: Any, schema: Any) -> bool:
    """Return whether `fit_value` certainly leaves a value as it is, and it satisfies the schema. False: neither is said."""
    kind = schema.get("type") if isinstance(schema, dict) else None
    if not isinstance(kind, str) or kind not in _FILLS:
        return False
    keywords, fills = _FILLS[kind]
    return schema.keys() <= keywords and fills(value, schema)


def _fills_object(value: Any, schema: Mapping[str, Any]) -> bool:
    properties = schema.get("properties", {})
    return (
        isinstance(value, dict)
        and value.keys() <= properties.keys()
        and all(name in value for name in schema.get("required", ()))
        and value.get("type") != "object"  # as where a model repeats the schema
        and all(fills_form(each, properties[name]) for name, each in value.items())
    )


def _fills_array(value: Any, schema: Mapping[str, Any]) -> bool:
    if not isinstance(value, list) or not _is_within(
        len(value), schema.get("minItems"), schema.get("maxItems")
    ):
        return False
    items = schema.get("items")
    return all(fills_form(each, items) and not _is_blank(each) for each in value)


def _fills_string(value: Any, schema: Mapping[str, Any]) -> bool:
    if not isinstance(value, str) or not _is_within(
        len(value), schema.get("minLength"), schema.get("maxLength")
    ):
        return False
    if "enum" in schema:
        options = schema["enum"]
        return len(options) <= _MAX_OPTIONS and value in options and value.strip() == value
    return not schema.get("minLength") or any(map(str.isalnum, value))


def _fills_integer(value: Any, schema: Mapping[str, Any]) -> bool:
    return type(value) is int and _is_within(value, schema.get("minimum"), schema.get("maximum"))


def _fills_boolean(value: Any, _schema: Mapping[str, Any]) -> bool:
    return isinstance(value, bool)


def _is_blank(value: Any) -> bool:
    return isinstance(value, str) and not value.strip()


def _is_within(value: int, least: float | None, most: float | None) -> bool:
    return (least is None or value >= least) and (most is None or value <= most)


_FILLS: Final[Mapping[str, tuple[frozenset[str], Callable[[Any, Mapping[str, Any]], bool]]]] = {
    "object": (_COMMON | {"properties", "required", "additionalProperties"}, _fills_object),
    "array": (_COMMON | {"items", "minItems", "maxItems"}, _fills_array),
    "string": (_COMMON | {"enum", "minLength", "maxLength"}, _fills_string),
    "integer": (_COMMON | {"minimum", "maximum"}, _fills_integer),
    "boolean": (_COMMON, _fills_boolean),
}
"""By type, the keywords that are seen through, and what sees whether a value is so."""
