"""JSON Schemas of callers, and checks of answers against them, both within bounds.

An answer and its schema come from outside, and together can be written so that a check never ends. So a schema has a
largest size, some keywords are refused, and all work on one answer takes from one amount.
"""

import json
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Any, Final, Literal, TypeAlias
from urllib.parse import unquote

import jsonschema
from jsonschema.exceptions import ValidationError, best_match
from jsonschema.protocols import Validator
from referencing import Registry
from referencing.exceptions import Unresolvable

from parley.gateway.prompt.bounded_work import CHARACTERS, InapplicableSchemaError, limit_work, take_work
from parley.gateway.prompt.plain_schema import are_plain

_MAX_LEVELS: Final = 32
_MAX_PARTS: Final = 1000
_REFERENCE: Final = 20
"""A reference is so much more work than another keyword."""
_ROOM: Final = 200
"""Calls in one another that may be left when a reference is followed: twice what a schema without references takes."""
_Kind: TypeAlias = Literal["schema", "named schemas", "other"]
_KINDS: Final[Mapping[str, _Kind]] = {
    **dict.fromkeys(("$defs", "definitions", "dependentSchemas", "properties"), "named schemas"),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), "schema"),
    **dict.fromkeys(("additionalProperties", "contains", "contentSchema", "else", "if"), "schema"),
    **dict.fromkeys(("items", "not", "propertyNames", "then"), "schema"),
}
_ABOUT_THE_WHOLE: Final = frozenset({"$id", "$schema"})
"""They name the schema or its language; further down they would have another check than this one be made."""
_REFUSED: Final = frozenset(
    {
        *("pattern", "patternProperties"),  # a regular expression may take for ever
        *("unevaluatedItems", "unevaluatedProperties"),  # the library follows references for them without end
        *("$anchor", "$dynamicAnchor", "$dynamicRef"),  # looked for in all of the schema, each time
    }
)

_Check: TypeAlias = Callable[..., Iterable[ValidationError] | None]


_kept: ContextVar[Mapping[int, Validator]] = ContextVar(
    "the validators of the schema in use, by what they check"
)


class SchemaCheck:
    """Checks values against a schema. It keeps a validator of every schema in it: to make one takes longer than its check."""

    def __init__(self, schema: Mapping[str, Any]) -> None:
        """Raise ValueError if it is no JSON Schema (2020-12), or one that we do not check; the message says where and why."""
        _refuse_costly(schema)
        if not are_plain(_find_schemas(schema)):
            _require_schema(schema)
        schema = {name: value for name, value in schema.items() if name not in _ABOUT_THE_WHOLE}
        # An empty registry: a reference to elsewhere is an error and never a request.
        self._validator: Validator = _BoundedValidator(schema, registry=Registry())
        self._within = {id(each): self._validator.evolve(schema=each) for each in _find_schemas(schema)}

    def find_error(self, value: Any) -> ValidationError | None:
        """Return what is wrong with a value, the likeliest first, or None. Raise TooMuchWorkError, InapplicableSchemaError."""
        before = _kept.set(self._within)
        try:
            with limit_work():
                found: ValidationError | None = best_match(self._validator.iter_errors(value))
                return found
        except (Unresolvable, RecursionError) as error:
            raise InapplicableSchemaError(str(error)) from None
        finally:
            _kept.reset(before)


def _require_schema(schema: Mapping[str, Any]) -> None:
    try:
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise ValueError(error.message) from None


def _refuse_costly(schema: Mapping[str, Any]) -> None:
    """Raise ValueError for a schema that is too large, too deep, or holds what we do not check."""
    schemas = {id(each): each for each in _find_schemas(schema)}
    for each in schemas.values():
        refused = _REFUSED if each is schema else _REFUSED | _ABOUT_THE_WHOLE
        if found := refused & each.keys():
            raise ValueError(f"{min(found)} is not checked here; say in a description what is wanted")
        reference = each.get("$ref", "#")
        led_to = _resolve_reference(schema, reference) if isinstance(reference, str) else None
        if id(led_to) not in schemas and not isinstance(led_to, bool):
            raise ValueError(f"$ref {str(reference)[:80]!r} leads to no schema in it")


def _find_schemas(schema: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and those in it. What stands elsewhere, as in examples, is none, and no check has shown that it could be."""
    left: list[tuple[Any, int, _Kind]] = [(schema, 1, "schema")]
    parts = 0
    while left:
        part, level, kind = left.pop()
        if not isinstance(part, dict | list):
            continue
        parts += 1
        if parts > _MAX_PARTS:
            raise ValueError(f"has more than {_MAX_PARTS} parts")
        if level > _MAX_LEVELS:
            raise ValueError(f"is nested more than {_MAX_LEVELS} levels deep")
        if isinstance(part, list):
            left += ((each, level + 1, kind) for each in part)
        elif kind == "schema":
            yield part
            left += ((each, level + 1, _KINDS.get(key, "other")) for key, each in part.items())
        else:
            within: _Kind = "schema" if kind == "named schemas" else "other"
            left += ((each, level + 1, within) for each in part.values())


def _resolve_reference(schema: Mapping[str, Any], reference: str) -> Any:
    """Return what a reference leads to inside of a schema; None if that is nothing, or elsewhere."""
    if reference == "#":
        return schema
    if not reference.startswith("#/"):
        return None
    part: Any = schema
    for step in unquote(reference[2:]).split("/"):
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(part, dict):
            part = part.get(name)
        elif isinstance(part, list) and name.isdecimal() and int(name) < len(part):
            part = part[int(name)]
        else:
            return None
    return part


def _limit_check(name: str, check: _Check) -> _Check:
    least = _REFERENCE if name == "$ref" else 1
    size = _count_all_entries if name in {"const", "enum"} else _count_entries

    def check_within_bounds(
        validator: Any, value: Any, instance: Any, schema: Any
    ) -> Iterator[ValidationError]:
        take_work(least + size(value) + _count_entries(instance))
        if name == "$ref":
            _check_room()
        return map(_take_work_of, check(validator, value, instance, schema) or ())

    return check_within_bounds


def _check_room() -> None:
    """Raise RecursionError before the interpreter does: of its error a part in Rust makes a panic, which is no Exception."""
    calls, frame = 0, sys._getframe()  # noqa: SLF001
    while frame := frame.f_back:  # type: ignore[assignment]
        calls += 1
    if calls > sys.getrecursionlimit() - _ROOM:
        raise RecursionError("its references lead too deep")


def _take_work_of(error: ValidationError) -> ValidationError:
    take_work(len(error.message) // CHARACTERS)
    return error


def _count_entries(value: Any) -> int:
    return len(value) if isinstance(value, dict | list) else 0


def _count_all_entries(value: Any) -> int:
    """Return how many entries a value has on all its levels."""
    within = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return len(within) + sum(map(_count_all_entries, within))


def _check_unique(validator: Any, wanted: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """Compare by text: the library compares each pair."""
    del schema
    if not wanted or not validator.is_type(instance, "array"):
        return
    texts = {json.dumps(each, sort_keys=True) for each in instance}
    take_work(sum(map(len, texts)) // CHARACTERS)
    if len(texts) < len(instance):
        yield ValidationError("has an entry twice")


def _check_properties(
    validator: Any, properties: Mapping[str, Any], instance: Any, schema: Any
) -> Iterator[ValidationError]:
    """Do what the library does, with the validators that are kept."""
    del schema
    if validator.is_type(instance, "object"):
        for name, within in properties.items():
            if name in instance:
                yield from _check_part(validator, instance[name], within, name, schema_path=name)


def _check_items(validator: Any, items: Any, instance: Any, schema: Any) -> Iterator[ValidationError]:
    """Do what the library does, with the validators that are kept."""
    if items is False or "prefixItems" in schema:
        yield from _LIBRARY["items"](validator, items, instance, schema) or ()
    elif validator.is_type(instance, "array"):
        for place, each in enumerate(instance):
            yield from _check_part(validator, each, items, place)


def _check_part(
    validator: Any, part: Any, schema: Any, step: str | int, *, schema_path: str | None = None
) -> Iterator[ValidationError]:
    kept = _kept.get().get(id(schema))
    if kept is None:  # one that is true or false
        yield from validator.descend(part, schema, path=step, schema_path=schema_path)
        return
    for error in kept.iter_errors(part):
        error.path.appendleft(step)
        if schema_path is not None:
            error.schema_path.appendleft(schema_path)
        yield error


_LIBRARY: Final[Mapping[str, _Check]] = jsonschema.Draft202012Validator.VALIDATORS
_BoundedValidator: Final = jsonschema.validators.extend(  # type: ignore[no-untyped-call]
    jsonschema.Draft202012Validator,
    {
        name: _limit_check(name, check)
        for name, check in {
            **_LIBRARY,
            "items": _check_items,
            "properties": _check_properties,
            "uniqueItems": _check_unique,
        }.items()
    },
)
