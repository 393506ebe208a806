"""What both APIs share: the text of a request, the schema it asks for, and a reply before it has a shape."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.support.model_server.rules import ToolCall

BAD_BYTES_MARK = "\ue000"
"""Stands in a text where bytes that are not UTF-8 go out."""
_BAD_BYTES = b"\xff\xfe\xc3"


@dataclass(frozen=True, slots=True)
class Reply:
    """An answer before it has the shape of an API. `cut_short` says that it ended for its length.

    `tokens_out` holds `reasoning_tokens`; `reasoning_hidden` says that its text is not told.
    """

    number: int
    model: str
    text: str
    tool_calls: tuple[ToolCall, ...]
    tokens_in: int
    tokens_out: int
    created: int
    cut_short: bool = False
    reasoning: str = ""
    reasoning_hidden: bool = False
    reasoning_tokens: int = 0


@dataclass(frozen=True, slots=True)
class Stream:
    """A reply as server-sent events: what comes at once, one entry a word, what ends it, and what breaks it off."""

    head: bytes
    pieces: list[bytes]
    tail: bytes
    error: bytes


def encode(value: Any) -> bytes:
    """Return compact JSON, with the bytes that a bad-utf8 fault wants in place of its mark."""
    encoded = json.dumps(value, separators=(",", ":")).encode()
    return encoded.replace(b"\\ue000", _BAD_BYTES) if b"\\ue000" in encoded else encoded


def event(value: Any, name: str = "") -> bytes:
    """Return one server-sent event."""
    data = b"data: " + encode(value) + b"\n\n"
    return b"event: " + name.encode() + b"\n" + data if name else data


def prompt_of(body: Mapping[str, Any]) -> str:
    """Return every text of a Chat, Responses or embeddings request in order, one a line."""
    return "\n".join(_texts(body))


def find_schema(body: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Return the JSON schema the answer shall follow, if the request names one; a free object is `{"type": "object"}`.

    Both places are looked at in both APIs, since some servers want `response_format` on Responses too.
    """
    asked = body.get("response_format")
    if not isinstance(asked, Mapping):
        text = body.get("text")
        asked = text.get("format") if isinstance(text, Mapping) else None
    if not isinstance(asked, Mapping):
        return None
    match asked.get("type"):
        case "json_schema":
            inner = asked.get("json_schema", asked)
            schema = inner.get("schema") if isinstance(inner, Mapping) else None
            return schema if isinstance(schema, Mapping) else {"type": "object"}
        case "json_object":
            return {"type": "object", "properties": {"answer": {"type": "string"}}}
        case _:
            return None


def _texts(body: Mapping[str, Any]) -> Iterator[str]:
    instructions = body.get("instructions")
    if isinstance(instructions, str):
        yield instructions
    for given in (body.get("messages"), body.get("input")):
        if isinstance(given, str):
            yield given
        elif isinstance(given, list):
            for item in given:
                yield from _texts_of_item(item)


def _texts_of_item(item: Any) -> Iterator[str]:
    if isinstance(item, str):
        yield item
    elif isinstance(item, Mapping):
        for name in ("content", "text", "output", "arguments"):
            content = item.get(name)
            if isinstance(content, str):
                yield content
            elif isinstance(content, list):
                for part in content:
                    yield from _texts_of_item(part)
