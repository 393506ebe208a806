"""Claims: one owner at a time, whatever stalls, crashes or drains."""

import asyncio
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from parley.orchestrator.engine import intake
from parley.orchestrator.log.debate_record import DebateRecord
from parley.orchestrator.log.index import DebateIndex
from parley.orchestrator.phases import propose
from parley.storage.ports import Collection, Fields, Insert, Record
from parley.storage.sqlite.documents import SqliteDocuments
from parley.v1.event_pb2 import DebateFailed
from tests.integration.orchestrator.owning import StallingLog, owns_nothing, wait_for_looks
from tests.support.debate_logs import check_log, count_claims
from tests.support.manual_clock import ManualClock
from tests.support.orchestration import Backstage, make_debate, until
from tests.support.other_code import run_other_code

SPEC = make_debate(2, 1)


async def test_of_many_replicas_one_owns_a_debate(stage: Backstage) -> None:
    hold = stage.gateway.hold("synthesis")
    one, two = stage.replica("one", exclusive=False), stage.replica("two", exclusive=False)
    async with one, two:
        debates = [await one.create(SPEC) for _ in range(3)]
        await stage.gateway.wait_for("synthesis", 3)
        await wait_for_looks(one, two)
        hold.release()
        for debate in debates:
            events = await stage.comes_to(debate, "COMPLETED")
            check_log(events)
            assert events[-1].epoch == 1
    assert len(stage.gateway.steps()) == 3 * 8


async def test_the_record_of_a_new_debate_is_written_along_with_its_claim_until_it_runs(
    stage: Backstage, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = stage.gateway.hold("round/1/propose/*")
    written: list[set[str]] = []
    update = SqliteDocuments.update

    async def note(
        self: SqliteDocuments, collection: Collection, key: str, changes: Fields, *rest: Any
    ) -> bool:
        if collection.name == "debates":
            written.append(changes.keys() & {"epoch", "status"})
        return await update(self, collection, key, changes, *rest)

    monkeypatch.setattr(SqliteDocuments, "update", note)
    async with stage.replica("one") as one:
        debate = await one.create(SPEC)
        await stage.gateway.wait_for("round/1/propose/*", 2)
        assert written == [], "nothing else is written"
        assert (await stage.record(debate)).status == "RUNNING"
        hold.release()
        await stage.comes_to(debate, "COMPLETED")


async def test_a_crashed_owners_debate_is_taken_over_after_its_lease_and_not_before(stage: Backstage) -> None:
    hold = stage.gateway.hold("round/1/refine/*")
    clock = ManualClock()
    async with stage.replica("one", exclusive=False, clock=clock, lease_seconds=60) as one:
        debate = await one.create(SPEC)
        await stage.gateway.wait_for("round/1/refine/*", 2)
    async with stage.replica("two", exclusive=False, clock=clock, lease_seconds=60) as two:
        for seconds in (31, 28):
            clock.advance(seconds)
            await wait_for_looks(two)
        assert await count_claims(stage, debate) == 1
        clock.advance(2)
        hold.release()
        events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert events[-1].epoch == 2


async def test_an_owner_whose_heartbeat_goes_on_is_left_alone(stage: Backstage) -> None:
    hold = stage.gateway.hold("synthesis")
    clock = ManualClock()
    one = stage.replica("one", exclusive=False, clock=clock, lease_seconds=60)
    two = stage.replica("two", exclusive=False, clock=clock, lease_seconds=60)
    async with one, two:
        debate = await one.create(SPEC)
        await hold.reached.wait()
        for _ in range(6):
            before = (await stage.record(debate)).heartbeat
            await clock.sleeping()
            clock.advance(21)
            await until(partial(_heartbeat_after, stage, debate, before), "a heartbeat")
            await wait_for_looks(two)
        assert await count_claims(stage, debate) == 1
        hold.release()
        await stage.comes_to(debate, "COMPLETED")


async def _heartbeat_after(stage: Backstage, debate: str, before: int) -> bool:
    return (await stage.record(debate)).heartbeat > before


async def test_a_stalled_owner_is_taken_over_and_then_writes_nothing(stage: Backstage) -> None:
    hold = stage.gateway.hold("round/1/refine/ada")
    log: Any = StallingLog(stage.store.log)
    one = stage.replica("one", exclusive=False, log=log, clock=ManualClock())  # its heartbeat stands still
    async with one:
        debate = await one.create(SPEC)
        await hold.reached.wait()
        log.going.clear()
        hold.release()
        await asyncio.wait_for(log.waiting.wait(), 30)
        async with stage.replica("two", exclusive=False, lease_seconds=0.1):
            events = await stage.comes_to(debate, "COMPLETED")
            before = await stage.record(debate)
            log.going.set()
            await until(lambda: owns_nothing(one), "the stalled one stops")
        assert await stage.events(debate) == events
        after = await stage.record(debate)
    check_log(events)
    assert events[-1].epoch == 2
    # The new owner may have sent one more heartbeat.
    assert replace(after, heartbeat=before.heartbeat, alive=before.alive) == before


async def test_an_owner_that_hears_of_a_later_claim_by_its_heartbeat_stops_too(stage: Backstage) -> None:
    hold = stage.gateway.hold("synthesis")
    clock = ManualClock()
    async with stage.replica("one", exclusive=False, clock=clock, lease_seconds=60) as one:
        debate = await one.create(SPEC)
        await hold.reached.wait()
        await stage.has(debate, "step_started", 8)
        async with stage.replica("two", exclusive=True):
            await stage.has(debate, "claimed", 2)
            await until(lambda: _epoch(stage, debate, 2), "the record tells of it")
            await until(partial(_owns_nothing_after_a_heartbeat, one, clock), "the first one stops")
            hold.release()
            check_log(await stage.comes_to(debate, "COMPLETED"))


async def _owns_nothing_after_a_heartbeat(replica: Any, clock: ManualClock) -> bool:
    # A write that was late may have told it already: then no heartbeat is to come.
    if clock.sleepers:
        clock.advance(21)
    return await owns_nothing(replica)


async def _epoch(stage: Backstage, debate: str, epoch: int) -> bool:
    return (await stage.record(debate)).epoch == epoch


async def test_what_a_draining_replica_gives_up_is_claimed_at_once(stage: Backstage) -> None:
    hold = stage.gateway.hold("round/1/refine/*")
    async with stage.replica("one", exclusive=False) as one:
        debate = await one.create(SPEC)
        await hold.reached.wait()
        await one.runner.drain()
        assert (await stage.record(debate)).owner is None
        hold.release()
        async with stage.replica("two", exclusive=False, lease_seconds=3600):
            events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert events[-1].epoch == 2


async def test_a_replica_that_drains_during_a_scan_claims_nothing_that_the_scan_has_found(
    stage: Backstage, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = stage.gateway.hold("synthesis")
    async with stage.replica("one") as one:
        debate = await one.create(SPEC)
        await hold.reached.wait()
    list_waiting = DebateIndex.list_waiting
    has_found, is_drained, scans_again = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def list_slowly(index: DebateIndex) -> tuple[list[DebateRecord], bool]:
        found = await list_waiting(index)
        if has_found.is_set():
            scans_again.set()
        has_found.set()
        await is_drained.wait()
        return found

    monkeypatch.setattr(DebateIndex, "list_waiting", list_slowly)
    async with stage.replica("two") as two, asyncio.timeout(30):
        await has_found.wait()
        await two.runner.drain()
        is_drained.set()
        await scans_again.wait()
        assert await owns_nothing(two)
    hold.release()
    assert await count_claims(stage, debate) == 1


async def test_a_debate_that_is_accepted_as_its_replica_drains_may_be_claimed_at_once(
    stage: Backstage, monkeypatch: pytest.MonkeyPatch
) -> None:
    insert = DebateIndex.insert
    async with stage.replica("one", exclusive=False) as one:

        async def insert_and_drain(index: DebateIndex, record: DebateRecord) -> None:
            await insert(index, record)
            await one.runner.drain()

        monkeypatch.setattr(DebateIndex, "insert", insert_and_drain)
        # As of a large debate, whose record is written before a replica owns it.
        monkeypatch.setattr(intake, "_LARGE_OPENING", 0)
        debate = await one.create(SPEC)
        assert (await stage.record(debate)).owner is None


async def test_an_exclusive_replica_claims_what_others_left_at_once(stage: Backstage) -> None:
    hold = stage.gateway.hold("synthesis")
    async with stage.replica("one") as one:
        debate = await one.create(SPEC)
        await hold.reached.wait()
    hold.release()
    async with stage.replica("two", lease_seconds=3600):
        check_log(await stage.comes_to(debate, "COMPLETED"))


async def test_a_replica_that_runs_no_debates_looks_at_those_of_others(
    stage: Backstage, capsys: pytest.CaptureFixture[str]
) -> None:
    hold = stage.gateway.hold("synthesis")
    async with stage.replica("one", exclusive=False) as one:
        debate = await one.create(SPEC)
        await hold.reached.wait()
        reader = stage.replica("reader", adopt=False, max_debates=0)
        running = asyncio.create_task(reader.runner.run())
        await wait_for_looks(reader)
        running.cancel()
        await asyncio.wait({running})
        assert "a scan of the store failed" not in capsys.readouterr().out
        hold.release()
        await stage.comes_to(debate, "COMPLETED")


async def test_foreign_debates_are_left_alone_until_somebody_intervenes(stage: Backstage) -> None:
    hold = stage.gateway.hold("synthesis")
    async with stage.replica("one") as one:
        debate = await one.create(SPEC)
        await hold.reached.wait()
    hold.release()
    async with stage.replica("two", adopt=False) as two:
        await wait_for_looks(two)
        assert await count_claims(stage, debate) == 1
        await two.intervene(debate, "resume")
        check_log(await stage.comes_to(debate, "COMPLETED"))


async def test_a_debate_that_was_accepted_without_a_slot_runs_when_there_is_one_whatever_is_adopted(
    stage: Backstage,
) -> None:
    hold = stage.gateway.hold("synthesis")
    async with stage.replica("one", max_debates=1, adopt=False) as one:
        first = await one.create(SPEC)
        await hold.reached.wait()
        second = await one.create(SPEC)
        assert await stage.kinds(second) == ["debate_created"]
        await wait_for_looks(one)
        assert await stage.kinds(second) == ["debate_created"]
        hold.release()
        check_log(await stage.comes_to(first, "COMPLETED"))
        events = await stage.comes_to(second, "COMPLETED")
    check_log(events)
    assert [event.epoch for event in events[:2]] == [0, 1]


async def test_a_debate_is_owned_once_where_a_look_at_the_store_comes_between_its_record_and_its_beginning(
    stage: Backstage,
) -> None:
    async with stage.replica("one") as one:
        insert = one.dependencies.index.insert

        async def insert_slowly(record: Any) -> None:
            await insert(record)
            one.runner.wake()
            await until(lambda: _owns(one, record.key), "the look finds it")

        one.dependencies.index.insert = insert_slowly  # type: ignore[method-assign]
        debates = [await one.create(SPEC) for _ in range(3)]
        for debate in debates:
            events = await stage.comes_to(debate, "COMPLETED")
            check_log(events)
            assert events[-1].epoch == 1
    assert len(stage.gateway.steps()) == 3 * 8


async def _owns(replica: Any, key: str) -> bool:
    return key in replica.runner._owned


@pytest.mark.parametrize("act", ["cancel", "pause"])
async def test_an_intervention_that_was_recorded_by_an_owner_that_then_crashed_is_answered_as_recorded(
    stage: Backstage, act: str
) -> None:
    stage.gateway.hold("*")
    marking = asyncio.Event()

    async def crash(*_: object) -> None:
        marking.set()
        await asyncio.Event().wait()

    async with stage.replica("one") as one:
        debate = await one.create(SPEC)
        await stage.gateway.wait_for("*", 2)
        one.dependencies.inbox.mark_recorded = crash  # type: ignore[method-assign, assignment]
        first = asyncio.create_task(one.intervene(debate, act, "w"))
        await asyncio.wait_for(marking.wait(), 30)
        first.cancel()
    async with stage.replica("two") as two:
        sequence = await two.intervene(debate, act, "w")
        events = await stage.comes_to(debate, "CANCELLED" if act == "cancel" else "PAUSED")
    assert events[sequence - 1].kind == "intervened"
    assert [event.kind for event in events].count("intervened") == 1


async def test_a_format_that_no_longer_does_what_it_did_stops_its_debate_loudly(
    stage: Backstage, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = stage.gateway.hold("synthesis")
    async with stage.replica("one") as one:
        debate = await one.create(SPEC)
        await hold.reached.wait()
        await stage.has(debate, "step_started", 8)
    hold.release()
    monkeypatch.setattr(propose, "POSITION_INSTRUCTION", "Say where you stand.")
    run_other_code(monkeypatch)
    asked = len(stage.gateway.calls)
    async with stage.replica("two", lease_seconds=0.03):
        events = await stage.comes_to(debate, "FAILED")
    assert [event.kind for event in events].count("claimed") > 2, "another one might have gone on"
    (failed,) = [event.payload.failure for event in events if isinstance(event.payload, DebateFailed)]
    assert failed.reason == "REPLAY_MISMATCH"
    assert "round/1/propose/ada" in failed.message or "round/1/propose/bo" in failed.message
    assert len(stage.gateway.calls) == asked


async def test_a_request_that_came_twice_at_once_is_accepted_though_the_other_one_wrote_its_first_event(
    stage: Backstage,
) -> None:
    class Overtaken(StallingLog):
        async def append(
            self, log: str, record: Record, *, insert: Insert | None = None, **beside: Any
        ) -> None:
            if insert is not None:  # as a store without transactions does
                await stage.store.documents.insert(insert.collection, insert.key, insert.fields)
            if record.first == 1:
                (record_of_it,) = await one.dependencies.index.list_owned()
                if record_of_it.opening:
                    await stage.replica("beside").intake._write_first_event(record_of_it)
            await super().append(log, record, **beside)

    log: Any = Overtaken(stage.store.log)
    one = stage.replica("one", log=log)
    async with one:
        debate = await one.create(SPEC)
        events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert [event.epoch for event in events[:2]] == [0, 1]
