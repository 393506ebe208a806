"""Whether schemas are right at a look, as those of prompts are.

The library checks a schema against the schema of all schemas. That takes a hundred times as long, while a model waits to be asked.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any, Final

_TYPES: Final = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})


def are_plain(schemas: Iterable[Mapping[str, Any]]) -> bool:
    """Return whether these schemas, all that there are in one, are right. False: some may be right, too."""
    return all(_is_plain(keyword, value) for each in schemas for keyword, value in each.items())


def _is_plain(keyword: str, value: Any) -> bool:
    check = _CHECKS.get(keyword)
    return check is not None and check(value)


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _is_size(value: Any) -> bool:
    return type(value) is int and value >= 0


def _is_schema(value: Any) -> bool:
    return isinstance(value, dict | bool)


_CHECKS: Final[Mapping[str, Callable[[Any], bool]]] = {
    **dict.fromkeys(("additionalProperties", "items"), _is_schema),
    **dict.fromkeys(("description", "title"), _is_text),
    **dict.fromkeys(("maxItems", "maxLength", "minItems", "minLength"), _is_size),
    **dict.fromkeys(("maximum", "minimum"), _is_number),
    "enum": lambda value: isinstance(value, list),
    "properties": lambda value: isinstance(value, dict) and all(map(_is_schema, value.values())),
    "required": lambda value: (
        isinstance(value, list) and all(map(_is_text, value)) and len(set(value)) == len(value)
    ),
    "type": lambda value: isinstance(value, str) and value in _TYPES,
}
"""What the value of a keyword has to be. The schemas in it are checked for themselves."""
