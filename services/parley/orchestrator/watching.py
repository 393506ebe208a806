"""Following a debate: its events after a sequence and then as they come, text in between, and signs of life."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import aclosing, nullcontext

from parley.orchestrator.deltas import Delta, Deltas
from parley.orchestrator.envelope import GENESIS, Envelope
from parley.orchestrator.journal import log_name, open_records, read_events
from parley.orchestrator.recorded import Recorded
from parley.storage.ports import Log, Record

__all__ = ["Alive", "Watching", "watch"]


class Alive:
    """Nothing happened for a while."""


Watching = Envelope | Delta | Alive


async def watch(
    log: Log, deltas: Deltas | None, tenant: str, debate: str, after: int, heartbeat_seconds: float
) -> AsyncGenerator[Watching, None]:
    """Yield the events after a sequence, in order and without gap, until the last one; and text as it comes.

    A failure ends it too, unless the debate has been resumed since. Without `deltas` there is no text.
    """
    name = log_name(tenant, debate)
    with deltas.listen(debate) if deltas else nullcontext(asyncio.Queue[Delta]()) as pieces:
        # What came before `after` is read too: it may have been the end.
        events = await read_events(log, tenant, debate)
        for event in events:
            if event.sequence > after:
                yield event
        recorded = Recorded.of(events)
        last, before = (events[-1].sequence, events[-1].hash) if events else (0, GENESIS)
        if _over(recorded):
            return
        async with aclosing(_merged(log, name, last, pieces, heartbeat_seconds)) as found:
            async for each in found:
                if not isinstance(each, Record):
                    yield each
                    continue
                for event in open_records([each], last, before):
                    last, before = event.sequence, event.hash
                    recorded.take([event])
                    yield event
                if _over(recorded) and not await log.read(name, last, 1):
                    return


def _over(recorded: Recorded) -> bool:
    return recorded.closed or recorded.failure is not None


async def _merged(
    log: Log, name: str, after: int, pieces: asyncio.Queue[Delta], heartbeat_seconds: float
) -> AsyncGenerator[Record | Delta | Alive, None]:
    """Yield whichever comes first. Text is handed on before records: it belongs to steps that are still open."""
    records = log.follow(name, after)
    record = asyncio.ensure_future(_next(records))
    piece = asyncio.ensure_future(pieces.get())
    try:
        while True:
            done, _ = await asyncio.wait(
                {record, piece}, timeout=heartbeat_seconds, return_when=asyncio.FIRST_COMPLETED
            )
            if not done:
                yield Alive()
            if piece in done:
                yield piece.result()
                while not pieces.empty():
                    yield pieces.get_nowait()
                piece = asyncio.ensure_future(pieces.get())
            if record in done:
                yield record.result()
                record = asyncio.ensure_future(_next(records))
    finally:
        for waiting in (record, piece):
            waiting.cancel()
        await asyncio.gather(record, piece, return_exceptions=True)
        await records.aclose()


async def _next(records: AsyncIterator[Record]) -> Record:
    return await anext(records)
