"""The second look at a debate that is forgotten: what was written of it too late, or was not deleted any more, goes then."""

import asyncio
from datetime import UTC, datetime
from pathlib import Path

import pytest

from parley.memory.approvals import APPROVALS
from parley.memory.debate import point_id
from parley.runtime.tasks import background_task
from parley.storage.ports import Point
from tests.support.manual_clock import ManualClock
from tests.support.stopping_stores import StoppedError, Writes
from tests.unit.memory.outboxes import COLLECTION, KEY, RECORD_WRITES, Ledger, Process, open_process
from tests.unit.memory.test_index import record


async def look_once(process: Process, clock: ManualClock) -> None:
    """Run the background job until it has looked for what is outstanding."""
    async with asyncio.timeout(30), background_task("finishing", process.outbox.run()):
        await clock.sleeping(1)


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(datetime.now(UTC))


async def test_what_a_killed_replica_wrote_of_a_debate_that_another_one_forgot_is_removed_later(
    tmp_path: Path, clock: ManualClock
) -> None:
    async with open_process(tmp_path) as process:
        slow = Ledger(process.ledger.kept, waits=asyncio.Event())
        killed = Process(process.documents, process.vectors, slow).stopping(Writes(len(RECORD_WRITES) - 1))
        recording = asyncio.create_task(killed.memories.record("acme", record("deb-1")))
        await slow.asked.wait()
        assert await Process(process.documents, process.vectors, Ledger(), clock).memories.forget(
            "acme", "deb-1"
        )
        assert slow.waits
        slow.waits.set()
        with pytest.raises(StoppedError):
            await recording
        assert process.ledger.kept, "it was written after it was forgotten"
        sweeping = Process(process.documents, process.vectors, process.ledger, clock)
        await look_once(sweeping, clock)
        assert process.ledger.kept, "whoever wrote it might still be at work"
        clock.advance(601)
        await look_once(sweeping, clock)
        await process.is_whole([])
        process.ledger.asked.clear()
        await look_once(sweeping, clock)
        assert not process.ledger.asked.is_set(), "it is looked for once"


async def test_a_vector_that_a_killed_replica_wrote_late_is_removed_by_a_process_that_has_searched_nothing_yet(
    tmp_path: Path, clock: ManualClock
) -> None:
    async with open_process(tmp_path) as process:
        forgetting = Process(process.documents, process.vectors, process.ledger, clock)
        await forgetting.memories.forget("acme", "deb-1")
        late = Point(point_id(KEY), [1.0, 0.0], {"key": KEY, "tenant": "acme", "domain": ""})
        await process.vectors.prepare(COLLECTION)
        await process.vectors.upsert(COLLECTION, [late])
        clock.advance(601)
        await look_once(Process(process.documents, process.vectors, process.ledger, clock), clock)
        await process.is_whole([])


async def test_a_debate_that_is_forgotten_again_while_its_tombstone_is_looked_at_is_looked_at_once_more(
    tmp_path: Path, clock: ManualClock
) -> None:
    async with open_process(tmp_path) as process:
        forgetting = Process(process.documents, process.vectors, Ledger(), clock)
        await forgetting.memories.forget("acme", "deb-1")
        clock.advance(601)
        waits = asyncio.Event()
        slow = Process(process.documents, process.vectors, Ledger(waits=waits), clock)
        async with asyncio.timeout(30), background_task("finishing", slow.outbox.run()):
            await slow.ledger.asked.wait()
            await forgetting.memories.forget("acme", "deb-1")
            waits.set()
            await clock.sleeping(1)
        slow.ledger.asked.clear()
        clock.advance(601)
        await look_once(slow, clock)
        assert slow.ledger.asked.is_set()


async def test_a_debate_whose_forgetting_was_killed_before_its_mark_is_forgotten_later(
    tmp_path: Path, clock: ManualClock
) -> None:
    async with open_process(tmp_path) as process:
        await process.memories.record("acme", record("deb-1"))
        await process.memories.rate("acme", "deb-1", 1, 1)
        killed = Process(process.documents, process.vectors, process.ledger, clock).stopping(Writes(1))
        with pytest.raises(StoppedError):
            await killed.memories.forget("acme", "deb-1")
        clock.advance(601)
        await look_once(Process(process.documents, process.vectors, process.ledger, clock), clock)
        await process.is_whole([])
        assert not await process.documents.find(APPROVALS, {}), "nor is any feedback on it left"
