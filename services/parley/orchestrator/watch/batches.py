"""What watchers of a debate get at a time, put together once for all who are at the same place."""

from collections import OrderedDict
from collections.abc import Iterator, Sequence
from typing import Final

from parley.orchestrator.log.bare_spec import bare_event
from parley.orchestrator.log.envelope import Envelope
from parley.orchestrator.watch.live_text import LiveText
from parley.v1.orchestrator_pb2 import StepDelta

_BATCH_BYTES: Final = 64 * 1024
"""Bytes of text and events that are sent together. A larger event is sent alone: it may fill a message."""
_KEPT: Final = 8
"""Places that are kept. Those who are woken one after the other are at one or two."""

Batch = tuple[StepDelta | Envelope, ...]
"""What was there at once: text of steps in flight, then events that follow on each other."""
Place = tuple[LiveText, int, int, int, int, bool]
"""Where a watcher is: a text, from where to where it is missing; the last event that it has, and the last that there is; whether it asks for batches."""


class KeptBatches:
    """What the last watchers got, by their places."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Place, tuple[Batch, ...]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._kept)

    def get(self, place: Place) -> tuple[Batch, ...] | None:
        """Return what a watcher got at this place; None if it is not kept."""
        return self._kept.get(place)

    def keep(self, place: Place, batches: tuple[Batch, ...]) -> None:
        """Keep what the watchers at a place get."""
        self._kept[place] = batches
        if len(self._kept) > _KEPT:
            self._kept.popitem(last=False)

    def clear(self) -> None:
        """Keep nothing."""
        self._kept.clear()


def put_together(pieces: Sequence[StepDelta], events: Sequence[Envelope]) -> Iterator[Batch]:
    """Yield what is sent together: the text, then events, as many at a time as `_BATCH_BYTES`, or a larger one."""
    batch: list[StepDelta | Envelope] = list(pieces)
    size = sum(piece.ByteSize() for piece in pieces)
    for event in map(bare_event, events):
        bytes_more = len(event.entry) or event.message.ByteSize()
        if batch and size + bytes_more > _BATCH_BYTES:
            yield tuple(batch)
            batch, size = [], 0
        batch.append(event)
        size += bytes_more
    if batch:
        yield tuple(batch)


def yield_one_by_one(pieces: Sequence[StepDelta], events: Sequence[Envelope]) -> Iterator[Batch]:
    """Yield each piece of text and each event alone."""
    for piece in pieces:
        yield (piece,)
    for event in events:
        yield (bare_event(event),)
