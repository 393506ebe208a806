"""Audit logs: one chain a tenant, whoever writes to it and whatever the store does; old parts go, and the chain stays whole."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, asynccontextmanager
from datetime import UTC, datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from parley.orchestrator.audit import writer
from parley.orchestrator.audit.entries import open_entry
from parley.orchestrator.audit.parts import AUDIT_LOGS, AuditLogs, LogHead
from parley.orchestrator.audit.reading import AuditFilter, Place, list_page, read_stored
from parley.orchestrator.audit.retention import remove_old_parts
from parley.orchestrator.audit.writer import AuditWriter, WaitingEntry
from parley.receipts.chain import follows
from parley.runtime.clock import Clock
from parley.runtime.tasks import background_task
from parley.storage.opening import Store, open_store
from parley.storage.ports import (
    AppendGapError,
    KeyMissingError,
    Record,
    StoreDamagedError,
    StoreUnavailableError,
)
from parley.v1.audit_pb2 import (
    AUDIT_ACT_CREATE_DEBATE,
    AUDIT_ACT_DELETE_DEBATE,
    AUDIT_ACT_END_PART,
    AUDIT_OUTCOME_DONE,
    AUDIT_OUTCOME_STARTED,
    AuditEntry,
)
from tests.support.manual_clock import ManualClock
from tests.support.orchestration import until
from tests.support.passing_log import PassingLog

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
TENANT = "acme"


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


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(f"sqlite:///{tmp_path}", "orchestrator") as opened:
        await opened.documents.prepare(AUDIT_LOGS)
        yield opened


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOON)


@asynccontextmanager
async def writing(logs: AuditLogs, clock: Clock) -> AsyncIterator[AuditWriter]:
    made = AuditWriter(logs, clock)
    async with background_task("recording acts", made.run()):
        yield made


def entry(subject: str = "ann", tenant: str = TENANT, **fields: object) -> WaitingEntry:
    made = AuditEntry(
        tenant=tenant, subject=subject, act=AUDIT_ACT_CREATE_DEBATE, outcome=AUDIT_OUTCOME_STARTED
    )
    for name, value in fields.items():
        setattr(made, name, value)
    return WaitingEntry(made)


async def read_chain(logs: AuditLogs, tenant: str = TENANT) -> list[AuditEntry]:
    """All entries that are kept, each of which follows from the one before it."""
    head = await logs.get_head(tenant)
    assert head is not None
    entries, before, sequence = [], head.previous_hash, head.first_sequence
    async with aclosing(read_stored(logs, head, 0)) as found:
        async for some in found:
            for stored in some:
                opened = open_entry(stored)
                assert follows(stored, before)
                assert opened.sequence == sequence
                entries.append(opened)
                before, sequence = opened.hash, sequence + 1
    return entries


def subjects(entries: Sequence[AuditEntry]) -> list[str]:
    return [each.subject for each in entries if each.act != AUDIT_ACT_END_PART]


async def test_callers_that_wait_at_the_same_time_share_one_record(store: Store, clock: ManualClock) -> None:
    log = FailingLog(store.log)
    logs = AuditLogs(log, store.documents)
    async with writing(logs, clock) as audit, asyncio.TaskGroup() as group:
        for number in range(50):
            group.create_task(audit.write(entry(str(number))))
    assert subjects(await read_chain(logs)) == [str(number) for number in range(50)]
    assert log.appends == 1


async def test_replicas_that_write_at_the_same_time_make_one_chain(store: Store, clock: ManualClock) -> None:
    logs = AuditLogs(store.log, store.documents)
    async with writing(logs, clock) as one, writing(logs, clock) as other:

        async def write(audit: AuditWriter, name: str) -> None:
            for number in range(20):
                await audit.write(entry(f"{name}{number}"))

        async with asyncio.TaskGroup() as group:
            group.create_task(write(one, "one"))
            group.create_task(write(other, "other"))
    found = subjects(await read_chain(logs))
    assert sorted(found) == sorted(f"{name}{number}" for name in ("one", "other") for number in range(20))
    assert [each for each in found if each.startswith("one")] == [f"one{number}" for number in range(20)]


async def test_replicas_that_take_turns_meet_in_one_place_only_the_first_time(
    store: Store, clock: ManualClock
) -> None:
    log = FailingLog(store.log)
    logs = AuditLogs(log, store.documents)
    async with writing(logs, clock) as one, writing(logs, clock) as other:
        for number in range(5):
            await one.write(entry(f"one{number}"))
            await other.write(entry(f"other{number}"))
        assert log.appends == 2 * 5 + 2  # each hears of the other from a conflict, and reads on from then
        await one.write(entry("first alone"))
        await one.write(entry("second alone"))
        reads = log.reads
        await one.write(entry("third alone"))
        assert log.reads == reads
        assert log.appends == 2 * 5 + 2 + 3
    assert len(await read_chain(logs)) == 2 * 5 + 3


async def test_what_nobody_waits_for_is_written_a_second_later_and_at_the_end(
    store: Store, clock: ManualClock
) -> None:
    logs = AuditLogs(store.log, store.documents)
    async with writing(logs, clock) as audit:
        audit.enqueue(entry("reader"))
        await clock.sleeping()
        assert await logs.get_head(TENANT) is None
        clock.advance(1)
        await until_written(logs, 1)
        audit.enqueue(entry("last"))
        await audit.flush()
        assert subjects(await read_chain(logs)) == ["reader", "last"]


async def until_written(logs: AuditLogs, count: int) -> None:
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
    async with writing(logs, clock) as audit:
        started = entry("ann")
        with pytest.raises(StoreUnavailableError):
            await audit.write(started)
        ended = entry("ann", outcome=AUDIT_OUTCOME_DONE)
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
        audit.enqueue(entry())
    assert not audit.has_room(TENANT)
    for _ in range(3):
        assert audit.has_room("beta")
        audit.enqueue(entry(tenant="beta"))
    assert not audit.has_room("gamma")


@pytest.fixture
def small_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "MAX_ENTRIES", 3)


@pytest.mark.usefixtures("small_parts")
async def test_a_log_goes_on_in_its_next_part_also_at_a_replica_that_was_not_there(
    store: Store, clock: ManualClock
) -> None:
    logs = AuditLogs(store.log, store.documents)
    for number in range(4):
        async with writing(logs, clock) as audit:
            for _ in range(2):
                await audit.write(entry(str(number)))
    found = await read_chain(logs)
    assert subjects(found) == ["0", "0", "1", "1", "2", "2", "3", "3"]
    assert sum(each.act == AUDIT_ACT_END_PART for each in found) == 2
    assert await logs.read_part(TENANT, 3)


async def write_five_days(logs: AuditLogs, clock: ManualClock) -> None:
    """Record an entry at the beginning and at the end of each of five days."""
    async with writing(logs, clock) as audit:
        for day in range(5):
            await audit.write(entry(f"early {day}"))
            clock.advance(86_400)
            await audit.write(entry(f"late {day}"))


async def test_old_parts_are_removed_and_the_chain_is_verified_from_what_is_kept(
    store: Store, clock: ManualClock
) -> None:
    logs = AuditLogs(store.log, store.documents)
    await write_five_days(logs, clock)
    everything = await read_chain(logs)
    head = await logs.get_head(TENANT)
    assert head is not None
    await logs.remove_before(head, NOON + timedelta(days=3, seconds=1), clock.now())
    kept = await read_chain(logs)
    assert subjects(kept) == subjects(everything)[-len(subjects(kept)) :]
    assert 0 < len(kept) < len(everything)
    assert min(each.time.ToDatetime(UTC) for each in kept) <= NOON + timedelta(days=3, seconds=1)
    assert all(
        each.time.ToDatetime(UTC) < NOON + timedelta(days=3, seconds=1) for each in everything[: -len(kept)]
    )
    assert await logs.read_part(TENANT, 1) == []


async def test_a_removal_that_was_interrupted_is_finished_by_the_next_one(
    store: Store, clock: ManualClock
) -> None:
    log = InterruptedLog(store.log)
    logs = AuditLogs(log, store.documents)
    async with writing(logs, clock) as audit:
        for day in range(4):
            await audit.write(entry(str(day)))
            clock.advance(86_400)
    head = await logs.get_head(TENANT)
    assert head is not None
    with pytest.raises(StoreUnavailableError):
        await logs.remove_before(head, clock.now(), clock.now())
    assert await logs.read_part(TENANT, 1)
    await read_chain(logs)
    async for each in logs.list_heads():
        await logs.remove_before(each, clock.now(), clock.now())
    assert await logs.read_part(TENANT, 1) == []
    await read_chain(logs)


@pytest.mark.usefixtures("small_parts")
async def test_a_replica_that_wrote_nothing_for_long_writes_into_no_part_that_others_have_removed(
    store: Store, clock: ManualClock
) -> None:
    logs = AuditLogs(store.log, store.documents)
    async with writing(logs, clock) as rare, writing(logs, clock) as busy:
        for _ in range(3):
            await rare.write(entry("rare"))  # the third one ends the part
        for _ in range(4):
            await busy.write(entry("busy"))
        clock.advance(40 * 86_400)
        await busy.write(entry("busy again"))
        head = await logs.get_head(TENANT)
        assert head is not None
        head = await logs.remove_before(head, clock.now() - timedelta(days=30), clock.now())
        assert head.first_part == 3
        await rare.write(entry("rare again"))
    assert subjects(await read_chain(logs)) == ["busy", "busy again", "rare again"]


async def be_quiet(logs: AuditLogs, clock: ManualClock, days: int) -> LogHead:
    """Write three entries, and nothing for some days. Return what is kept of the log."""
    async with writing(logs, clock) as audit:
        for name in ("first", "second", "third"):
            await audit.write(entry(name))
    clock.advance(days * 86_400)
    head = await logs.get_head(TENANT)
    assert head is not None
    return head


async def test_entries_of_a_tenant_that_is_quiet_go_when_they_are_old_and_its_chain_goes_on(
    store: Store, clock: ManualClock
) -> None:
    logs = AuditLogs(store.log, store.documents)
    await be_quiet(logs, clock, 29)
    async with writing(logs, clock) as audit, background_task("removal", remove_old_parts(logs, clock, 30)):
        await clock.sleeping(2)
        assert subjects(await read_chain(logs)) == ["first", "second", "third"], "they are not old yet"
        clock.advance(2 * 86_400)

        async def is_removed() -> bool:
            return not await logs.read_part(TENANT, 1)

        await until(is_removed, "they are removed")
        assert await read_chain(logs) == []
        await audit.write(entry("back"))
        chain = await read_chain(logs)
    assert (subjects(chain), chain[0].sequence) == (["back"], 5)


async def test_an_act_that_comes_while_a_quiet_part_is_ended_is_kept_and_so_is_its_part(
    store: Store, clock: ManualClock
) -> None:
    log = OvertakingLog(store.log)
    logs = AuditLogs(log, store.documents)
    head = await be_quiet(logs, clock, 31)
    async with writing(AuditLogs(store.log, store.documents), clock) as other:
        log.overtake = partial(other.write, entry("meanwhile"))
        before = clock.now() - timedelta(days=30)
        assert (await logs.remove_before(head, before, clock.now())).first_part == 1
    assert subjects(await read_chain(logs)) == ["first", "second", "third", "meanwhile"]


async def test_replicas_that_end_a_quiet_part_at_the_same_time_end_it_once(
    store: Store, clock: ManualClock
) -> None:
    replicas = [AuditLogs(store.log, store.documents) for _ in range(3)]
    head = await be_quiet(replicas[0], clock, 31)
    before = clock.now() - timedelta(days=30)
    await asyncio.gather(*(each.remove_before(head, before, clock.now()) for each in replicas))
    kept = await replicas[0].get_head(TENANT)
    assert kept is not None
    kept = await replicas[0].remove_before(kept, before, clock.now())
    assert (kept.first_part, kept.first_sequence) == (2, 5)
    assert await read_chain(replicas[0]) == []


class OvertakingLog(PassingLog):
    """A log to which somebody else appends right before this writer does."""

    overtake: Callable[[], Awaitable[object]] | None = None

    async def append(self, log: str, record: Record, **beside: Any) -> None:
        if self.overtake is not None:
            overtake, self.overtake = self.overtake, None
            await overtake()
        await super().append(log, record, **beside)


class OvertakingReadsLog(PassingLog):
    """A log of which somebody else removes what is old right before it is read first."""

    overtake: Callable[[], Awaitable[object]] | None = None

    async def read(self, log: str, after: int = 0, limit: int = 1000) -> Sequence[Record]:
        if self.overtake is not None:
            overtake, self.overtake = self.overtake, None
            await overtake()
        return await super().read(log, after, limit)


@pytest.mark.parametrize("overtaken", [OvertakingLog, OvertakingReadsLog])
async def test_an_act_for_whose_end_a_part_was_found_that_another_replica_then_removes_goes_into_the_next_part(
    store: Store, clock: ManualClock, overtaken: type[OvertakingLog | OvertakingReadsLog]
) -> None:
    log, other = overtaken(store.log), AuditLogs(store.log, store.documents)
    head = await be_quiet(other, clock, 31)
    log.overtake = partial(other.remove_before, head, clock.now() - timedelta(days=30), clock.now())
    async with writing(AuditLogs(log, store.documents), clock) as audit:
        await audit.write(entry("back"))
    chain = await read_chain(other)
    assert (subjects(chain), chain[0].sequence) == (["back"], 5)
    assert await other.read_part(TENANT, 1) == []


class GapLog(PassingLog):
    """A log that is always gone when something is appended to it."""

    appends = 0

    async def append(self, log: str, record: Record, **beside: Any) -> None:
        self.appends += 1
        raise AppendGapError("the log ends before")


async def test_a_caller_gets_an_error_if_the_end_of_a_log_is_found_and_gone_again_and_again(
    store: Store, clock: ManualClock
) -> None:
    log = GapLog(store.log)
    async with asyncio.timeout(10), writing(AuditLogs(log, store.documents), clock) as audit:
        with pytest.raises(AppendGapError):
            await audit.write(entry())
    assert 1 < log.appends <= 5


async def test_a_part_that_another_replica_ends_and_removes_first_keeps_nobody_elses_old_entries(
    store: Store, clock: ManualClock
) -> None:
    log, other = OvertakingLog(store.log), AuditLogs(store.log, store.documents)
    async with writing(other, clock) as audit:
        await audit.write(entry(tenant="beta"))
    head = await be_quiet(other, clock, 31)
    log.overtake = partial(other.remove_before, head, clock.now() - timedelta(days=30), clock.now())
    logs = AuditLogs(log, store.documents)
    async with background_task("removing old acts", remove_old_parts(logs, clock, 30)):
        await clock.sleeping()
    assert await other.read_part(TENANT, 1) == []
    assert await other.read_part("beta", 1) == []


class OvertakenLogs(AuditLogs):
    """Audit logs from which another replica removes all that is old, after this one has read a part."""

    other: AuditLogs
    before: datetime

    async def read_part(self, tenant: str, part: int) -> list[bytes]:
        stored = await super().read_part(tenant, part)
        head = await self.other.get_head(tenant)
        assert head is not None
        await self.other.remove_before(head, self.before, self.before)
        return stored


async def test_replicas_that_remove_old_parts_at_the_same_time_leave_the_rest_whole(
    store: Store, clock: ManualClock
) -> None:
    logs = AuditLogs(store.log, store.documents)
    await write_five_days(logs, clock)
    head = await logs.get_head(TENANT)
    assert head is not None
    overtaken = OvertakenLogs(store.log, store.documents)
    overtaken.other, overtaken.before = logs, NOON + timedelta(days=3, seconds=1)
    await overtaken.remove_before(head, overtaken.before, clock.now())
    assert subjects(await read_chain(logs))[-1] == "late 4"
    await overtaken.remove_before(head, overtaken.before, clock.now())  # what it knows is old by now
    assert subjects(await read_chain(logs))[-1] == "late 4"


class DamagedLog(PassingLog):
    """A log in which what one tenant stored cannot be read."""

    async def read(self, log: str, after: int = 0, limit: int = 1000) -> Sequence[Record]:
        found = await super().read(log, after, limit)
        if not log.startswith("acme/"):
            return found
        return [Record(each.first, each.append_id, (b"\xff",) * len(each.entries)) for each in found]


class UndecryptableLog(PassingLog):
    """A log in which what one tenant stored cannot be decrypted."""

    async def read(self, log: str, after: int = 0, limit: int = 1000) -> Sequence[Record]:
        if log.startswith("acme/"):
            raise StoreDamagedError("its data key is gone")
        return await super().read(log, after, limit)


class UnopenableLog(PassingLog):
    """A log in which what one tenant stored needs a key that is not set."""

    async def read(self, log: str, after: int = 0, limit: int = 1000) -> Sequence[Record]:
        if log.startswith("acme/"):
            raise KeyMissingError("no key")
        return await super().read(log, after, limit)


@pytest.mark.parametrize("damage", [DamagedLog, UndecryptableLog, UnopenableLog])
async def test_a_log_that_is_damaged_keeps_nobody_elses_old_entries(
    store: Store, clock: ManualClock, damage: type[PassingLog]
) -> None:
    logs = AuditLogs(store.log, store.documents)
    async with writing(logs, clock) as audit:
        for tenant in ("acme", "beta"):
            for _ in range(2):
                await audit.write(entry(tenant=tenant))
                clock.advance(86_400)
            await audit.write(entry(tenant=tenant))
    clock.advance(10 * 86_400)
    damaged = AuditLogs(damage(store.log), store.documents)
    async with background_task("removing old acts", remove_old_parts(damaged, clock, 5)):
        await clock.sleeping()
    assert await logs.read_part("acme", 1)
    assert await logs.read_part("beta", 1) == []


class InterruptedLog(PassingLog):
    """A log whose first deletion fails."""

    failed = False

    async def delete(self, log: str) -> None:
        if not self.failed:
            self.failed = True
            raise StoreUnavailableError("the store is away")
        await super().delete(log)


@pytest.mark.usefixtures("small_parts")
async def test_a_list_is_newest_first_page_by_page_over_all_parts(store: Store, clock: ManualClock) -> None:
    logs = AuditLogs(store.log, store.documents)
    async with writing(logs, clock) as audit:
        for number in range(10):
            act = AUDIT_ACT_DELETE_DEBATE if number % 2 else AUDIT_ACT_CREATE_DEBATE
            await audit.write(entry("ann" if number < 5 else "bob", act=act))
            clock.advance(1)

    async def listed(wanted: AuditFilter, size: int = 3) -> list[int]:
        found: list[int] = []
        place: Place | None = None
        while True:
            page = await list_page(logs, TENANT, wanted, place, size)
            assert len(page.entries) <= size
            found += [int(each.time.ToDatetime(UTC).timestamp() - NOON.timestamp()) for each in page.entries]
            if page.following is None:
                return found
            place = page.following

    assert await listed(AuditFilter()) == [*range(9, -1, -1)]
    assert await listed(AuditFilter(subject="ann")) == [4, 3, 2, 1, 0]
    assert await listed(AuditFilter(acts=frozenset({AUDIT_ACT_DELETE_DEBATE}))) == [9, 7, 5, 3, 1]
    since, before = NOON + timedelta(seconds=2), NOON + timedelta(seconds=6)
    assert await listed(AuditFilter(since=since, before=before)) == [5, 4, 3, 2]
    assert await listed(AuditFilter(debate_id="deb-20260101-000000-aaaaaaaa")) == []


async def test_a_tenant_without_a_log_has_no_entries(store: Store) -> None:
    page = await list_page(AuditLogs(store.log, store.documents), "none", AuditFilter(), None, 50)
    assert (list(page.entries), page.following) == ([], None)
