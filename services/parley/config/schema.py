"""The JSON Schema of the configuration file: `python -P -m parley.config.schema` prints it."""

import json
import sys
from typing import Any

from pydantic import TypeAdapter
from pydantic.alias_generators import to_camel

from parley.config.entries import BY_WORD, PASSED_OVER, RENAMED, FileEntry


def schema() -> dict[str, Any]:
    """Return the schema (2020-12), made of the declarations the reader uses; keys in snake_case and in camelCase."""
    made = TypeAdapter(FileEntry).json_schema()
    definitions = made.pop("$defs")
    root = _with_both_spellings(made)
    root["properties"]["$schema"] = {"type": "string"}
    root["title"] = "Parley configuration"
    definitions = {name: _with_both_spellings(each) for name, each in definitions.items()}
    for kind, names in RENAMED.items():
        properties = definitions[kind.__name__]["properties"]
        for name, key in names.items():
            properties |= dict.fromkeys((name, to_camel(name)), properties[key])
    for kind, keys in PASSED_OVER.items():
        target = root if kind is FileEntry else definitions[kind.__name__]
        for key in keys:
            for spelled in dict.fromkeys((key, to_camel(key))):
                target["properties"][spelled] = {"description": "Has no effect.", "deprecated": True}
    for kind, key in BY_WORD.items():
        whole = definitions[kind.__name__]
        whole["anyOf"] = [{"type": whole.pop("type")}, whole["properties"][key]]
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **root, "$defs": definitions}


def schema_text() -> str:
    """Return the schema as text, as `schema.json` holds it."""
    return json.dumps(schema(), indent=2, sort_keys=True) + "\n"


def _with_both_spellings(definition: dict[str, Any]) -> dict[str, Any]:
    properties = definition["properties"]
    both = dict(properties)
    for key, value in properties.items():
        value.pop("title", None)
        both.setdefault(to_camel(key), value)
    return {**definition, "properties": both, "additionalProperties": False}


if __name__ == "__main__":
    sys.stdout.write(schema_text())
