"""Structured answers: a JSON Schema, what satisfies it, and how to ask where a model cannot be held to one."""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Final

import jsonschema
from jsonschema.exceptions import best_match
from referencing import Registry
from referencing.exceptions import Unresolvable

from parley.gateway.airlock import clean_value, one_line

__all__ = [
    "MAX_SCHEMA_BYTES",
    "AnswerShape",
    "InvalidAnswer",
    "bounded",
    "in_words",
    "not_satisfied",
    "shape_of",
]

MAX_SCHEMA_BYTES: Final = 64 * 1024
_NAME: Final = re.compile(r"[a-z0-9_]{1,64}")
_LONGEST_TEXT: Final = 240
_LONGEST_ITEM: Final = 100
_MOST_ITEMS: Final = 2
"""Measured: with these the model on this machine ends a judge's answer well before its token limit."""
_FENCED: Final = re.compile(r"```(?:json)?\s*\n(.*?)\n?\s*```", re.DOTALL)


class InvalidAnswer(Exception):  # noqa: N818 (said of the answer)
    """The answer does not satisfy its schema; the message says where, for the model as well as for people.

    `is_json` tells an answer of the wrong shape, or JSON that breaks off, from one that never was JSON.
    """

    def __init__(self, message: str, *, is_json: bool) -> None:
        super().__init__(message)
        self.is_json = is_json


@dataclass(frozen=True, slots=True, eq=False)
class AnswerShape:
    """A checked schema. `strict` says whether it keeps to the subset that endpoints can guarantee."""

    name: str
    schema: Mapping[str, Any]
    text: str
    strict: bool
    _validator: jsonschema.Draft202012Validator = field(repr=False)

    def accept(self, answer: str) -> str:
        """The answer as clean JSON text, if it satisfies the schema. Raises InvalidAnswer."""
        try:
            value = clean_value(_parse(answer))
        except RecursionError as problem:
            raise InvalidAnswer(f"it is {problem}", is_json=True) from None
        try:
            error = best_match(self._validator.iter_errors(value))
        except (Unresolvable, RecursionError) as problem:
            raise InvalidAnswer(
                f"the schema cannot be applied: {one_line(str(problem))}", is_json=True
            ) from None
        if error is not None:
            place = error.json_path.removeprefix("$").lstrip(".") or "the answer"
            raise InvalidAnswer(f"{place}: {one_line(error.message)}", is_json=True)
        try:
            return json.dumps(value, ensure_ascii=False, allow_nan=False)
        except ValueError:  # a number such as 1e999
            raise InvalidAnswer("a number is too large", is_json=True) from None


@lru_cache(maxsize=256)
def shape_of(name: str, text: str) -> AnswerShape:
    """The shape of a name and a schema's text. Raises ValueError, saying what is wrong with which."""
    if not _NAME.fullmatch(name):
        raise ValueError("name: must match [a-z0-9_]{1,64}")
    if len(text.encode("utf-8", "replace")) > MAX_SCHEMA_BYTES:
        raise ValueError(f"json_schema: is larger than {MAX_SCHEMA_BYTES // 1024} KiB")
    try:
        schema = json.loads(text, parse_constant=_no_constant)
        jsonschema.Draft202012Validator.check_schema(schema)
    except jsonschema.SchemaError as error:
        raise ValueError(f"json_schema: {one_line(error.message)}") from None
    except (ValueError, RecursionError) as error:
        raise ValueError(f"json_schema: is not JSON: {one_line(str(error))}") from None
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise ValueError("json_schema: must be the schema of an object")
    # An empty registry: a reference to elsewhere is an error and never a request.
    validator = jsonschema.Draft202012Validator(schema, registry=Registry())
    return AnswerShape(name, schema, text, _allows_strict(schema), validator)


def in_words(shape: AnswerShape) -> str:
    """The instruction that stands in for a schema where an endpoint takes none."""
    return (
        "Answer with one JSON object and nothing else: no explanation, no Markdown. "
        f"It must satisfy this JSON Schema:\n{shape.text}"
    )


def not_satisfied(error: InvalidAnswer, *, truncated: bool) -> str:
    """What the model is told when its answer did not satisfy the schema."""
    shorter = " It was cut off at the length limit: be much shorter." if truncated else ""
    return f"That answer cannot be used: {error}.{shorter}"


@lru_cache(maxsize=64)
def bounded(shape: AnswerShape) -> AnswerShape:
    """The shape with a bound on every text and list, so that a very small model comes to an end.

    Whatever satisfies it satisfies the shape itself too.
    """
    text = json.dumps(_bounded(shape.schema, _LONGEST_TEXT))
    return shape_of(shape.name, text)


def _bounded(schema: Any, longest: int) -> Any:
    if isinstance(schema, list):
        return [_bounded(each, longest) for each in schema]
    if not isinstance(schema, dict):
        return schema
    bound = {
        key: _bounded(value, _LONGEST_ITEM if key == "items" else longest) for key, value in schema.items()
    }
    if schema.get("type") == "string" and not schema.keys() & {"enum", "const", "pattern", "format"}:
        bound["maxLength"] = min(schema.get("maxLength", longest), longest)
    if schema.get("type") == "array":
        bound["maxItems"] = max(
            min(schema.get("maxItems", _MOST_ITEMS), _MOST_ITEMS), schema.get("minItems", 0)
        )
    return bound


def _parse(answer: str) -> Any:
    """The first JSON object in the answer; models like to put words or fences round it."""
    for candidate in (answer, *(match.group(1) for match in _FENCED.finditer(answer)), _from_brace(answer)):
        try:
            return _decoder.decode(candidate)
        except (ValueError, RecursionError):
            continue
    try:
        return _decoder.raw_decode(_from_brace(answer))[0]
    except (ValueError, RecursionError) as error:
        began = answer.lstrip().startswith("{")
        raise InvalidAnswer(f"it is not JSON: {one_line(str(error))}", is_json=began) from None


def _from_brace(answer: str) -> str:
    start = answer.find("{")
    return answer[start:] if start >= 0 else answer


def _no_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


# Not strict: a line end inside of a text should be escaped, but models forget it, and the airlock makes LF of U+2028.
_decoder: Final = json.JSONDecoder(parse_constant=_no_constant, strict=False)


def _allows_strict(schema: object) -> bool:
    """Whether every object in the schema names all its properties as required and allows no others."""
    if isinstance(schema, list):
        return all(_allows_strict(each) for each in schema)
    if not isinstance(schema, Mapping):
        return True
    if schema.get("type") == "object" or "properties" in schema:
        properties = schema.get("properties")
        if not isinstance(properties, Mapping) or schema.get("additionalProperties") is not False:
            return False
        if set(schema.get("required", ())) != set(properties):
            return False
        if not all(_allows_strict(each) for each in properties.values()):
            return False
    return all(_allows_strict(each) for key, each in schema.items() if key != "properties")
