"""Reading a JSON value as its schema means it: models write `"8"` for 8, one text for a list, and keys of their own.

Only the form changes. What was asked for and not given stays absent; but for lists, of which none is an empty one.
"""

import math
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, Final, TypeGuard

from parley.gateway.prompt.bounded_work import CHARACTERS, limit_work, take_work
from parley.gateway.prompt.read_json import NotJson, decode
from parley.gateway.prompt.sanitizer import clean_value

Schema = Mapping[str, Any]

_MAX_REFERENCES: Final = 8
_MAX_WRAPPERS: Final = 3
_MAX_WALK: Final = 256
_MAX_LEVELS: Final = 6
"""Values of an answer among which the form is looked for, and levels of them."""
_NOTHING: Final = frozenset({"", "-", "none", "none.", "n/a", "null", "nothing", "nothing.", "[]"})
_TRUTHS: Final[Mapping[str, bool]] = {"true": True, "yes": True, "false": False, "no": False}
_BULLET: Final = re.compile(r"[ \t]*(?:[-*•+]|\d{1,3}[.)])[ \t]+")
_NUMBER: Final = re.compile(
    r"\s?[~≈]?\s?(?P<number>[+-]?\d{1,15}(?:\.\d{1,15})?)"
    r"\s?(?:(?P<percent>%|percent)|(?:/|out of|of)\s?(?P<all>\d{1,9}))?\s?\.?\s?",
    re.IGNORECASE,
)


def fit_value(value: Any, schema: Schema) -> Any:
    """Return the value as the schema means it, as far as that is clear. The value itself is left as it is.

    Raise TooMuchWorkError if there is too much of it for the schema.
    """
    with limit_work():
        return _fit(value, schema, schema)


def _fit(value: Any, schema: Any, root: Schema) -> Any:
    schema = _resolve(schema, root)
    kind = schema.get("type")
    fit = _FITS.get(kind) if isinstance(kind, str) else None
    if fit is None:
        return value
    if isinstance(value, str) and kind in {"object", "array"}:
        value = _parse_text(value, kind)
    return fit(value, schema, root)


def _resolve(schema: Any, root: Schema) -> Schema:
    """Return what a reference inside of the schema leads to; nothing if it leads nowhere."""
    for _ in range(_MAX_REFERENCES):
        if not isinstance(schema, Mapping):
            return {}
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return schema
        take_work(1 + len(reference) // CHARACTERS)
        schema = root
        for name in reference.removeprefix("#").strip("/").split("/"):
            schema = schema.get(name) if isinstance(schema, Mapping) else None
    return {}


def _parse_text(text: str, kind: str) -> Any:
    """Return the object or list that a text holds as JSON, or else the text."""
    try:
        value = clean_value(decode(text))
    except (NotJson, RecursionError):
        return text
    return value if isinstance(value, dict if kind == "object" else list) else text


def _fit_object(value: Any, schema: Schema, root: Schema) -> Any:
    properties = schema.get("properties")
    if not isinstance(properties, Mapping):
        return value
    value = _unwrap(value, properties)
    if schema is root:
        value = _find_form(value, schema)
    if not isinstance(value, dict):
        return value
    named = _match_names(value, properties)
    if schema is root:
        named = {key: each for key, each in named.items() if not _repeats(each, properties.get(key))}
        named = _name_missing_text(named, schema)
    if schema.get("additionalProperties") is False:
        named = {key: each for key, each in named.items() if key in properties}
    required = schema.get("required", ())
    take_work(_measure(required))
    given: dict[str, Any] = {}
    for key, each in _scale_shares(named, properties, root).items():
        asked = properties.get(key, {})
        if each is None and _resolve(asked, root).get("type") not in _MAY_BE_NOTHING:
            continue
        given[key] = _fit(each, asked, root)
    for key in required:
        if key not in given and _resolve(properties.get(key), root).get("type") == "array":
            given[key] = []
    return given


def _unwrap(value: Any, properties: Schema) -> Any:
    """Return the object inside of a list or an object that holds nothing else; else the value."""
    inner = value
    for _ in range(_MAX_WRAPPERS):
        if isinstance(inner, list):
            entries = _join_entries(inner, properties)
            if entries or len(inner) != 1:
                return entries or value
            inner = inner[0]
        elif isinstance(inner, dict):
            if len(inner) != 1 or _match_names(inner, properties).keys() & properties:
                return inner
            (inner,) = inner.values()
        else:
            break
    return inner if isinstance(inner, dict) else value


def required_texts(schema: Schema) -> list[str]:
    """Return the texts of an object that may not be empty, by name: without them there is no answer."""
    properties = schema.get("properties", {})
    return [name for name in schema.get("required", ()) if _must_say_something(properties.get(name))]


def _must_say_something(schema: Any) -> bool:
    return isinstance(schema, Mapping) and schema.get("type") == "string" and bool(schema.get("minLength"))


def _find_form(value: Any, schema: Schema) -> Any:
    """Return the object that fills the form, wherever in the value it is or in how many parts; else the value.

    It has half of what is required, so that an object that only resembles the form is not taken for it. What stands around it and
    is asked for too is kept.
    """
    properties, required = schema["properties"], schema.get("required", ())
    outer = _own_fields(value, properties)
    if outer and all(name in outer for name in required_texts(schema)):
        return value if isinstance(value, dict) else outer
    inner = max((_own_fields(each, properties) for each in _walk(value)), key=len, default={})
    is_form = len(inner) > len(outer) and 2 * len(inner) >= len(required) > 0
    return {**outer, **inner} if is_form else value


def _own_fields(value: Any, properties: Schema) -> dict[str, Any]:
    """Return what an object has of the form, by the form's own names; of a list, what all of its objects have.

    What only repeats the schema is left out.
    """
    fields: dict[str, Any] = {}
    for each in value if isinstance(value, list) else [value]:
        if isinstance(each, dict):
            named = _match_names(each, properties)
            own = {key: given for key, given in named.items() if key in properties}
            fields |= {key: given for key, given in own.items() if not _repeats(given, properties[key])}
    return fields


def _repeats(given: Any, schema: Any) -> bool:
    """Return whether what was given for a field is the field's own schema."""
    return (
        isinstance(given, dict)
        and isinstance(schema, Mapping)
        and "type" in schema
        and given.get("type") == schema["type"]
    )


def _walk(value: Any) -> Iterator[Any]:
    """Yield a value and what is in it: objects, lists, and texts that hold one, the outer ones first, as far as is usual."""
    level, left = [value], _MAX_WALK
    for _ in range(_MAX_LEVELS):
        inner: list[Any] = []
        for each in level[:left]:
            parsed = _parse_text(each, "object") if isinstance(each, str) and "{" in each else each
            if isinstance(parsed, dict | list):
                yield parsed
                inner += parsed.values() if isinstance(parsed, dict) else parsed
        left = max(left - len(level), 0)
        level = inner


def _name_missing_text(value: dict[str, Any], schema: Schema) -> dict[str, Any]:
    """Return the object with the one text that has a name of its own under the name of the one that is missing."""
    properties, required = schema["properties"], schema.get("required", ())
    missing = [name for name in required_texts(schema) if name not in value]
    others = [key for key, each in value.items() if key not in properties and isinstance(each, str)]
    known = len(value.keys() & properties.keys())
    if len(missing) != 1 or len(others) != 1 or 2 * known < len(required):
        return value
    return {missing[0] if key == others[0] else key: each for key, each in value.items()}


def _join_entries(entries: list[Any], properties: Schema) -> dict[str, Any]:
    """Return the object that a list such as `[{"agent": "A", "score": 8}]` stands for; nothing if it is none."""
    found: dict[str, Any] = {}
    for entry in entries:
        if not isinstance(entry, dict) or entry.keys() & properties:
            return {}
        names = [
            name
            for each in entry.values()
            if isinstance(each, str)
            for name in _match_names({each: 0}, properties)
            if name in properties
        ]
        numbers = [each for each in entry.values() if _is_number(each)]
        if len(names) != 1 or len(numbers) != 1:
            return {}
        found[names[0]] = numbers[0]
    return found


def _match_names(value: dict[str, Any], properties: Schema) -> dict[str, Any]:
    """Return the object with the schema's own keys for `Open questions` and `openQuestions`, and `A` for `agent A`."""
    take_work(_measure(value) + _measure(properties))
    missing = {_normalize_key(key): key for key in properties if key not in value}
    named = dict(value)
    for key in value:
        if key in properties or not missing:
            continue
        last = re.split(r"[\s_-]", key.rstrip())[-1]
        asked = missing.pop(_normalize_key(key), None) or missing.pop(_normalize_key(last), None)
        if asked is not None:
            named[asked] = named.pop(key)
    return named


def _measure(names: Collection[str]) -> int:
    return len(names) + sum(map(len, names)) // CHARACTERS


def _normalize_key(key: str) -> str:
    return "".join(letter for letter in key.casefold() if letter.isalnum())


def _scale_shares(value: dict[str, Any], properties: Schema, root: Schema) -> dict[str, Any]:
    """Return the object with 85 for 0.85 if a whole number from 0 to 100 is asked for.

    A 1 could be either; so all such numbers of an object have to be shares, and one of them has to be written as one.
    """
    wholes = {}
    for key, asked in properties.items():
        whole = _get_scale(_resolve(asked, root))
        if whole and key in value:
            wholes[key] = (_parse_plain_number(value[key]), whole)
    numbers = [number for number, _ in wholes.values()]
    if not any(isinstance(number, float) for number in numbers):
        return value
    if not all(number is not None and 0 <= number <= 1 for number in numbers):
        return value
    return value | {key: number * whole for key, (number, whole) in wholes.items() if number is not None}


def _get_scale(schema: Schema) -> int:
    """Return the largest number if whole ones from 0 or 1 are asked for; else 0."""
    whole = schema.get("maximum")
    if schema.get("type") != "integer" or schema.get("minimum") not in {0, 1} or not isinstance(whole, int):
        return 0
    return whole if whole > 1 else 0


def _parse_plain_number(value: Any) -> int | float | None:
    value = _get_single_number(value)
    if isinstance(value, str):
        match = _NUMBER.fullmatch(value)
        if match is None or match["percent"] or match["all"]:
            return None
        value = float(match["number"]) if "." in match["number"] else int(match["number"])
    return value if _is_number(value) else None


def _is_number(value: Any) -> TypeGuard[int | float]:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _get_single_number(value: Any) -> Any:
    """Return the one number in a list or an object such as `{"score": 8, "why": "…"}`; else the value."""
    if isinstance(value, dict | list):
        numbers = [
            each for each in (value.values() if isinstance(value, dict) else value) if _is_number(each)
        ]
        return numbers[0] if len(numbers) == 1 else value
    return value


def _fit_number(value: Any, schema: Schema, root: Schema) -> Any:
    del root
    value = _get_single_number(value)
    if not isinstance(value, str):
        return value
    match = _NUMBER.fullmatch(value)
    if match is None:
        return value
    number, whole = float(match["number"]), schema.get("maximum")
    parts = 100.0 if match["percent"] else float(match["all"] or 0)
    if not (match["percent"] or match["all"]):
        return number if "." in match["number"] else int(match["number"])
    return number / parts * whole if parts and _is_number(whole) else value


def _fit_integer(value: Any, schema: Schema, root: Schema) -> Any:
    value = _fit_number(value, schema, root)
    if isinstance(value, float) and math.isfinite(value):
        # Not a half to the even one: what is larger stays at least as large. A product such as 0.29 * 100 is just below.
        return math.floor(round(value, 9) + 0.5)
    return value


def _fit_boolean(value: Any, schema: Schema, root: Schema) -> Any:
    del schema, root
    if isinstance(value, str):
        return _TRUTHS.get(value.strip().casefold(), value)
    return bool(value) if _is_number(value) and value in {0, 1} else value


def _fit_string(value: Any, schema: Schema, root: Schema) -> Any:
    del root
    if isinstance(value, list) and len(value) == 1:
        (value,) = value
    options = schema.get("enum")
    if isinstance(options, list):
        texts, said = [each for each in options if isinstance(each, str)], _fold_case(value)
        take_work(len(options) + _measure(texts))
        same = [each for each in texts if each.casefold() == said]
        return same[0] if len(same) == 1 else value
    if value is None:
        return "" if not schema.get("minLength") else value
    text = value if isinstance(value, str | bool) else _to_text(value)
    says_something = text if isinstance(text, bool) else any(map(str.isalnum, text))
    return text if says_something or not schema.get("minLength") else ""


def _fold_case(value: Any) -> Any:
    return value.strip().casefold() if isinstance(value, str) else value


def _to_text(value: Any) -> str:
    """Return a value as a text for people (CommonMark)."""
    if isinstance(value, list):
        words = [_to_text(each) for each in value if each is not None]
        return words[0] if len(words) == 1 else "\n".join(f"- {each}" for each in words)
    if isinstance(value, dict):
        return "\n".join(f"{key}: {_to_text(each)}" for key, each in value.items() if each is not None)
    return str(value)


def _fit_array(value: Any, schema: Schema, root: Schema) -> Any:
    items = _resolve(schema.get("items"), root)
    of_texts = items.get("type") == "string"
    if value is None:
        value = []
    elif isinstance(value, str):
        value = _split_items(value)
    elif isinstance(value, dict):
        value = _to_entries(value) if of_texts else [value] if value else []
    elif not isinstance(value, list):
        value = [value]
    found = [_fit(each, items, root) for each in value if each is not None]
    if of_texts:
        found = [each for each in found if not isinstance(each, str) or each.strip()]
    longest = schema.get("maxItems")
    return found[:longest] if isinstance(longest, int) else found


def _to_entries(value: dict[str, Any]) -> list[str]:
    return [f"{key}: {_to_text(each)}" for key, each in value.items() if each is not None]


def _split_items(text: str) -> list[str]:
    """Return the items of a list that was written as one text."""
    if text.strip().casefold() in _NOTHING:
        return []
    lines = [line for line in text.splitlines() if line.strip()]
    if not any(_BULLET.match(line) for line in lines):
        return [text.strip()]
    items: list[list[str]] = []
    for line in lines:
        bullet = _BULLET.match(line)
        if bullet is None and items:
            items[-1].append(line)
        else:
            items.append([line[bullet.end() :] if bullet else line])
    return ["\n".join(item).strip() for item in items]


_MAY_BE_NOTHING: Final = ("string", "array", None)
_FITS: Final[Mapping[str | None, Callable[[Any, Schema, Schema], Any]]] = {
    "object": _fit_object,
    "array": _fit_array,
    "string": _fit_string,
    "integer": _fit_integer,
    "number": _fit_number,
    "boolean": _fit_boolean,
}
