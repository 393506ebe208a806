"""The journal: one append in flight, sent again byte for byte, and lost claims that are noticed."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from parley.orchestrator import metrics
from parley.orchestrator.log import journal as journal_module
from parley.orchestrator.log.envelope import Envelope, create_event
from parley.orchestrator.log.events import CorruptEventError
from parley.orchestrator.log.journal import ClaimLostError, Journal
from parley.orchestrator.log.reading import read_events
from parley.runtime.clock import Clock
from parley.storage.opening import open_store
from parley.storage.ports import Log, Record, StoreUnavailableError
from parley.v1.event_pb2 import (
    CheckpointClosed,
    CheckpointExpired,
    CheckpointOpened,
    DebateCreated,
    Event,
    StepSucceeded,
    WaitFinished,
    WaitStarted,
    Warned,
)
from tests.support.manual_clock import ManualClock
from tests.support.orchestration import until
from tests.unit.orchestrator.made_logs import CREATED


@pytest.fixture
async def log(tmp_path: Path) -> AsyncIterator[Log]:
    async with open_store(f"sqlite:///{tmp_path}", "orchestrator") as store:
        yield store.log


class ShakyLog:
    """A log whose appends are not answered the first times: `before` of them are lost, `after` of them are kept."""

    def __init__(self, log: Log, *, before: int = 0, after: int = 0) -> None:
        self.inner, self.before, self.after = log, before, after
        self.sent: list[Record] = []

    async def append(self, log: str, record: Record, **beside: Any) -> None:
        self.sent.append(record)
        if self.before:
            self.before -= 1
            raise StoreUnavailableError("away")
        await self.inner.append(log, record, **beside)
        if self.after:
            self.after -= 1
            raise StoreUnavailableError("away")

    def __getattr__(self, name: str) -> object:
        return getattr(self.inner, name)


def create_journal(log: Log, clock: Clock | None = None) -> Journal:
    return Journal(log, clock or ManualClock(), "t", "deb")


async def reopen(log: Log, clock: Clock | None = None) -> Journal:
    return Journal(log, clock or ManualClock(), "t", "deb", await read_events(log, "t", "deb"))


@asynccontextmanager
async def run_writer(journal: Journal) -> AsyncIterator[asyncio.Task[None]]:
    writing = asyncio.create_task(journal.run_writer())
    try:
        yield writing
    finally:
        writing.cancel()
        with suppress(asyncio.CancelledError, ClaimLostError):
            await writing


def note(text: str) -> Event:
    return create_event(f"note/{text}", Warned(message=text))


def outcome(key: str) -> Event:
    return create_event(key, StepSucceeded(), 1)


async def test_what_waits_goes_into_one_record(log: Log) -> None:
    shaky = ShakyLog(log)
    journal = create_journal(shaky)  # type: ignore[arg-type]
    await journal.claim("me")
    journal.enqueue(note("one"))
    journal.enqueue(note("two"))
    async with run_writer(journal):
        await journal.append(note("three"))
    assert journal.sequence == 4
    assert [len(record.entries) for record in shaky.sent] == [1, 3]
    assert [event.sequence for event in await read_events(log, "t", "deb")] == [1, 2, 3, 4]


async def test_what_nobody_waits_for_is_recorded_soon_together_with_what_comes_a_moment_later(
    log: Log,
) -> None:
    shaky = ShakyLog(log)
    journal = create_journal(shaky)  # type: ignore[arg-type]
    await journal.claim("me")
    async with run_writer(journal):
        journal.enqueue(note("one"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        journal.enqueue(note("two"))

        async def are_written() -> bool:
            return journal.sequence == 3

        await until(are_written, "they are written, though nobody waits for it")
    assert [len(record.entries) for record in shaky.sent] == [1, 2]


async def test_an_outcome_counts_at_once_and_is_published_once_it_is_durable(log: Log) -> None:
    published: list[Envelope] = []
    journal = Journal(log, ManualClock(), "t", "deb", publish=published.extend)
    await journal.claim("me")
    journal.record(outcome("one"))
    assert list(journal.recorded.outcomes) == ["one"]
    assert (journal.sequence, len(published)) == (1, 1)
    async with run_writer(journal):
        await asyncio.wait_for(journal.write_outcomes(), 30)
    assert published == await read_events(log, "t", "deb")
    assert [event.key for event in published] == ["claim/1", "one"]


async def test_what_follows_from_outcomes_is_not_waited_for(log: Log) -> None:
    journal = create_journal(log)
    await journal.claim("me")
    journal.enqueue(note("one"))
    await asyncio.wait_for(journal.write_outcomes(), 30)  # nothing writes
    assert journal.sequence == 1


async def test_what_another_task_appends_counts_at_once_and_is_waited_for_as_outcomes_are(log: Log) -> None:
    journal = create_journal(log)
    await journal.claim("me")
    appending = asyncio.create_task(journal.append(note("one")))
    await asyncio.sleep(0)
    assert journal.recorded.notes == {"note/one"}
    async with run_writer(journal), asyncio.timeout(30):
        await journal.write_outcomes()
        assert journal.sequence == 2
        await appending


async def test_outcomes_that_others_are_expected_beside_are_written_together(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "_COMPANY_SECONDS", 3600)
    shaky = ShakyLog(log)
    journal = create_journal(shaky)  # type: ignore[arg-type]
    await journal.claim("me")
    async with run_writer(journal), asyncio.timeout(30):
        journal.record(outcome("one"), is_paid=True)
        first = asyncio.create_task(journal.write_outcomes(may_wait=True))
        journal.record(outcome("two"), is_paid=True)
        await asyncio.sleep(0)
        await journal.write_outcomes()
        await first
    assert [len(record.entries) for record in shaky.sent] == [1, 2]


async def test_a_paid_outcome_is_written_within_a_moment_though_nothing_waits_for_it(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal_module, "_PATIENCE_SECONDS", 3600)
    journal = create_journal(log)
    await journal.claim("me")
    async with run_writer(journal):
        journal.enqueue(note("one"))
        journal.record(outcome("two"), is_paid=True)

        async def are_written() -> bool:
            return journal.sequence == 3

        await until(are_written, "the outcome is written, and what came before it")


async def test_what_the_writer_left_is_written_as_it_was_sent_and_what_came_after_it(log: Log) -> None:
    clock = ManualClock()
    journal = create_journal(log, clock)
    await journal.claim("me")
    journal._log = shaky = ShakyLog(log, after=1)  # type: ignore[assignment]
    journal.record(outcome("one"))
    async with run_writer(journal) as writing:
        waiting = asyncio.create_task(journal.write_outcomes())
        await clock.sleeping()  # it is not known whether the record is written
        writing.cancel()
    journal.record(outcome("two"))
    await journal.write_rest()
    await asyncio.wait_for(waiting, 30)
    assert [(each.first, len(each.entries)) for each in shaky.sent] == [(2, 1), (2, 1), (3, 1)]
    assert shaky.sent[0] == shaky.sent[1]
    assert [event.key for event in await read_events(log, "t", "deb")] == ["claim/1", "one", "two"]


@pytest.mark.parametrize(("before", "after"), [(2, 0), (0, 2), (1, 1)])
async def test_an_append_of_unknown_outcome_is_sent_again_byte_for_byte(
    log: Log, before: int, after: int
) -> None:
    clock = ManualClock()
    journal = create_journal(log, clock)
    await journal.claim("me")
    journal._log = shaky = ShakyLog(log, before=before, after=after)  # type: ignore[assignment]
    async with run_writer(journal):
        appended = asyncio.create_task(journal.append(note("one")))
        for _ in range(before + after):
            await clock.sleeping()
            clock.advance(60)  # what is sent later still tells the time at which it was made
        await asyncio.wait_for(appended, 30)
    assert len(shaky.sent) == before + after + 1
    assert len({(each.first, each.append_id, each.entries) for each in shaky.sent}) == 1
    assert len(await read_events(log, "t", "deb")) == 2


async def test_what_nobody_waits_for_any_more_is_written_and_can_be_waited_for(log: Log) -> None:
    clock = ManualClock()
    journal = create_journal(log, clock)
    await journal.claim("me")
    journal._log = ShakyLog(log, before=1, after=0)  # type: ignore[assignment]
    async with run_writer(journal):
        appended = asyncio.create_task(journal.append(note("one")))
        await clock.sleeping()
        appended.cancel()
        waiting = asyncio.create_task(journal.wait_until_written())
        await asyncio.wait({appended})
        assert not waiting.done()
        clock.advance(60)
        await asyncio.wait_for(waiting, 30)
    assert len(await read_events(log, "t", "deb")) == 2


async def test_an_owner_whose_append_conflicts_stops_and_writes_nothing_more(log: Log) -> None:
    old = create_journal(log)
    await old.claim("old")
    new = await reopen(log)
    await new.claim("new")
    async with run_writer(old) as writing:
        appended = asyncio.create_task(old.append(note("late")))
        with pytest.raises(ClaimLostError):
            await asyncio.wait_for(asyncio.shield(writing), 30)
        assert not appended.done()
        appended.cancel()
    assert [event.kind for event in await read_events(log, "t", "deb")] == ["claimed", "claimed"]


async def test_what_is_recorded_is_published_and_what_a_later_owner_prevents_is_not(log: Log) -> None:
    published: list[Envelope] = []
    old = Journal(log, ManualClock(), "t", "deb", publish=published.extend)
    await old.claim("old")
    async with run_writer(old) as writing:
        await old.append(note("one"), note("two"))
        await (await reopen(log)).claim("new")
        appended = asyncio.create_task(old.append(note("late")))
        with pytest.raises(ClaimLostError):
            await asyncio.wait_for(asyncio.shield(writing), 30)
        appended.cancel()
    assert published == (await read_events(log, "t", "deb"))[:3]


async def test_of_two_that_claim_at_once_one_loses(log: Log) -> None:
    one, two = await reopen(log), await reopen(log)
    await one.claim("one")
    with pytest.raises(ClaimLostError):
        await two.claim("two")
    again = await reopen(log)
    await again.claim("two")
    assert (one.epoch, again.epoch) == (1, 2)


async def test_a_claim_of_unknown_outcome_is_left_to_the_next_try(log: Log) -> None:
    journal = create_journal(ShakyLog(log, after=1))  # type: ignore[arg-type]
    with pytest.raises(StoreUnavailableError):
        await journal.claim("me")
    again = await reopen(log)
    await again.claim("me")
    assert again.epoch == 2


async def test_opening_a_log_twice_writes_its_first_event_once(log: Log) -> None:
    await create_journal(log).write_first_event(DebateCreated(request_id="first"))
    await create_journal(log).write_first_event(DebateCreated(request_id="first"))
    assert len(await read_events(log, "t", "deb")) == 1


class BackwardClock(ManualClock):
    """Each look is a minute earlier than the one before."""

    _looks = 0

    def now(self) -> datetime:
        self._looks += 1
        return datetime(2030, 1, 1, tzinfo=UTC) - timedelta(minutes=self._looks)


async def test_time_never_goes_back(log: Log) -> None:
    journal = create_journal(log, BackwardClock())
    await journal.claim("me")
    async with run_writer(journal):
        await journal.append(note("one"))
        await journal.append(note("two"), note("three"))
    next_one = await reopen(log, BackwardClock())
    await next_one.claim("next")
    times = [event.time for event in await read_events(log, "t", "deb")]
    assert times == sorted(times)


async def test_a_log_that_was_changed_from_outside_is_refused(log: Log) -> None:
    journal = create_journal(log)
    await journal.claim("me")
    (record,) = await log.read("t/deb")
    await log.append("t/deb", Record(2, "forged", (record.entries[0],)))
    with pytest.raises(CorruptEventError):
        await read_events(log, "t", "deb")


async def test_a_wait_is_measured_when_it_ends_whoever_owned_the_debate_when_it_began(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[tuple[str, float]] = []
    monkeypatch.setattr(metrics, "record_wait_end", lambda _, whom, seconds: ended.append((whom, seconds)))
    clock = ManualClock()
    first = create_journal(log, clock)
    await first.claim("one", CREATED)
    async with run_writer(first):
        await first.append(create_event("wait/1", WaitStarted()), create_event("ask/1", CheckpointOpened()))
        await first.append(create_event("ask/2", CheckpointOpened()))
        clock.advance(10)
        await first.append(create_event("wait/1", WaitFinished()))
    second = await reopen(log, clock)
    await second.claim("two")
    clock.advance(80)
    async with run_writer(second):
        await second.append(create_event("ask/1", CheckpointClosed()))
        await second.append(create_event("ask/2", CheckpointExpired()))
        await second.append(create_event("ask/1", CheckpointClosed()))
    assert ended == [("providers", 10), ("person", 90), ("person", 90)]


async def test_a_wait_that_a_lost_owner_ended_is_measured_by_the_next_one_alone(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    ended: list[float] = []
    monkeypatch.setattr(metrics, "record_wait_end", lambda _format, _whom, seconds: ended.append(seconds))
    clock = ManualClock()
    old = create_journal(log, clock)
    await old.claim("old", CREATED)
    async with run_writer(old) as writing:
        await old.append(create_event("wait/1", WaitStarted()))
        clock.advance(10)
        new = await reopen(log, clock)
        await new.claim("new")
        appended = asyncio.create_task(old.append(create_event("wait/1", WaitFinished())))
        with pytest.raises(ClaimLostError):
            await asyncio.wait_for(asyncio.shield(writing), 30)
        appended.cancel()
    clock.advance(5)
    async with run_writer(new):
        await new.append(create_event("wait/1", WaitFinished()))
    assert ended == [15]
