"""Structured answers: the JSON Schemas that models are asked with, and what is read from answers that do not follow them.

A schema says what to answer, and nothing that only programmers read.
"""

import json
import math
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import cache
from typing import Annotated, Any, Final, TypeVar

from pydantic import BaseModel, BeforeValidator, ValidationError, ValidatorFunctionWrapHandler
from pydantic_core import PydanticUseDefault, from_json

M = TypeVar("M", bound=BaseModel)
_FENCED: Final = re.compile(r"\s*```\w*\n(.*)\n```\s*", re.DOTALL)


def prompt_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of a model without titles and docstrings, and with the parts that it refers to in their places.

    Descriptions of fields stay: they say what to write. A model that refers to itself has none.
    """
    schema: dict[str, Any] = from_json(_create_schema(model))  # a new one, as callers may bound it further
    return schema


@cache
def _create_schema(model: type[BaseModel]) -> str:
    """Return the schema as text, made once for each model, as calls wait for it."""
    schema = model.model_json_schema()
    return schema_text(_without_titles(schema, schema.get("$defs", {})))


def schema_text(schema: Mapping[str, Any]) -> str:
    """Return a schema as the text that a model is asked with."""
    return json.dumps(schema, ensure_ascii=False)


def _without_titles(schema: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_without_titles(each, definitions) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        own = {key: value for key, value in schema.items() if key != "$ref"}
        return {**_without_titles(definitions[schema["$ref"].rpartition("/")[2]], definitions), **own}
    plain = {
        key: _without_titles(value, definitions)
        for key, value in schema.items()
        if key not in {"title", "$defs"}
    }
    if "properties" in schema:
        plain.pop("description", None)  # the docstring of a model
        plain["properties"] = {
            key: _without_titles(each, definitions) for key, each in schema["properties"].items()
        }
    return plain


def default_if_invalid(given: Any, read: ValidatorFunctionWrapHandler) -> Any:
    """Validate a field, and leave it at its default if that fails: it is absent then, and never made up."""
    try:
        return read(given)
    except ValidationError:
        raise PydanticUseDefault from None


def stripped_or_empty(given: Any) -> str:
    """Return a text without white space around it; empty for anything else."""
    return given.strip() if isinstance(given, str) else ""


def line_or_empty(given: Any) -> str:
    """Return a text as one line; empty for anything else."""
    return " ".join(given.split()) if isinstance(given, str) else ""


def number_or_none(given: Any, low: float, high: float) -> float | None:
    """Return a number in this range; None for anything else."""
    # Compared before it is converted: a number of 309 digits is no float, and NaN is in no range.
    return float(given) if _is_number(given) and low <= given <= high else None


def whole_or_none(given: Any, low: float, high: float) -> int | None:
    """Return a whole number in this range; None for anything else."""
    number = number_or_none(given, low, high)
    return int(number) if number is not None and number.is_integer() else None


def clamped_or_none(given: Any, low: float, high: float) -> float | None:
    """Return a number cut to this range; None for anything else, also for NaN and Infinity."""
    if not _is_number(given) or (isinstance(given, float) and not math.isfinite(given)):
        return None
    return float(min(max(given, low), high))


def _is_number(given: Any) -> bool:
    return isinstance(given, int | float) and not isinstance(given, bool)


def valid_items(model: type[M], given: Any) -> list[M]:
    """Return those entries of a list that validate; none if it is no list."""
    read = []
    for each in given if isinstance(given, list) else []:
        with suppress(ValidationError):
            read.append(model.model_validate(each))
    return read


StrippedText = Annotated[str, BeforeValidator(stripped_or_empty)]
Line = Annotated[str, BeforeValidator(line_or_empty)]
YesOrNo = Annotated[bool | None, BeforeValidator(lambda given: given if isinstance(given, bool) else None)]
"""None unless it is plainly given."""


def extract_text(text: str) -> str:
    """Return the text itself, or, if it is JSON, in a fence or not, the texts in it as Markdown."""
    fenced = _FENCED.fullmatch(text)
    try:
        value = from_json(fenced[1] if fenced else text)
    except ValueError:
        return text
    try:
        return _to_markdown(value) if isinstance(value, dict | list | str) else text
    except RecursionError:
        return text


def _to_markdown(value: Any) -> str:
    if isinstance(value, dict):
        said = ((key, _to_markdown(each)) for key, each in value.items())
        return "\n\n".join(f"{key}: {words}" for key, words in said if words)
    if isinstance(value, list):
        return "\n".join(f"- {words}" for words in map(_to_markdown, value) if words)
    return value.strip() if isinstance(value, str) else ""
