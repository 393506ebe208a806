"""JSON Schemas that come over the wire: how large one may be, and how much work the check of an answer may make.

Both a schema and an answer are somebody else's; together they can be written so that a check never ends.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, Final

import jsonschema
from jsonschema.exceptions import ValidationError, best_match
from jsonschema.protocols import Validator
from referencing import Registry

__all__ = ["TooMuchWorkError", "first_error", "validator_of"]

_MAX_LEVELS: Final = 32
_MAX_PARTS: Final = 1000
_MAX_WORK: Final = 200_000
"""Keywords and the entries of their values that are looked at for an answer: a second or two, and 100 times what ours need."""
_REFERENCE: Final = 20
"""A reference is so much more work than another keyword."""
_DATA: Final = frozenset({"const", "default", "enum", "examples"})
_NAMED: Final = frozenset({"$defs", "dependentSchemas", "properties"})
_REFUSED: Final = frozenset({"$dynamicRef", "pattern", "patternProperties"})
"""A regular expression may take for ever, and a dynamic reference be followed to anywhere."""

_Check = Callable[..., Iterator[ValidationError] | None]


class TooMuchWorkError(Exception):
    """The check of an answer was given up."""


class _Work:
    """How much work is left for a check."""

    def __init__(self) -> None:
        self._left = _MAX_WORK

    def take(self, amount: int) -> None:
        self._left -= amount
        if self._left < 0:
            raise TooMuchWorkError("it takes too long to be checked against its schema")


_work: ContextVar[_Work] = ContextVar("work of a check")


def validator_of(schema: Mapping[str, Any]) -> Validator:
    """Return what checks values against a schema.

    Raises:
        ValueError: it is no JSON Schema (2020-12), or one that we do not check; the message says where and why.
    """
    _refuse_costly(schema)
    jsonschema.Draft202012Validator.check_schema(schema)
    # An empty registry: a reference to elsewhere is an error and never a request.
    validator: Validator = _BoundedValidator(schema, registry=Registry())
    return validator


def first_error(validator: Validator, value: Any) -> ValidationError | None:
    """Return what is wrong with a value, the likeliest first, or None. Raises TooMuchWorkError."""
    given = _work.set(_Work())
    try:
        found: ValidationError | None = best_match(validator.iter_errors(value))
        return found
    finally:
        _work.reset(given)


def _refuse_costly(schema: Mapping[str, Any]) -> None:
    """Raise ValueError for a schema that is too large, too deep, or holds what we do not check."""
    left: list[tuple[Any, int, bool]] = [(schema, 1, False)]
    parts = 0
    while left:
        part, level, is_named = left.pop()
        if not isinstance(part, dict | list):
            continue
        parts += 1
        if parts > _MAX_PARTS:
            raise ValueError(f"has more than {_MAX_PARTS} parts")
        if level > _MAX_LEVELS:
            raise ValueError(f"is nested more than {_MAX_LEVELS} levels deep")
        if isinstance(part, list):
            left += ((each, level + 1, False) for each in part)
            continue
        if not is_named and (refused := _REFUSED & part.keys()):
            raise ValueError(f"{min(refused)} is not checked here; say in a description what is wanted")
        left += (
            (each, level + 1, not is_named and key in _NAMED)
            for key, each in part.items()
            if is_named or key not in _DATA
        )


def _bounded(name: str, check: _Check) -> _Check:
    least = _REFERENCE if name == "$ref" else 1

    def checked(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[ValidationError] | None:
        _work.get().take(least + (len(value) if isinstance(value, dict | list) else 0))
        return check(validator, value, instance, schema)

    return checked


def _unique(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """Compare by text: the library compares each pair."""
    del schema
    if not wanted or not validator.is_type(instance, "array"):
        return
    _work.get().take(len(instance))
    if len({json.dumps(each, sort_keys=True) for each in instance}) < len(instance):
        yield ValidationError("has an entry twice")


_BoundedValidator: Final = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft202012Validator,
    {
        name: _bounded(name, check)
        for name, check in {
            **jsonschema.Draft202012Validator.VALIDATORS,
            "uniqueItems": _unique,
        }.items()
    },
)
