"""An answer as it comes in: events or one piece, with a bound on its size and on the time to its first sign of life."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Any, Final, TypeVar

import httpx2

from parley.gateway.airlock import Airlock
from parley.gateway.errors_table import TIMEOUT, UNREADABLE_ANSWER, AttemptFailed
from parley.gateway.sse import EventReader
from parley.gateway.wire import Reader

__all__ = ["Heard", "OnText", "read_events", "read_whole"]

_MAX_BODY_BYTES: Final = 16 * 1024 * 1024
_MAX_ERROR_BYTES: Final = 16 * 1024
"""As they come; compressed they may stand for a thousand times as many."""

T = TypeVar("T")
OnText = Callable[[str], None]


class Heard:
    """Hears the text of one answer; the first of it, or of what it asks of a tool, has to come in time."""

    def __init__(self, on_text: OnText | None, seconds: float | None) -> None:
        self._on_text = on_text
        self._seconds = seconds
        self._timeout = asyncio.timeout(seconds)
        self._alive = seconds is None
        self.characters = 0

    def __call__(self, text: str) -> None:
        """More text, clean."""
        self.is_alive()
        self.characters += len(text)
        if self._on_text is not None:
            self._on_text(text)

    def is_alive(self) -> None:
        """The answer has begun: its first sign of life is not waited for any more."""
        if not self._alive:
            self._alive = True
            self._timeout.reschedule(None)

    async def within(self, reading: Coroutine[Any, Any, T]) -> T:
        """What the reading comes to. Raises AttemptFailed if there is no text in time."""
        try:
            async with self._timeout:
                return await reading
        except TimeoutError:
            if not self._timeout.expired():
                raise
            raise AttemptFailed(TIMEOUT, f"no text within {self._seconds:g} s") from None


async def read_events(
    response: httpx2.Response, reading: Reader, airlock: Airlock, pieces: list[str], heard: Heard
) -> None:
    """Reads a stream to its end, or until the airlock is full; what is clean is added to `pieces` and heard."""
    events = EventReader()
    async for chunk in response.aiter_bytes():
        raw = "".join([reading.event(event) for event in events.feed(chunk)])
        if raw:
            _pass_on(airlock.feed(raw), pieces, heard)
        elif reading.reply.tool_begun:
            heard.is_alive()
        if airlock.full:
            return  # more would only be thrown away; closing the stream tells the endpoint
    _pass_on(airlock.feed("".join([reading.event(event) for event in events.end()])), pieces, heard)


def _pass_on(text: str, pieces: list[str], heard: Heard) -> None:
    if text:
        pieces.append(text)
        heard(text)


async def read_whole(response: httpx2.Response) -> dict[str, Any]:
    """The JSON object of an answer that came in one piece. Raises AttemptFailed."""
    received = bytearray()
    async for chunk in response.aiter_bytes():
        received += chunk
        if len(received) > _MAX_BODY_BYTES:
            raise AttemptFailed(UNREADABLE_ANSWER, "the answer is too large")
    try:
        answer = json.loads(received.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        raise AttemptFailed(UNREADABLE_ANSWER, "the answer is not JSON") from None
    if not isinstance(answer, dict):
        raise AttemptFailed(UNREADABLE_ANSWER, "the answer is not a JSON object")
    return answer


async def bound_error(response: httpx2.Response) -> None:
    """Has the answer end early unless it is a success: the client reads whatever is said of an error, to its end."""
    if not response.is_success and isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _Beginning(response.stream)


class _Beginning(httpx2.AsyncByteStream):
    def __init__(self, whole: httpx2.AsyncByteStream) -> None:
        self._whole = whole

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = _MAX_ERROR_BYTES
        async for chunk in self._whole:
            yield chunk[:left]
            left -= len(chunk)
            if left <= 0:
                return

    async def aclose(self) -> None:
        await self._whole.aclose()
