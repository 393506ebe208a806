"""The body of a request in each API, and how it is sent: a long one in pieces, so that other work runs in between."""

import re
from collections.abc import AsyncIterator, Callable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from pydantic_core import to_json

from parley.gateway.wire import chat, responses
from parley.gateway.wire.api import Api, ModelRequest, Reader
from parley.runtime.held_texts import HeldText


def body(api: Api, request: ModelRequest, omitted: frozenset[str]) -> dict[str, Any]:
    """Return the request's JSON; `omitted` names the parameters that this endpoint is known to refuse."""
    given = responses.body(request) if api is Api.RESPONSES else chat.body(request, omitted)
    for name in omitted:
        given.pop(name, None)
    return given


def reader(api: Api) -> Reader:
    """Return a fresh reader for one answer."""
    return responses.ResponsesReader() if api is Api.RESPONSES else chat.ChatReader()


_PIECE: Final = 256 * 1024
"""Characters or bytes; while so many are written, the interpreter does nothing else for 4 ms at most."""


def request_json(
    given: Mapping[str, Any], slots: Mapping[str, HeldText] = MappingProxyType({})
) -> list[bytes]:
    """Return a request's body in parts. Its long texts are those of its lists: of messages, and of what tools have said.

    The texts that belong into the slots are parts that all requests share.

    Raises:
        ValueError: a slot is not there once.
    """
    is_long = _count_characters([each for each in given.values() if isinstance(each, list)]) > _PIECE
    written = b"".join(_write(given)) if is_long else _write_value(given)
    if not slots:
        return [written]
    parts = re.split(b"(" + b"|".join(re.escape(slot.encode()) for slot in slots) + b")", written)
    if sorted(parts[1::2]) != sorted(slot.encode() for slot in slots):
        raise ValueError("each slot must be there once")
    return [
        slots[part.decode()].write(_write_text) if place % 2 else part for place, part in enumerate(parts)
    ]


def _count_characters(value: object) -> int:
    if isinstance(value, str):
        return len(value)
    within = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return sum(map(_count_characters, within))


def _write_text(text: str) -> bytes:
    """Return a text as it stands in JSON, without its quotation marks."""
    return b"".join(to_json(text[at : at + _PIECE])[1:-1] for at in range(0, len(text), _PIECE))


def body_to_send(
    body: Sequence[bytes], on_sent: Callable[[], None] = lambda: None
) -> tuple[bytes | AsyncIterator[bytes], dict[str, str]]:
    """Return what a client is given to send a body, and the headers that go with that. `on_sent` is called once a long one is sent."""
    size = sum(map(len, body))
    if size <= _PIECE:
        return b"".join(body), {}
    return _pieces(body, on_sent), {"Content-Length": str(size)}


async def _pieces(body: Sequence[bytes], on_sent: Callable[[], None]) -> AsyncIterator[bytes]:
    for part in body:
        for start in range(0, len(part), _PIECE):
            yield part[start : start + _PIECE]
    on_sent()


def _write(value: object) -> Iterator[bytes]:
    """Yield the JSON of a value in pieces."""
    if isinstance(value, list):
        yield b"["
        for place, each in enumerate(value):
            yield b"," if place else b""
            yield from _write(each)
        yield b"]"
    elif isinstance(value, Mapping):
        yield b"{"
        for place, (name, each) in enumerate(value.items()):
            yield b"," if place else b""
            yield to_json(name) + b":"
            yield from _write(each)
        yield b"}"
    elif isinstance(value, str):
        yield b'"'
        yield _write_text(value)
        yield b'"'
    else:
        yield _write_value(value)


def _write_value(value: object) -> bytes:
    """Return the JSON of a value. What is no number there, as an endpoint's own reasoning may hold it, is null."""
    return to_json(value, inf_nan_mode="null")
