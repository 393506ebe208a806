"""An answer as it comes in: events or one piece, with a bound on its size and on the time to its first sign of life."""

import asyncio
import math
from collections.abc import AsyncIterator, Coroutine, Iterator, Mapping
from typing import Any, Final, Protocol, TypeVar

from msgspec import Struct

from parley.gateway.failures import NO_SUCH_ENDPOINT, TIMEOUT, UNREADABLE_ANSWER, Failure
from parley.gateway.prompt.reasoning import ReasoningFilter
from parley.gateway.prompt.sanitizer import MAX_CHARACTERS, TextSanitizer
from parley.gateway.wire.api import ModelReply, Reader
from parley.gateway.wire.json_fields import read_json
from parley.gateway.wire.key_mask import KeyMask
from parley.gateway.wire.sse import EventDecoder, EventTooLargeError
from parley.gateway.wire.text_frame import TextFrame, find_frame

_MAX_EVENT_CHARACTERS: Final = 8 * 1024 * 1024
_DONE: Final = "[DONE]"
_MAX_FRAMES: Final = 8
"""How many events of an answer are followed at most: where no two of them are alike, more would be in vain."""
_MAX_BODY_BYTES: Final = 16 * 1024 * 1024

T = TypeVar("T")


class Listener(Protocol):
    """Gets a streamed answer as it comes."""

    def mark_alive(self) -> None:
        """Note that the model is at work: it writes, thinks or asks for a tool."""
        ...

    def add_text(self, piece: str) -> None:
        """Add text, clean."""
        ...


class Patience(Struct, frozen=True):
    """Seconds to the first sign of life of an answer, and of silence within it; infinite: for as long as there is time."""

    first: float = math.inf
    silence: float = math.inf


class AnswerMonitor:
    """Watches one answer, which has to begin in time and must not fall silent.

    Signs of life are text, reasoning, and what the model asks of tools. Where an endpoint says that the model thinks and
    not what, its silence is waited out.
    """

    def __init__(self, listener: Listener | None, patience: Patience) -> None:
        self._listener = listener
        self._patience = patience
        self._timeout = asyncio.timeout(None)
        self._ends = self._begins_by = math.inf
        self._timer: asyncio.TimerHandle | None = None
        self._reasoning = 0
        self._alive = False
        self.characters = 0

    def add_text(self, text: str) -> None:
        """Add text, clean."""
        if self._listener is not None:
            self._listener.add_text(text)

    def count(self, characters: int) -> None:
        """Note that so many characters were written, reasoning among them."""
        self._mark_alive()
        self.characters += characters

    def follow(self, reply: ModelReply) -> None:
        """Note what came apart from the text, and that the endpoint was not silent."""
        if reply.reasoning_characters > self._reasoning:
            self.count(reply.reasoning_characters - self._reasoning)
            self._reasoning = reply.reasoning_characters
        elif reply.thinks or reply.tool_begun:
            self._mark_alive()
        self._wait(self._patience.silence if not reply.thinks else math.inf)

    async def run(self, reading: Coroutine[Any, Any, T]) -> T:
        """Return what the reading comes to. Raise Failure if there is no sign of life in time, or silence after it."""
        if self._patience == Patience():
            return await reading
        try:
            async with self._timeout:
                self._begins_by = asyncio.get_running_loop().time() + self._patience.first
                self._wait(self._patience.silence)
                return await reading
        except TimeoutError:
            if not self._timeout.expired():
                raise
            if self._alive or self._patience.silence < self._patience.first:
                raise Failure(TIMEOUT, f"the endpoint was silent for {self._patience.silence:g} s") from None
            raise Failure(TIMEOUT, f"no text within {self._patience.first:g} s") from None
        finally:
            if self._timer is not None:
                self._timer.cancel()

    def _mark_alive(self) -> None:
        if not self._alive:
            self._alive = True
            if self._listener is not None:
                self._listener.mark_alive()

    def _wait(self, seconds: float) -> None:
        """Wait so long from now for what comes next, and for a first sign of life no longer than it has."""
        self._ends = asyncio.get_running_loop().time() + seconds
        if not self._alive:
            self._ends = min(self._ends, self._begins_by)
        if self._timer is None or self._timer.when() > self._ends:
            self._set_timer()

    def _set_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = None
        if self._ends < math.inf:
            self._timer = asyncio.get_running_loop().call_at(self._ends, self._end_or_wait)

    def _end_or_wait(self) -> None:
        """End the answer if nothing has put its end off since the timer was set: to set it for each chunk would cost more than the chunk."""
        self._timer = None
        if asyncio.get_running_loop().time() < self._ends:
            self._set_timer()
        else:
            self._timeout.reschedule(self._ends)


class IncomingText:
    """The text of one answer on its way in: through the sanitizer, without its reasoning and the key, and monitor by the piece."""

    def __init__(
        self, monitor: AnswerMonitor, max_characters: int = MAX_CHARACTERS, key_forms: tuple[str, ...] = ()
    ) -> None:
        """Hide a key, whose forms these are, in what comes."""
        self._sanitizer = TextSanitizer(max_characters)
        self._reasoning = ReasoningFilter()
        self.mask = KeyMask(key_forms)
        self._pieces: list[str] = []
        self._monitor = monitor

    @property
    def full(self) -> bool:
        """Whether text was left out because the sanitizer's limit was reached."""
        return self._sanitizer.full

    def feed(self, raw: str) -> None:
        """Add text that the endpoint sent."""
        self._take(self._sanitizer.feed(raw))

    def end(self) -> str:
        """Return the whole text."""
        self._take(self._sanitizer.end())
        self._pass_on(self.mask.feed(self._reasoning.end()))
        self._pass_on(self.mask.end())
        return "".join(self._pieces)

    @property
    def unclosed(self) -> str:
        """The reasoning that the text began with, without the key, if its end tag never came; else empty."""
        return self.mask.hide(self._reasoning.unclosed)

    def _take(self, clean: str) -> None:
        if clean:
            self._monitor.count(len(clean))
            self._pass_on(self.mask.feed(self._reasoning.feed(clean)))

    def _pass_on(self, text: str) -> None:
        if text:
            self._pieces.append(text)
            self._monitor.add_text(text)


class EventReader:
    """Reads the events of a stream. `done` is set by `[DONE]`; nothing after it is read."""

    def __init__(self) -> None:
        self.done = False
        self._events = EventDecoder(_MAX_EVENT_CHARACTERS)
        self._last = ""
        self._frame: TextFrame | None = None
        self._frames_left = _MAX_FRAMES

    def feed(self, chunk: bytes) -> Iterator[dict[str, Any] | str]:
        """Yield the objects that are complete with this chunk; of those that differ from the followed one in their text alone, that text.

        Raise Failure if an event is not JSON or too large.
        """
        try:
            events = [] if self.done else self._events.feed(chunk)
        except EventTooLargeError:
            raise Failure(UNREADABLE_ANSWER, "an event of the stream is too large") from None
        place = 0
        while place < len(events):
            if self._frame is not None and (texts := self._frame.read(events, place)):
                place += len(texts)
                yield "".join(texts)
                continue
            data = events[place]
            place += 1
            if data == _DONE:
                self.done = True
                return
            elif isinstance(found := _parse(data), dict):  # as nearly all are
                self._last = data
                yield found
            else:
                self._last = ""
                yield from self._read_objects(data)
                if self.done:
                    return

    def follow(self, text: str) -> None:
        """Note that the last object says this text and nothing else, so that later ones that only differ in that need not be parsed."""
        if self._frames_left:
            self._frames_left -= 1
            self._frame = find_frame(self._last, text)

    def end(self) -> Iterator[dict[str, Any] | str]:
        """Yield the object of the last event if the stream ended without an empty line: some endpoints forget it."""
        return self.feed(b"\n\n")

    def _read_objects(self, data: str) -> Iterator[dict[str, Any]]:
        """Yield the object of an event, or several objects: some endpoints put one on each line of one event."""
        parts = [data]
        if "\n" in data and _parse(data) is None:
            parts = data.split("\n")
        for part in parts:
            self.done = part.strip() == _DONE
            if self.done:
                return
            if part.strip():
                found = _parse(part)
                if found is None:
                    raise Failure(UNREADABLE_ANSWER, "an event of the stream is not JSON")
                if isinstance(found, dict):
                    yield found


def _parse(data: str) -> object:
    """Return the value of a JSON text (False for null), None if it is not JSON."""
    try:
        found: object = read_json(data)
    except (ValueError, RecursionError):
        return None
    return False if found is None else found


async def read_events(
    chunks: AsyncIterator[bytes], reading: Reader, text: IncomingText, monitor: AnswerMonitor
) -> None:
    """Read a stream to its end, or until its text is full. It is for `chunks` to give other tasks their turn."""
    events = EventReader()
    async for chunk in chunks:
        raw = _read_texts(events, events.feed(chunk), reading)
        if raw:
            text.feed(raw)
        monitor.follow(reading.reply)
        if text.full:
            return  # more would only be thrown away; closing the stream tells the endpoint
        if events.done:
            reading.reply.finished = True  # some endpoints say it by this alone
            return
    text.feed(_read_texts(events, events.end(), reading))
    reading.reply.finished = reading.reply.finished or events.done


def _read_texts(events: EventReader, found: Iterator[dict[str, Any] | str], reading: Reader) -> str:
    """Return the text that these events add."""
    texts = []
    for event in found:
        if isinstance(event, str):
            texts.append(event)
        elif text := reading.read_event(event):
            texts.append(text)
            if reading.says_text_alone(event):
                events.follow(text)
    return "".join(texts)


def is_event_stream(headers: Mapping[str, str]) -> bool:
    """Return whether an answer comes as events by its headers."""
    kind, _, _ = headers.get("content-type", "").partition(";")
    return kind.strip().lower() == "text/event-stream"


async def read_whole(chunks: AsyncIterator[bytes]) -> dict[str, Any]:
    """Return the JSON object of an answer that came in one piece. Raise Failure."""
    received = bytearray()
    async for chunk in chunks:
        received += chunk
        if len(received) > _MAX_BODY_BYTES:
            raise Failure(UNREADABLE_ANSWER, "the answer is too large")
    try:
        answer = read_json(received.decode("utf-8", "replace"))
    except (ValueError, RecursionError):
        if received.lstrip().startswith(b"<"):
            raise Failure(NO_SUCH_ENDPOINT, "a web page answers, and no JSON") from None
        raise Failure(UNREADABLE_ANSWER, "the answer is not JSON") from None
    if not isinstance(answer, dict):
        raise Failure(UNREADABLE_ANSWER, "the answer is not a JSON object")
    return answer
