"""The body of a request: its JSON, and how that is sent, by the piece where it is long, so that others get their turn in between."""

import json
from collections.abc import AsyncIterator, Iterator, Mapping
from typing import Any, Final

__all__ = ["request_json", "sendable"]

_PIECE: Final = 256 * 1024
"""Characters or bytes; while so many are written, the interpreter does nothing else for 4 ms at most."""


def request_json(given: Mapping[str, Any]) -> bytes:
    """Return a request's body. Its long texts are those of its lists: of messages, and of what tools have said."""
    pieces: list[str] = []
    for name, value in given.items():
        pieces += [",", _plain(name), ":", *(_written(value) if isinstance(value, list) else [_plain(value)])]
    return b"".join(each.encode() for each in ("{", *pieces[1:], "}"))


def sendable(body: bytes) -> tuple[bytes | AsyncIterator[bytes], dict[str, str]]:
    """Return what a client is given to send a body, and the headers that go with that."""
    if len(body) <= _PIECE:
        return body, {}
    return _pieces(body), {"Content-Length": str(len(body))}


async def _pieces(body: bytes) -> AsyncIterator[bytes]:
    for start in range(0, len(body), _PIECE):
        yield body[start : start + _PIECE]


def _written(value: object) -> Iterator[str]:
    if isinstance(value, list):
        yield "["
        for place, each in enumerate(value):
            yield "," if place else ""
            yield from _written(each)
        yield "]"
    elif isinstance(value, dict):
        yield "{"
        for place, (name, each) in enumerate(value.items()):
            yield f"{',' if place else ''}{_plain(name)}:"
            yield from _written(each)
        yield "}"
    elif isinstance(value, str) and len(value) > _PIECE:
        yield '"'
        for start in range(0, len(value), _PIECE):
            yield _plain(value[start : start + _PIECE])[1:-1]
        yield '"'
    else:
        yield _plain(value)


def _plain(value: object) -> str:
    return _ENCODER.encode(value)


_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"))
