"""A debate is told as its log tells it now, however it was told before, and only what is new in the log is read."""

from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path

import pytest

from parley.orchestrator.api.folded_debates import FoldedDebates
from parley.orchestrator.api.folding import fold
from parley.orchestrator.log.debate_record import COMPLETED, DebateRecord
from parley.orchestrator.log.index import DEBATES, DebateIndex
from parley.runtime.errors import ParleyError
from parley.storage.opening import open_store
from parley.storage.ports import Record
from parley.v1.event_pb2 import Claimed, Warned
from tests.support.debate_records import create_record
from tests.support.memory_log import MemoryLog, SharedRecords, WrittenLog
from tests.unit.orchestrator.made_logs import CREATED

TENANT, DEBATE, OTHER = "default", "deb-1", "deb-2"
CLAIMED = Claimed(owner="a")


class NotedLog(MemoryLog):
    """Notes from where its records are read."""

    def __init__(self) -> None:
        super().__init__(SharedRecords())
        self.read_after: list[int] = []

    async def read(self, log: str, after: int = 0, limit: int = 1000) -> Sequence[Record]:
        self.read_after.append(after)
        return await super().read(log, after, limit)


@pytest.fixture
def log() -> NotedLog:
    return NotedLog()


@pytest.fixture
async def index(tmp_path: Path) -> AsyncIterator[DebateIndex]:
    async with open_store(f"sqlite:///{tmp_path}", "orchestrator") as store:
        await store.documents.prepare(DEBATES)
        index = DebateIndex(store.documents)
        for debate in (DEBATE, OTHER):
            await index.insert(record(debate))
        yield index


def record(debate: str) -> DebateRecord:
    return create_record(TENANT, debate, datetime(2026, 1, 1, tzinfo=UTC), COMPLETED, open=False)


async def write_log(log: NotedLog, debate: str = DEBATE, *, size: int = 0) -> WrittenLog:
    made = WrittenLog(log, TENANT, debate)
    await made.write(CREATED)
    await made.write(CLAIMED, Warned(message="w" * size))
    return made


async def test_what_was_read_before_is_not_read_again(log: NotedLog, index: DebateIndex) -> None:
    made, folded = await write_log(log), FoldedDebates(log, index)
    before = await folded.get(TENANT, DEBATE)
    assert before == fold(made.events)

    log.read_after.clear()
    assert await folded.get(TENANT, DEBATE) is before
    await made.write(Warned(message="new"))
    assert await folded.get(TENANT, DEBATE) == fold(made.events)
    assert log.read_after == [2, 2]
    assert before.warnings == [""]


async def test_what_is_new_is_told_however_many_records_it_is(log: NotedLog, index: DebateIndex) -> None:
    made, folded = await write_log(log), FoldedDebates(log, index)
    await folded.get(TENANT, DEBATE)
    for number in range(2001):
        await made.write(Warned(message=str(number)))

    assert len((await folded.get(TENANT, DEBATE)).warnings) == 2002


async def test_a_debate_that_was_deleted_is_told_of_no_more(log: NotedLog, index: DebateIndex) -> None:
    await write_log(log)
    folded = FoldedDebates(log, index)
    await folded.get(TENANT, DEBATE)
    found = await index.get(TENANT, DEBATE)
    assert found is not None
    assert await index.remove(found)

    with pytest.raises(ParleyError, match=DEBATE):
        await folded.get(TENANT, DEBATE)


async def test_a_log_that_was_put_in_the_place_of_another_is_told(log: NotedLog, index: DebateIndex) -> None:
    await write_log(log)
    folded = FoldedDebates(log, index)
    await folded.get(TENANT, DEBATE)
    await log.delete(f"{TENANT}/{DEBATE}")
    again = await write_log(log, size=3)

    assert await folded.get(TENANT, DEBATE) == fold(again.events)


async def test_a_debate_of_another_tenant_is_not_told(log: NotedLog, index: DebateIndex) -> None:
    await write_log(log)
    folded = FoldedDebates(log, index)
    await folded.get(TENANT, DEBATE)

    with pytest.raises(ParleyError, match=DEBATE):
        await folded.get("other", DEBATE)


async def test_no_more_is_kept_than_there_is_room_for(log: NotedLog, index: DebateIndex) -> None:
    await write_log(log, size=40_000)
    await write_log(log, OTHER, size=40_000)
    folded = FoldedDebates(log, index, kept_bytes=60_000)
    for debate in (DEBATE, OTHER):
        await folded.get(TENANT, debate)

    log.read_after.clear()
    await folded.get(TENANT, OTHER)
    await folded.get(TENANT, DEBATE)
    assert log.read_after == [2, 0], "the one read last is kept"

    none_kept = FoldedDebates(log, index, kept_bytes=10_000)
    await none_kept.get(TENANT, DEBATE)
    log.read_after.clear()
    await none_kept.get(TENANT, DEBATE)
    assert log.read_after == [0], "what is larger than the room is not kept"
