"""Server-sent events of a stream, by the chunk: all that came together is handled together."""

import codecs
import re
from collections.abc import Iterator
from typing import Any, Final

from openai._streaming import SSEDecoder

from parley.gateway.failures import UNREADABLE_ANSWER, Failure
from parley.gateway.wire.bounded_json import read_json

__all__ = ["EventReader"]

MAX_EVENT_BYTES: Final = 8 * 1024 * 1024
_DONE: Final = "[DONE]"
_EMPTY_LINES: Final = re.compile(r"\n{3,}")


class EventReader:
    """Takes the bytes of a stream as they come and gives the JSON objects of its events.

    The client's own decoder reads the fields of an event. `done` is set by the `[DONE]` that ends a stream; nothing after
    it is read.
    """

    def __init__(self) -> None:
        self.done = False
        self._events = SSEDecoder()
        self._characters = codecs.getincrementaldecoder("utf-8-sig")("replace")  # takes a byte order mark off
        self._after_cr = False
        self._rest: list[str] = []  # joined once its line ends: a large event comes in many chunks
        self._size = 0

    def feed(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        """Yield the events that are complete now. Raises Failure for what is not JSON, or is too large."""
        if not self.done:
            yield from self._read(self._characters.decode(chunk))

    def end(self) -> Iterator[dict[str, Any]]:
        """Yield the event that the stream ended on without an empty line after it."""
        if not self.done:
            yield from self._read(f"{self._characters.decode(b'', final=True)}\n\n")

    def _read(self, text: str) -> Iterator[dict[str, Any]]:
        if self._after_cr and text:
            text = text.removeprefix("\n")
            self._after_cr = False
        if "\r" in text:
            self._after_cr = text.endswith("\r")
            text = text.replace("\r\n", "\n").replace("\r", "\n")
        text = _EMPTY_LINES.sub("\n\n", text)  # they end nothing more, and each would be looked at
        *lines, rest = text.split("\n")
        self._size += len(text)
        for line in lines:
            event = self._events.decode("".join((*self._rest, line)))
            self._rest.clear()
            if event is not None:
                self._size = len(rest)
                yield from self._objects(event.data)
                if self.done:
                    return
        self._rest.append(rest)
        if self._size > MAX_EVENT_BYTES:
            raise Failure(UNREADABLE_ANSWER, "an event of the stream is too large")

    def _objects(self, data: str) -> Iterator[dict[str, Any]]:
        """Yield the object of an event; of several where each has a line of its own and no empty one stands between."""
        parts = [data]
        if "\n" in data and _object(data) is None:
            parts = data.split("\n")
        for part in parts:
            self.done = part.strip() == _DONE
            if self.done:
                return
            if part.strip():
                found = _object(part)
                if found is None:
                    raise Failure(UNREADABLE_ANSWER, "an event of the stream is not JSON")
                if isinstance(found, dict):
                    yield found


def _object(data: str) -> object:
    """Return the JSON value, None for what is none."""
    try:
        found: object = read_json(data)
    except (ValueError, RecursionError):
        return None
    return False if found is None else found
