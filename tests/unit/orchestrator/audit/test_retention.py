"""Old parts of audit logs are removed, whatever other replicas do at the same time, and the chain stays whole."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any

import pytest

from parley.orchestrator.audit.parts import AuditLogs, LogHead
from parley.orchestrator.audit.retention import remove_old_parts
from parley.runtime.tasks import background_task
from parley.storage.opening import Store
from parley.storage.ports import (
    AppendGapError,
    KeyMissingError,
    Record,
    StoreDamagedError,
    StoreUnavailableError,
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


async def write_five_days(logs: AuditLogs, clock: ManualClock) -> None:
    """Record an entry at the beginning and at the end of each of five days."""
    async with open_writer(logs, clock) as audit:
        for day in range(5):
            await audit.write(make_entry(f"early {day}"))
            clock.advance(86_400)
            await audit.write(make_entry(f"late {day}"))


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
    assert list_subjects(kept) == list_subjects(everything)[-len(list_subjects(kept)) :]
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
    async with open_writer(logs, clock) as audit:
        for day in range(4):
            await audit.write(make_entry(str(day)))
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
    async with open_writer(logs, clock) as rare, open_writer(logs, clock) as busy:
        for _ in range(3):
            await rare.write(make_entry("rare"))  # the third one ends the part
        for _ in range(4):
            await busy.write(make_entry("busy"))
        clock.advance(40 * 86_400)
        await busy.write(make_entry("busy again"))
        head = await logs.get_head(TENANT)
        assert head is not None
        head = await logs.remove_before(head, clock.now() - timedelta(days=30), clock.now())
        assert head.first_part == 3
        await rare.write(make_entry("rare again"))
    assert list_subjects(await read_chain(logs)) == ["busy", "busy again", "rare again"]


async def be_quiet(logs: AuditLogs, clock: ManualClock, days: int) -> LogHead:
    """Write three entries, and nothing for some days. Return what is kept of the log."""
    async with open_writer(logs, clock) as audit:
        for name in ("first", "second", "third"):
            await audit.write(make_entry(name))
    clock.advance(days * 86_400)
    head = await logs.get_head(TENANT)
    assert head is not None
    return head


async def test_entries_of_a_tenant_that_is_quiet_go_when_they_are_old_and_its_chain_goes_on(
    store: Store, clock: ManualClock
) -> None:
    logs = AuditLogs(store.log, store.documents)
    await be_quiet(logs, clock, 29)
    async with (
        open_writer(logs, clock) as audit,
        background_task("removal", remove_old_parts(logs, clock, 30)),
    ):
        await clock.sleeping(2)
        assert list_subjects(await read_chain(logs)) == ["first", "second", "third"], "they are not old yet"
        clock.advance(2 * 86_400)

        async def is_removed() -> bool:
            return not await logs.read_part(TENANT, 1)

        await until(is_removed, "they are removed")
        assert await read_chain(logs) == []
        await audit.write(make_entry("back"))
        chain = await read_chain(logs)
    assert (list_subjects(chain), chain[0].sequence) == (["back"], 5)


async def test_an_act_that_comes_while_a_quiet_part_is_ended_is_kept_and_so_is_its_part(
    store: Store, clock: ManualClock
) -> None:
    log = OvertakingLog(store.log)
    logs = AuditLogs(log, store.documents)
    head = await be_quiet(logs, clock, 31)
    async with open_writer(AuditLogs(store.log, store.documents), clock) as other:
        log.overtake = partial(other.write, make_entry("meanwhile"))
        before = clock.now() - timedelta(days=30)
        assert (await logs.remove_before(head, before, clock.now())).first_part == 1
    assert list_subjects(await read_chain(logs)) == ["first", "second", "third", "meanwhile"]


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
    async with open_writer(AuditLogs(log, store.documents), clock) as audit:
        await audit.write(make_entry("back"))
    chain = await read_chain(other)
    assert (list_subjects(chain), chain[0].sequence) == (["back"], 5)
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
    async with asyncio.timeout(10), open_writer(AuditLogs(log, store.documents), clock) as audit:
        with pytest.raises(AppendGapError):
            await audit.write(make_entry())
    assert 1 < log.appends <= 5


async def test_a_part_that_another_replica_ends_and_removes_first_keeps_nobody_elses_old_entries(
    store: Store, clock: ManualClock
) -> None:
    log, other = OvertakingLog(store.log), AuditLogs(store.log, store.documents)
    async with open_writer(other, clock) as audit:
        await audit.write(make_entry(tenant="beta"))
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
    assert list_subjects(await read_chain(logs))[-1] == "late 4"
    await overtaken.remove_before(head, overtaken.before, clock.now())  # what it knows is old by now
    assert list_subjects(await read_chain(logs))[-1] == "late 4"


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
    async with open_writer(logs, clock) as audit:
        for tenant in ("acme", "beta"):
            for _ in range(2):
                await audit.write(make_entry(tenant=tenant))
                clock.advance(86_400)
            await audit.write(make_entry(tenant=tenant))
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
