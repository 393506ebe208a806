"""What one watch of a debate brings, for all streams that follow the debate together.

It is read and written as text once. The stream that is ahead of the others sets the pace of the reading; so much is kept for those behind.
"""

import asyncio
from collections.abc import AsyncIterator
from contextvars import Context
from typing import Any, Final

import grpc
from msgspec import Struct

from parley.edge.calls import to_error
from parley.edge.event_texts import EventText, write_text
from parley.runtime.tasks import stop_task
from parley.runtime.wake_queue import WakeGroup, WakeQueue

_AHEAD_BYTES: Final = 64 * 1024
"""Of text that no stream has taken yet. If there is more, the watch is not read."""
_KEPT_BYTES: Final = 64 * 1024
"""Of text that is kept for each stream, since some are behind the first one."""
_MOST_KEPT_BYTES: Final = 8 * 1024 * 1024
_SPARE_BYTES: Final = 16 * 1024
"""Of text that is kept although all streams have taken it, for those that come."""
_WRITTEN_BYTES: Final = 64 * 1024
"""Of text that a stream takes at a time."""


class FellBehindError(Exception):
    """What a stream needs next is no longer kept."""


class _Kept(Struct, frozen=True):
    each: EventText
    through: int
    """The sequence of the newest event, this one included."""

    def is_new_after(self, last: int) -> bool:
        return self.each.sequence > last if self.each.sequence else self.through >= last


class Place:
    """Where one stream is: the number of the next text, and the sequence of the last event that it has."""

    def __init__(self, position: int, last: int) -> None:
        self.position = position
        self.last = last
        self.news = asyncio.Event()


class Broadcast:
    """One watch, and the streams that follow it. It runs from its beginning until it is over or the last stream leaves.

    Attributes:
        call: The call of the watch.
        is_over: Whether it has ended or failed. No text follows then.
    """

    def __init__(self, call: Any, messages: AsyncIterator[bytes], after: int, queue: WakeQueue) -> None:
        """Read a watch after a sequence. Streams are woken through `queue`."""
        self.call = call
        self.is_over = False
        self._kept: list[_Kept] = []
        self._kept_bytes = self._ahead_bytes = 0
        self._first = self._foremost = 0
        self._last = self._dropped = after
        self._failure: Exception | None = None
        self._places: set[Place] = set()
        self._woken = WakeGroup(queue)
        self._room = asyncio.Event()
        # A new context: the span of the first stream must not apply to the others.
        self._reading = asyncio.create_task(self._read(messages), context=Context())

    def join(self, last: int) -> Place | None:
        """Return a place after the event `last`, or None if what follows it is not kept, or the watch is over."""
        if self.is_over or last < self._dropped:
            return None
        place = Place(self._first, last)
        self._places.add(place)
        self._woken.add(place.news)
        return place

    async def leave(self, place: Place) -> bool:
        """Give up a place; return whether it was the last one, with which the watch ends."""
        self._places.remove(place)
        self._woken.remove(place.news)
        if self._places:
            return False
        self.is_over = True
        self.call.cancel()
        await stop_task(self._reading)
        return True

    async def wait_for_text(self, place: Place) -> bool:
        """Wait until text waits; return False once the watch has ended and all is taken. Raise ParleyError if it failed."""
        while place.position == self._first + len(self._kept):
            if self._failure is not None:
                raise self._failure.with_traceback(None)  # many streams raise it
            if self.is_over:
                return False
            place.news.clear()
            await place.news.wait()
        return True

    def take(self, place: Place) -> bytes:
        """Return all text that waits, up to a size; empty if nothing of it is new. Raise FellBehindError if the next is no longer kept."""
        if place.position < self._first:
            raise FellBehindError
        return b"".join(self._take_waiting(place))

    def _take_waiting(self, place: Place) -> list[bytes]:
        texts, size = list[bytes](), 0
        for kept in self._kept[place.position - self._first :]:
            size += len(kept.each.text)
            if texts and size > _WRITTEN_BYTES:
                break
            self._pass(place, kept)
            if kept.is_new_after(place.last):
                texts.append(kept.each.text)
                place.last = max(place.last, kept.each.sequence)
        return texts

    def _pass(self, place: Place, kept: _Kept) -> None:
        place.position += 1
        if place.position > self._foremost:
            self._foremost = place.position
            self._ahead_bytes -= len(kept.each.text)
            self._room.set()

    async def _read(self, messages: AsyncIterator[bytes]) -> None:
        try:
            async for each in messages:
                self._append(await write_text(each))
                while self._ahead_bytes > _AHEAD_BYTES:
                    self._room.clear()
                    await self._room.wait()
        except grpc.aio.AioRpcError as error:
            self._failure = to_error(error)
        except Exception as error:  # noqa: BLE001 (each stream raises it)
            self._failure = error
        finally:
            self.is_over = True
            self._woken.notify()

    def _append(self, each: EventText) -> None:
        self._last = max(self._last, each.sequence)
        self._kept.append(_Kept(each, self._last))
        self._kept_bytes += len(each.text)
        self._ahead_bytes += len(each.text)
        if self._kept_bytes > _SPARE_BYTES:
            self._drop()
        self._woken.notify()

    def _drop(self) -> None:
        """Drop what all streams have, and of what those behind have not yet what is too much. What no stream has is kept."""
        rearmost = min((each.position for each in self._places), default=self._foremost)
        most, count = min(_KEPT_BYTES * len(self._places), _MOST_KEPT_BYTES), 0
        while self._kept_bytes > (_SPARE_BYTES if self._first + count < rearmost else most):
            if self._first + count >= self._foremost:
                break
            self._kept_bytes -= len(self._kept[count].each.text)
            self._dropped = max(self._dropped, self._kept[count].each.sequence)
            count += 1
        del self._kept[:count]
        self._first += count
