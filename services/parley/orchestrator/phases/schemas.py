"""JSON Schemas as models are asked with them: what to answer, and nothing that only programmers read."""

import json
from collections.abc import Mapping
from copy import deepcopy
from functools import cache
from typing import Any

from pydantic import BaseModel

__all__ = ["asked_schema", "schema_text"]


def asked_schema(model: type[BaseModel]) -> dict[str, Any]:
    """Return the schema of a model without titles and docstrings, and with the parts that it refers to in their places.

    Descriptions of fields stay: they say what to write. A model that refers to itself has none.
    """
    return deepcopy(_asked(model))  # whoever asks may bound it further


@cache
def _asked(model: type[BaseModel]) -> dict[str, Any]:
    """Return the schema, made once for each model, as calls wait for it."""
    schema = model.model_json_schema()
    plain: dict[str, Any] = _plain(schema, schema.get("$defs", {}))
    return plain


def schema_text(schema: Mapping[str, Any]) -> str:
    """Return a schema as the text that a model is asked with."""
    return json.dumps(schema, ensure_ascii=False)


def _plain(schema: Any, definitions: Mapping[str, Any]) -> Any:
    if isinstance(schema, list):
        return [_plain(each, definitions) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if "$ref" in schema:
        told = {key: value for key, value in schema.items() if key != "$ref"}
        return {**_plain(definitions[schema["$ref"].rpartition("/")[2]], definitions), **told}
    plain = {
        key: _plain(value, definitions) for key, value in schema.items() if key not in {"title", "$defs"}
    }
    if "properties" in schema:
        plain.pop("description", None)  # the docstring of a model
        plain["properties"] = {key: _plain(each, definitions) for key, each in schema["properties"].items()}
    return plain
