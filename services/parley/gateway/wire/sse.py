"""Server-sent events of a stream, by the chunk: all that came together is handled together."""

import json
from collections.abc import Iterator
from typing import Any, Final

from parley.gateway.failures import UNREADABLE_ANSWER, Failure

__all__ = ["EventReader"]

MAX_EVENT_BYTES: Final = 8 * 1024 * 1024


class EventReader:
    """Takes the bytes of a stream as they come and gives the JSON objects of its events."""

    def __init__(self) -> None:
        self._rest = bytearray()  # grows in place: a large event comes in many chunks

    def feed(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        """Yield the events that are complete now. Raises Failure for what is not JSON, or is too large."""
        *lines, rest = chunk.split(b"\n")
        if lines and self._rest:
            lines[0] = bytes(self._rest) + lines[0]
            self._rest.clear()
        self._rest += rest
        if len(self._rest) > MAX_EVENT_BYTES:
            raise Failure(UNREADABLE_ANSWER, "an event of the stream is too large")
        # Endpoints of this API write an event's data on one line, which is all that is needed of an event.
        for line in lines:
            if line.startswith(b"data:"):
                yield from self._event(line[5:].strip())

    def end(self) -> Iterator[dict[str, Any]]:
        """Yield the event that the stream ended on without an empty line after it."""
        rest = bytes(self._rest)
        self._rest.clear()
        if rest.startswith(b"data:"):
            yield from self._event(rest[5:].strip())

    def _event(self, data: bytes) -> Iterator[dict[str, Any]]:
        if not data or data == b"[DONE]":
            return
        try:
            event = json.loads(data.decode("utf-8", "replace"))
        except (ValueError, RecursionError):
            raise Failure(UNREADABLE_ANSWER, "an event of the stream is not JSON") from None
        if isinstance(event, dict):
            yield event
