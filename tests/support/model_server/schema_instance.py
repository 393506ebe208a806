"""Makes up a small valid instance of a JSON schema, the same for the same seed."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil, floor, inf, nextafter
from random import Random
from typing import Any

from tests.support.model_server.words import sentence

_SMALL_UNTIL_DEPTH = 4
_DEEPEST = 40
_FORMATS = {
    "date": "2026-02-03",
    "date-time": "2026-02-03T04:05:06Z",
    "time": "04:05:06Z",
    "duration": "PT5S",
    "email": "ada@example.org",
    "hostname": "example.org",
    "ipv4": "192.0.2.1",
    "uri": "https://example.org/a",
    "uuid": "7d444840-9dc0-41d1-b245-5ffdce74fad2",
}
_PATTERN_TRIES = (
    "a",
    "ada",
    "a-1",
    "agent-1",
    "A",
    "A1",
    "1",
    "12",
    "2026",
    "2026-02-03",
    "1.0",
    "a.b",
    "a/b",
    "a b",
)
_TYPE_BY_KEYWORD = {
    "properties": "object",
    "required": "object",
    "additionalProperties": "object",
    "items": "array",
    "prefixItems": "array",
    "minItems": "array",
    "minLength": "string",
    "maxLength": "string",
    "pattern": "string",
    "format": "string",
    "minimum": "number",
    "maximum": "number",
    "exclusiveMinimum": "number",
    "exclusiveMaximum": "number",
}


class UnsupportedSchemaError(ValueError):
    """The schema asks for something that this maker cannot make up; the text says what."""


def instance(schema: Mapping[str, Any], seed: int) -> Any:
    """Return a valid instance: every property, arrays of two where allowed, numbers within their bounds.

    Raises UnsupportedSchemaError for a pattern it finds no text for, bounds that leave nothing, a reference it
    cannot follow, or a schema that never ends.
    """
    return _Maker(schema, Random(seed)).make(schema, 0)


@dataclass(frozen=True, slots=True)
class _Maker:
    root: Mapping[str, Any]
    random: Random

    def make(self, schema: Mapping[str, Any] | bool, depth: int) -> Any:
        if depth > _DEEPEST:
            raise UnsupportedSchemaError("the schema never ends: a required part contains itself")
        if schema is False:
            raise UnsupportedSchemaError("the schema 'false' allows nothing")
        flat = self._flatten({} if schema is True else schema, depth)
        if "const" in flat:
            return flat["const"]
        if "enum" in flat:
            return self.random.choice(flat["enum"])
        return self._of_type(_type_of(flat), flat, depth)

    def _of_type(self, name: str, schema: Mapping[str, Any], depth: int) -> Any:
        if name in {"object", "array"}:
            return self._object(schema, depth) if name == "object" else self._array(schema, depth)
        if name == "boolean":
            return self.random.random() < 0.5
        if name == "null":
            return None
        plain = {"integer": self._integer, "number": self._number, "string": self._string}
        if name not in plain:
            raise UnsupportedSchemaError(f"unknown type {name!r}")
        return plain[name](schema)

    def _flatten(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        """Follow references and choose among alternatives until only plain keywords are left."""
        flat = dict(schema)
        for _ in range(_DEEPEST):
            if "$ref" in flat:
                flat = _merge(flat, self._referred(flat.pop("$ref")))
            elif "allOf" in flat:
                for part in flat.pop("allOf"):
                    flat = _merge(flat, part)
            elif "anyOf" in flat:
                flat = _merge(flat, self._alternative(flat.pop("anyOf"), depth))
            elif "oneOf" in flat:
                flat = _merge(flat, self._alternative(flat.pop("oneOf"), depth))
            else:
                return flat
        raise UnsupportedSchemaError("the schema never ends: its references go round")

    def _referred(self, reference: str) -> Mapping[str, Any]:
        node: Any = self.root
        if not reference.startswith("#"):
            raise UnsupportedSchemaError(f"reference {reference!r} leaves the schema")
        for step in reference.removeprefix("#").split("/")[1:]:
            name = step.replace("~1", "/").replace("~0", "~")
            if not isinstance(node, Mapping) or name not in node:
                raise UnsupportedSchemaError(f"reference {reference!r} leads nowhere")
            node = node[name]
        if not isinstance(node, Mapping):
            raise UnsupportedSchemaError(f"reference {reference!r} is no schema")
        return node

    def _alternative(self, choices: Sequence[Mapping[str, Any]], depth: int) -> Mapping[str, Any]:
        """Choose a part with something in it, or deep down the one that ends soonest."""
        if depth >= _SMALL_UNTIL_DEPTH:
            return min(choices, key=lambda choice: (choice.get("type") != "null", "$ref" in choice))
        return self.random.choice([choice for choice in choices if choice.get("type") != "null"] or choices)

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        required = schema.get("required", ())
        properties = schema.get("properties", {})
        small = depth >= _SMALL_UNTIL_DEPTH
        made = {
            name: self.make(part, depth + 1)
            for name, part in properties.items()
            if name in required or (not small and part is not False)
        }
        extra = schema.get("additionalProperties", True)
        for name in required:
            if name not in made:
                made[name] = self.make(extra, depth + 1)
        wanted = max(
            schema.get("minProperties", 0), 1 if isinstance(extra, Mapping) and not (made or small) else 0
        )
        for number in range(1, wanted - len(made) + 1):
            made[f"key{number}"] = self.make(extra, depth + 1)
        return made

    def _array(self, schema: Mapping[str, Any], depth: int) -> list[Any]:
        first = schema.get("prefixItems", ())
        items = schema.get("items", True)
        least = schema.get("minItems", 0)
        most = schema.get("maxItems", inf)
        usual = max(len(first), least if depth >= _SMALL_UNTIL_DEPTH or items is False else 2)
        length = int(min(max(usual, least), most))
        made: list[Any] = []
        tries = 0
        while len(made) < length:
            item = self.make(first[len(made)] if len(made) < len(first) else items, depth + 1)
            if not schema.get("uniqueItems") or item not in made:
                made.append(item)
                continue
            tries += 1
            if tries > 100:
                if len(made) >= least:
                    return made
                raise UnsupportedSchemaError(f"found no {least} different items")
        return made

    def _integer(self, schema: Mapping[str, Any]) -> int:
        step = schema.get("multipleOf", 1)
        low, high = _bounds(schema, width=10)
        first, last = ceil(low / step), floor(high / step)
        if first * step <= schema.get("exclusiveMinimum", -inf):
            first += 1
        if last * step >= schema.get("exclusiveMaximum", inf):
            last -= 1
        if first > last:
            raise UnsupportedSchemaError(f"no integer lies between {low} and {high}")
        return int(self.random.randint(first, last) * step)

    def _number(self, schema: Mapping[str, Any]) -> float:
        if "multipleOf" in schema:
            return self._integer(schema) if schema["multipleOf"] >= 1 else 0.0
        low, high = _bounds(schema, width=1)
        below, above = schema.get("exclusiveMinimum", -inf), schema.get("exclusiveMaximum", inf)
        least = max(low, nextafter(below, inf))
        most = min(high, nextafter(above, -inf))
        if least > most:
            raise UnsupportedSchemaError(f"no number lies between {low} and {high}")
        exact = least + (most - least) * self.random.random()
        rounded = round(exact, 2)
        return rounded if least <= rounded <= most else min(max(exact, least), most)

    def _string(self, schema: Mapping[str, Any]) -> str:
        least, most = schema.get("minLength", 0), schema.get("maxLength", inf)
        if "pattern" in schema:
            for text in _PATTERN_TRIES:
                if re.search(schema["pattern"], text) and least <= len(text) <= most:
                    return text
            raise UnsupportedSchemaError(f"found no text for the pattern {schema['pattern']!r}")
        if schema.get("format") in _FORMATS:
            return _FORMATS[schema["format"]]
        text = sentence(self.random, self.random.randint(3, 6))
        while len(text) < least:
            text += " " + sentence(self.random, 4)
        if len(text) > most:
            text = text[: int(most)]
            # A text that ends in a space would not survive a reader that strips it.
            text = text[:-1] + "s" if text.endswith(" ") else text
        return text


def _type_of(schema: Mapping[str, Any]) -> str:
    declared = schema.get("type")
    if isinstance(declared, str):
        return declared
    if isinstance(declared, Sequence) and declared:
        return next((str(name) for name in declared if name != "null"), "null")
    return next((_TYPE_BY_KEYWORD[keyword] for keyword in schema if keyword in _TYPE_BY_KEYWORD), "string")


def _bounds(schema: Mapping[str, Any], width: float) -> tuple[float, float]:
    """Return the inclusive hull of what is allowed, `width` wide where a side is open."""
    low = max(schema.get("minimum", -inf), schema.get("exclusiveMinimum", -inf))
    high = min(schema.get("maximum", inf), schema.get("exclusiveMaximum", inf))
    width = max(width, schema.get("multipleOf", 0) * 2)
    if low == -inf:
        low = min(0.0, high - width) if high != inf else 0.0
    if high == inf:
        high = low + width
    return low, high


def _merge(one: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Join two schemas that must both hold; on a clash of single keywords the narrower bound, else the second."""
    merged = dict(one)
    for keyword, value in other.items():
        if keyword not in merged:
            merged[keyword] = value
        elif keyword in {"properties", "$defs"}:
            merged[keyword] = {**merged[keyword], **value}
        elif keyword in {"required", "allOf"}:
            merged[keyword] = [*merged[keyword], *value]
        elif keyword in {"minimum", "exclusiveMinimum", "minLength", "minItems"}:
            merged[keyword] = max(merged[keyword], value)
        elif keyword in {"maximum", "exclusiveMaximum", "maxLength", "maxItems"}:
            merged[keyword] = min(merged[keyword], value)
        elif keyword == "enum":
            merged[keyword] = [item for item in merged[keyword] if item in value]
        else:
            merged[keyword] = value
    return merged
