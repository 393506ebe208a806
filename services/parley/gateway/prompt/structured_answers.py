"""Structured answers: a JSON Schema, what satisfies it, and how to ask a model that cannot be bound to one."""

import asyncio
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import lru_cache
from functools import partial as partial_call
from typing import TYPE_CHECKING, Any, Final
from weakref import WeakValueDictionary

from parley.gateway.prompt.bounded_work import InapplicableSchemaError, TooMuchWorkError, limit_work
from parley.gateway.prompt.fit_schema import fit_value, required_texts
from parley.gateway.prompt.plain_answers import fills_form
from parley.gateway.prompt.read_json import NotJson, decode, find_values, is_alone, repair
from parley.gateway.prompt.sanitizer import clean_value, to_line

if TYPE_CHECKING:  # heavy: providers are asked about their models before there is any schema
    from parley.gateway.prompt.bounded_schema import SchemaCheck

MAX_SCHEMA_BYTES: Final = 64 * 1024
_SHORT: Final = 8 * 1024
"""Characters of an answer, and of a schema, that are read in a millisecond or two unless they make more than little work."""
_LITTLE_WORK: Final = 1000
"""Three times what our longest form makes; less than a millisecond."""
_NAME: Final = re.compile(r"[a-z0-9_]{1,64}")
_MAX_TEXT: Final = 240
_MAX_ITEM: Final = 100
_MAX_ITEMS: Final = 2
"""Measured: with these the model on this machine ends a judge's answer well before its token limit."""

_encoder: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False)


class InvalidAnswer(Exception):  # noqa: N818 (said of the answer)
    """The answer does not satisfy its schema; the message says where, for the model as well as for people.

    Attributes:
        is_json: Whether it has the wrong shape or breaks off, rather than never was JSON.
        partial: The object that could be read all the same; None if there was none.
        properties: How many of the schema's properties it has.
    """

    def __init__(
        self, message: str, *, is_json: bool, partial: Mapping[str, Any] | None = None, properties: int = 0
    ) -> None:
        super().__init__(message)
        self.is_json = is_json
        self.partial = partial
        self.properties = properties


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class AnswerShape:
    """A checked schema.

    Attributes:
        strict: Whether it keeps to the subset that endpoints can guarantee.
        accepts_prose: Whether a text that does not satisfy it, asked again, is an answer all the same.
    """

    name: str
    schema: Mapping[str, Any]
    text: str
    strict: bool
    accepts_prose: bool
    _check: "SchemaCheck" = field(repr=False)

    def accept(self, answer: str) -> str:
        """Return the answer as clean JSON text, if what it holds satisfies the schema. Raise InvalidAnswer."""
        invalid: InvalidAnswer | None = None
        try:
            for value, alone in find_values(answer):
                try:
                    return self.accept_value(value, is_alone=alone)
                except InvalidAnswer as error:
                    if invalid is None or error.properties > invalid.properties:
                        invalid = error
        except NotJson as problem:
            began = answer.lstrip().startswith("{")
            raise InvalidAnswer(f"it is not JSON: {problem}", is_json=began) from None
        assert invalid is not None
        raise invalid

    def accept_at_once(self, answer: str) -> str | None:
        """Return what `accept` does of an answer that is short and right; None if more has to be done than the loop can wait for."""
        if len(answer) > _SHORT or len(self.text) > _SHORT:
            return None
        try:
            with limit_work(_LITTLE_WORK):
                return self.accept_value(decode(answer))
        except (InvalidAnswer, NotJson):
            return None

    def accept_value(self, value: Any, *, is_alone: bool = True) -> str:
        """Return a value as clean JSON text, if it satisfies the schema as it is meant. Raise InvalidAnswer.

        `is_alone`: whether nothing else was said.
        """
        try:
            given = clean_value(value)
            is_filled = fills_form(given, self.schema)
            read = given if is_filled else clean_value(fit_value(given, self.schema))
        except RecursionError as problem:
            raise InvalidAnswer(f"it is {problem}", is_json=True) from None
        except TooMuchWorkError as problem:
            raise InvalidAnswer(str(problem), is_json=True) from None
        try:
            text = _encoder.encode(read)
        except ValueError:  # a number such as 1e999
            raise InvalidAnswer("a number is too large", is_json=True) from None
        if is_filled:
            return text
        try:
            error = self._check.find_error(read)
        except TooMuchWorkError as problem:
            raise InvalidAnswer(str(problem), is_json=True) from None
        except InapplicableSchemaError as problem:
            raise InvalidAnswer(
                f"the schema cannot be applied: {to_line(str(problem))}", is_json=True
            ) from None
        if error is None:
            return text
        where = error.json_path.removeprefix("$").lstrip(".") or "the answer"
        message = f"{where}: {to_line(error.message)}"
        if not isinstance(read, dict):
            raise InvalidAnswer(message, is_json=True)
        given = given if isinstance(given, dict) else {}
        known = sum(read.get(name) not in ("", [], None) for name in self.schema.get("properties", {}))
        if not self._is_answer(read, known, is_alone=is_alone):
            raise InvalidAnswer(message, is_json=True)
        # Keys that the schema does not know are kept: they may hold what is missing.
        raise InvalidAnswer(message, is_json=True, partial=given | read, properties=known)

    def _is_answer(self, read: Mapping[str, Any], known: int, *, is_alone: bool) -> bool:
        """Return whether an object is the answer, as far as it goes, rather than an example in what was written.

        It has every text that may not be empty; where other words stand around it, half of what is required too.
        """
        if not all(read.get(name) for name in required_texts(self.schema)):
            return False
        return known > 0 if is_alone else 2 * known >= len(self.schema.get("required", ()))


async def read_answer(shape: AnswerShape, answer: str, *, truncated: bool) -> str:
    """Return what `accept` does, of an answer that may be nearly JSON too. Raise InvalidAnswer.

    What was cut off is never taken for a whole answer, but is read as far as it goes.
    """
    accepted = shape.accept_at_once(answer)
    if accepted is not None:
        return accepted
    try:
        return await asyncio.to_thread(shape.accept, answer)  # a short answer may take long too
    except InvalidAnswer as error:
        if error.partial is not None or (truncated and not shape.accepts_prose):
            raise
        invalid = error
    partial: Mapping[str, Any] | None = None
    properties = 0
    try:
        accept = partial_call(shape.accept_value, is_alone=is_alone(answer))
        accepted = await asyncio.to_thread(accept, await repair(answer))
    except InvalidAnswer as error:
        partial, properties = error.partial, error.properties
    except NotJson:
        pass
    else:
        if not truncated:
            return accepted
        partial = json.loads(accepted)
        properties = len(partial or ())
    raise InvalidAnswer(str(invalid), is_json=invalid.is_json, partial=partial, properties=properties)


def is_accepted(shape: AnswerShape, text: str) -> bool:
    """Return whether a text holds an object that satisfies the shape."""
    try:
        shape.accept(text)
    except InvalidAnswer:
        return False
    return True


@lru_cache(maxsize=256)
def parse_shape(name: str, text: str, *, accepts_prose: bool = False) -> AnswerShape:
    """Return the shape of a name and a schema's text. Raise ValueError, saying what is wrong with which."""
    from parley.gateway.prompt.bounded_schema import SchemaCheck

    if not _NAME.fullmatch(name):
        raise ValueError("name: must match [a-z0-9_]{1,64}")
    if len(text.encode("utf-8", "replace")) > MAX_SCHEMA_BYTES:
        raise ValueError(f"json_schema: is larger than {MAX_SCHEMA_BYTES // 1024} KiB")
    try:
        schema = json.loads(text, parse_constant=_refuse_constant)
        json.dumps(schema, allow_nan=False)  # no number such as 1e999, which no endpoint can be sent
    except (ValueError, RecursionError) as error:
        raise ValueError(f"json_schema: is not JSON: {to_line(str(error))}") from None
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise ValueError("json_schema: must be the schema of an object")
    try:
        check = SchemaCheck(schema)
    except ValueError as error:
        raise ValueError(f"json_schema: {to_line(str(error))}") from None
    shape = AnswerShape(name, schema, text, _allows_strict(schema), accepts_prose, check)
    _known_shapes[name, text, accepts_prose] = shape
    return shape


_known_shapes: Final[WeakValueDictionary[tuple[str, str, bool], AnswerShape]] = WeakValueDictionary()
"""Those that `parse_shape` has kept."""


def is_known_shape(name: str, text: str, *, accepts_prose: bool) -> bool:
    """Return whether `parse_shape` returns a shape at once, as it was asked for it before."""
    return (name, text, accepts_prose) in _known_shapes


def schema_instruction(shape: AnswerShape) -> str:
    """Return the instruction that stands in for a schema if an endpoint takes none."""
    return (
        "Answer with one JSON object and nothing else: no explanation, no Markdown. "
        f"It must satisfy this JSON Schema:\n{shape.text}"
    )


def problem_instruction(error: InvalidAnswer, *, truncated: bool) -> str:
    """Return the message to a model whose answer did not satisfy the schema."""
    shorter = " It was cut off at the length limit: be much shorter." if truncated else ""
    return f"That answer cannot be used: {error}.{shorter}"


@lru_cache(maxsize=64)
def bound_shape(shape: AnswerShape) -> AnswerShape:
    """Return the shape with a bound on every text and list, so that a very small model comes to an end.

    Whatever satisfies it satisfies the shape itself too.
    """
    text = json.dumps(_bound_schema(shape.schema, _MAX_TEXT))
    return parse_shape(shape.name, text)


def _bound_schema(schema: Any, longest: int) -> Any:
    if isinstance(schema, list):
        return [_bound_schema(each, longest) for each in schema]
    if not isinstance(schema, dict):
        return schema
    bound = {
        key: _bound_schema(value, _MAX_ITEM if key == "items" else longest) for key, value in schema.items()
    }
    if schema.get("type") == "string" and not schema.keys() & {"enum", "const", "pattern", "format"}:
        bound["maxLength"] = min(schema.get("maxLength", longest), longest)
    if schema.get("type") == "array":
        bound["maxItems"] = max(
            min(schema.get("maxItems", _MAX_ITEMS), _MAX_ITEMS), schema.get("minItems", 0)
        )
    return bound


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is not JSON")


def _allows_strict(schema: object) -> bool:
    """Return whether every object in the schema names all its properties as required and allows no others."""
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
