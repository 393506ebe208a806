"""Audit logs: one chain a tenant, whoever writes to it and whatever the store does; old parts go, and the chain stays whole."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, timedelta
from typing import Any

import pytest

from parley.orchestrator.audit import writer
from parley.orchestrator.audit.parts import AuditLogs
from parley.orchestrator.audit.reading import AuditFilter, Place, list_page
from parley.orchestrator.audit.writer import AuditWriter
from parley.storage.opening import Store
from parley.storage.ports import (
    Record,
    StoreUnavailableError,
)
from parley.v1.audit_pb2 import (
    AUDIT_ACT_CREATE_DEBATE,
    AUDIT_ACT_DELETE_DEBATE,
    AUDIT_ACT_END_PART,
    AUDIT_OUTCOME_DONE,
    AUDIT_OUTCOME_STARTED,
)
from tests.support.manual_clock import ManualClock
from tests.support.orchestration import until
from tests.support.passing_log import PassingLog
from tests.unit.orchestrator.audit.audit_logs import (
    NOON,
    TENANT,
    list_subjects,
    make_entry,
    open_writer,
    read_chain,
)


class FailingLog(PassingLog):
    """A log that fails as a test wants. `stores`: whether what fails is stored all the same."""

    stores = False
    failures = 0
    appends = reads = 0

    async def read(self, log: str, after: int = 0, limit: int = 1000) -> Sequence[Record]:
        self.reads += 1
        return await super().read(log, after, limit)

    async def append(self, log: str, record: Record, **beside: Any) -> None:
        self.appends += 1
        if self.failures:
            self.failures -= 1
            if self.stores:
                await super().append(log, record, **beside)
            raise StoreUnavailableError("the store is away")
        await super().append(log, record, **beside)


async def test_callers_that_wait_at_the_same_time_share_one_record(store: Store, clock: ManualClock) -> None:
    log = FailingLog(store.log)
    logs = AuditLogs(log, store.documents)
    async with open_writer(logs, clock) as audit, asyncio.TaskGroup() as group:
        for number in range(50):
            group.create_task(audit.write(make_entry(str(number))))
    assert list_subjects(await read_chain(logs)) == [str(number) for number in range(50)]
    assert log.appends == 1


async def test_replicas_that_write_at_the_same_time_make_one_chain(store: Store, clock: ManualClock) -> None:
    logs = AuditLogs(store.log, store.documents)
    async with open_writer(logs, clock) as one, open_writer(logs, clock) as other:

        async def write(audit: AuditWriter, name: str) -> None:
            for number in range(20):
                await audit.write(make_entry(f"{name}{number}"))

        async with asyncio.TaskGroup() as group:
            group.create_task(write(one, "one"))
            group.create_task(write(other, "other"))
    found = list_subjects(await read_chain(logs))
    assert sorted(found) == sorted(f"{name}{number}" for name in ("one", "other") for number in range(20))
    assert [each for each in found if each.startswith("one")] == [f"one{number}" for number in range(20)]


async def test_replicas_that_take_turns_meet_in_one_place_only_the_first_time(
    store: Store, clock: ManualClock
) -> None:
    log = FailingLog(store.log)
    logs = AuditLogs(log, store.documents)
    async with open_writer(logs, clock) as one, open_writer(logs, clock) as other:
        for number in range(5):
            await one.write(make_entry(f"one{number}"))
            await other.write(make_entry(f"other{number}"))
        assert log.appends == 2 * 5 + 2  # each hears of the other from a conflict, and reads on from then
        await one.write(make_entry("first alone"))
        await one.write(make_entry("second alone"))
        reads = log.reads
        await one.write(make_entry("third alone"))
        assert log.reads == reads
        assert log.appends == 2 * 5 + 2 + 3
    assert len(await read_chain(logs)) == 2 * 5 + 3


async def test_what_nobody_waits_for_is_written_a_second_later_and_at_the_end(
    store: Store, clock: ManualClock
) -> None:
    logs = AuditLogs(store.log, store.documents)
    async with open_writer(logs, clock) as audit:
        audit.enqueue(make_entry("reader"))
        await clock.sleeping()
        assert await logs.get_head(TENANT) is None
        clock.advance(1)
        await wait_until_written(logs, 1)
        audit.enqueue(make_entry("last"))
        await audit.flush()
        assert list_subjects(await read_chain(logs)) == ["reader", "last"]


async def wait_until_written(logs: AuditLogs, count: int) -> None:
    async def is_written() -> bool:
        return await logs.get_head(TENANT) is not None and len(await read_chain(logs)) >= count

    await until(is_written, f"{count} entries are written")


@pytest.mark.parametrize("stores", [False, True])
async def test_a_caller_hears_that_its_act_is_not_recorded_and_it_is_recorded_once_when_the_store_is_back(
    store: Store, clock: ManualClock, stores: bool
) -> None:
    log = FailingLog(store.log)
    log.failures, log.stores = 2, stores
    logs = AuditLogs(log, store.documents)
    async with open_writer(logs, clock) as audit:
        started = make_entry("ann")
        with pytest.raises(StoreUnavailableError):
            await audit.write(started)
        ended = make_entry("ann", outcome=AUDIT_OUTCOME_DONE)
        ended.start = started
        audit.enqueue(ended)
        flushing = asyncio.create_task(audit.flush())

        async def is_flushed() -> bool:
            clock.advance(0.2)
            return flushing.done()

        await until(is_flushed, "all entries are written")
        first, second = await read_chain(logs)
    assert (first.outcome, second.outcome) == (AUDIT_OUTCOME_STARTED, AUDIT_OUTCOME_DONE)
    assert second.started_sequence == first.sequence


async def test_while_the_store_is_away_a_bounded_number_waits_and_one_tenant_leaves_room_for_another(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(writer, "_MAX_WAITING", 6)
    audit = AuditWriter(AuditLogs(store.log, store.documents), clock)
    for _ in range(3):
        assert audit.has_room(TENANT)
        audit.enqueue(make_entry())
    assert not audit.has_room(TENANT)
    for _ in range(3):
        assert audit.has_room("beta")
        audit.enqueue(make_entry(tenant="beta"))
    assert not audit.has_room("gamma")


@pytest.mark.usefixtures("small_parts")
async def test_a_log_goes_on_in_its_next_part_also_at_a_replica_that_was_not_there(
    store: Store, clock: ManualClock
) -> None:
    logs = AuditLogs(store.log, store.documents)
    for number in range(4):
        async with open_writer(logs, clock) as audit:
            for _ in range(2):
                await audit.write(make_entry(str(number)))
    found = await read_chain(logs)
    assert list_subjects(found) == ["0", "0", "1", "1", "2", "2", "3", "3"]
    assert sum(each.act == AUDIT_ACT_END_PART for each in found) == 2
    assert await logs.read_part(TENANT, 3)


@pytest.mark.usefixtures("small_parts")
async def test_a_list_is_newest_first_page_by_page_over_all_parts(store: Store, clock: ManualClock) -> None:
    logs = AuditLogs(store.log, store.documents)
    async with open_writer(logs, clock) as audit:
        for number in range(10):
            act = AUDIT_ACT_DELETE_DEBATE if number % 2 else AUDIT_ACT_CREATE_DEBATE
            await audit.write(make_entry("ann" if number < 5 else "bob", act=act))
            clock.advance(1)

    async def list_numbers(wanted: AuditFilter, size: int = 3) -> list[int]:
        found: list[int] = []
        place: Place | None = None
        while True:
            page = await list_page(logs, TENANT, wanted, place, size)
            assert len(page.entries) <= size
            found += [int(each.time.ToDatetime(UTC).timestamp() - NOON.timestamp()) for each in page.entries]
            if page.following is None:
                return found
            place = page.following

    assert await list_numbers(AuditFilter()) == [*range(9, -1, -1)]
    assert await list_numbers(AuditFilter(subject="ann")) == [4, 3, 2, 1, 0]
    assert await list_numbers(AuditFilter(acts=frozenset({AUDIT_ACT_DELETE_DEBATE}))) == [9, 7, 5, 3, 1]
    since, before = NOON + timedelta(seconds=2), NOON + timedelta(seconds=6)
    assert await list_numbers(AuditFilter(since=since, before=before)) == [5, 4, 3, 2]
    assert await list_numbers(AuditFilter(debate_id="deb-20260101-000000-aaaaaaaa")) == []


async def test_a_tenant_without_a_log_has_no_entries(store: Store) -> None:
    page = await list_page(AuditLogs(store.log, store.documents), "none", AuditFilter(), None, 50)
    assert (list(page.entries), page.following) == ([], None)
