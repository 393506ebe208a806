"""What a look at the store reads: owners that show no life, whatever their clocks say, and nothing of those that do."""

import asyncio
from collections import Counter
from datetime import timedelta
from typing import Any

import pytest

from parley.orchestrator.engine import runner
from parley.orchestrator.engine.inbox import Inbox
from parley.orchestrator.log.debate_record import DebateRecord
from parley.orchestrator.log.index import DEBATES, DebateIndex, LivenessWindow
from parley.storage.ports import StoreUnavailableError
from tests.integration.orchestrator.owning import wait_for_looks
from tests.support.debate_logs import count_claims
from tests.support.manual_clock import ManualClock
from tests.support.orchestration import Backstage, make_debate, until

SPEC = make_debate(2, 1)


@pytest.mark.parametrize(("hours", "lease"), [(-1, 30), (1, 60)], ids=["behind", "ahead"])
async def test_a_dead_owner_whose_clock_was_wrong_is_taken_over_too(
    stage: Backstage, hours: int, lease: int
) -> None:
    """The time that is left to a living one is never less than half a lease, which is more than between two heartbeats."""
    hold = stage.gateway.hold("round/1/refine/*")
    clock = ManualClock()
    wrong = ManualClock(clock.now() + timedelta(hours=hours))
    async with stage.replica("one", exclusive=False, clock=wrong, lease_seconds=60) as one:
        debate = await one.create(SPEC)
        await stage.gateway.wait_for("round/1/refine/*", 2)
    async with stage.replica("two", exclusive=False, clock=clock, lease_seconds=60) as two:
        await wait_for_looks(two)
        clock.advance(lease - 1)
        await wait_for_looks(two)
        assert await count_claims(stage, debate) == 1
        clock.advance(2)
        hold.release()
        await stage.comes_to(debate, "COMPLETED")


async def test_an_owner_whose_heartbeats_are_seen_has_a_whole_lease_whatever_it_tells_of_the_time(
    stage: Backstage,
) -> None:
    hold = stage.gateway.hold("round/1/refine/*")
    clock = ManualClock()
    async with stage.replica("one", exclusive=False, clock=clock, lease_seconds=60) as one:
        debate = await one.create(SPEC)
        await stage.gateway.wait_for("round/1/refine/*", 2)
    clock.advance(3600)
    async with stage.replica("two", exclusive=False, clock=clock, lease_seconds=60) as two:
        await wait_for_looks(two)
        await stage.store.documents.update(DEBATES, f"default/{debate}", {"heartbeat": 1000})
        await wait_for_looks(two)
        clock.advance(59)
        await wait_for_looks(two)
        assert await count_claims(stage, debate) == 1
        clock.advance(2)
        hold.release()
        await stage.comes_to(debate, "COMPLETED")


async def test_silent_owners_are_looked_for_when_there_can_be_one_and_not_before(
    stage: Backstage, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = stage.gateway.hold("round/1/refine/*")
    clock = ManualClock()
    searches: list[float] = []
    list_owned = DebateIndex.list_owned

    async def note(
        index: DebateIndex, alive: LivenessWindow | None = None, **more: int
    ) -> list[DebateRecord]:
        searches.append(clock.monotonic())
        return await list_owned(index, alive, **more)

    async with stage.replica("one", exclusive=False, clock=clock, lease_seconds=60) as one:
        debate = await one.create(SPEC)
        await stage.gateway.wait_for("round/1/refine/*", 2)
    clock.advance(10)
    monkeypatch.setattr(DebateIndex, "list_owned", note)
    async with stage.replica("two", exclusive=False, clock=clock, lease_seconds=60) as two:
        await wait_for_looks(two)
        clock.advance(19)
        await wait_for_looks(two)
        assert searches == [10], "its heartbeat at 0 can be old at 30, and not before"
        clock.advance(1.5)
        await wait_for_looks(two)
        assert searches[1] == 30.5
        clock.advance(29)
        await wait_for_looks(two)
        assert await count_claims(stage, debate) == 1
        clock.advance(2)
        hold.release()
        await stage.comes_to(debate, "COMPLETED")


@pytest.mark.parametrize("others", [0, 1], ids=["alone", "beside-one-whose-clock-is-ahead"])
async def test_an_owner_that_claims_after_a_look_and_dies_is_found_half_a_lease_later(
    stage: Backstage, others: int
) -> None:
    hold = stage.gateway.hold("round/1/refine/*")
    clock = ManualClock()
    ahead = ManualClock(clock.now() + timedelta(seconds=20))
    async with stage.replica("ahead", exclusive=False, clock=ahead, lease_seconds=60) as other:
        for _ in range(others):
            await other.create(SPEC)
        await stage.gateway.wait_for("round/1/refine/*", 2 * others)
    async with stage.replica("two", exclusive=False, clock=clock, lease_seconds=60) as two:
        await wait_for_looks(two)
        async with stage.replica("one", exclusive=False, clock=clock, lease_seconds=60) as one:
            debate = await one.create(SPEC)
            await stage.gateway.wait_for("round/1/refine/*", 2 * others + 2)
        for seconds in (31, 28):
            clock.advance(seconds)
            await wait_for_looks(two)
        assert await count_claims(stage, debate) == 1
        clock.advance(3)
        hold.release()
        await stage.comes_to(debate, "COMPLETED")


async def test_a_look_reads_no_record_of_a_debate_that_is_owned_and_well(
    stage: Backstage, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = stage.gateway.hold("synthesis")
    read: list[int] = []
    list_owned, list_waiting = DebateIndex.list_owned, DebateIndex.list_waiting

    async def note_owned(
        index: DebateIndex, alive: LivenessWindow | None = None, **more: int
    ) -> list[DebateRecord]:
        found = await list_owned(index, alive, **more)
        read.append(len(found))
        return found

    async def note_waiting(index: DebateIndex) -> tuple[list[DebateRecord], bool]:
        found = await list_waiting(index)
        read.append(len(found[0]))
        return found

    one, two = stage.replica("one", exclusive=False), stage.replica("two", exclusive=False)
    async with one, two:
        debates = [await one.create(SPEC) for _ in range(3)]
        await stage.gateway.wait_for("synthesis", 3)
        monkeypatch.setattr(DebateIndex, "list_owned", note_owned)
        monkeypatch.setattr(DebateIndex, "list_waiting", note_waiting)
        await wait_for_looks(one, two)
        assert not any(read)
        hold.release()
        for debate in debates:
            await stage.comes_to(debate, "COMPLETED")


async def test_a_replica_at_rest_asks_for_debates_and_now_and_then_for_all_else(
    stage: Backstage, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: Counter[str] = Counter()

    def count(kind: type[Any], name: str) -> None:
        search = getattr(kind, name)

        async def search_and_count(*given: Any) -> Any:
            asked[f"{kind.__name__}.{name}"] += 1
            return await search(*given)

        monkeypatch.setattr(kind, name, search_and_count)

    count(DebateIndex, "list_waiting")
    count(DebateIndex, "list_overdue")
    count(Inbox, "list_waiting")
    async with stage.replica(exclusive=False):

        async def is_enough() -> bool:
            return asked["DebateIndex.list_waiting"] >= 20

        await until(is_enough, "it has looked 20 times")
    assert 3 <= asked["DebateIndex.list_overdue"] <= 6
    assert 3 <= asked["Inbox.list_waiting"] <= 6


async def test_a_look_for_everything_that_failed_is_taken_again_at_once(
    stage: Backstage, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []
    list_waiting, list_overdue = DebateIndex.list_waiting, DebateIndex.list_overdue

    async def count_waiting(*given: Any) -> Any:
        asked.append("waiting")
        return await list_waiting(*given)

    async def fail_at_first(*given: Any) -> Any:
        asked.append("overdue")
        if asked.count("overdue") <= 3:
            raise StoreUnavailableError("away")
        return await list_overdue(*given)

    monkeypatch.setattr(DebateIndex, "list_waiting", count_waiting)
    monkeypatch.setattr(DebateIndex, "list_overdue", fail_at_first)
    async with stage.replica(exclusive=False):

        async def is_enough() -> bool:
            return asked.count("overdue") > 3

        await until(is_enough, "it has looked for what is due")
    assert asked[:8] == ["waiting", "overdue"] * 4


async def test_a_replica_that_runs_a_debate_finds_what_another_one_was_asked_of_it_in_each_scan(
    stage: Backstage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_SCANS_A_WHOLE_ONE", 10**9)
    hold = stage.gateway.hold("synthesis")
    async with stage.replica("one", exclusive=False) as one:
        debate = await one.create(SPEC)
        await stage.gateway.wait_for("synthesis", 1)
        await stage.replica("two", exclusive=False).intervene(debate, "guide", text="Be brief.")
        hold.release()


async def test_a_replica_at_rest_that_finds_a_debate_heeds_what_was_asked_of_it_before(
    stage: Backstage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "_SCANS_A_WHOLE_ONE", 10**9)
    async with stage.replica("one", exclusive=False) as one:
        looks, is_asked = 0, asyncio.Event()
        index, inbox = one.dependencies.index, one.dependencies.inbox
        list_waiting = index.list_waiting

        async def find_none_at_first() -> tuple[list[DebateRecord], bool]:
            nonlocal looks
            looks += 1
            return await list_waiting() if is_asked.is_set() else ([], True)

        async def has_looked() -> bool:
            return looks > 1  # the first one may have begun as a whole scan

        monkeypatch.setattr(DebateIndex, "list_waiting", lambda _: find_none_at_first())
        await until(has_looked, "it is at rest")
        two = stage.replica("two", exclusive=False)
        debate = await two.create(SPEC)
        asking = asyncio.create_task(two.intervene(debate, "pause"))
        await until(inbox.list_waiting, "it is asked to pause")
        is_asked.set()
        await asking
        await stage.comes_to(debate, "PAUSED")
    assert not stage.gateway.calls


async def test_a_replica_alone_looks_for_owners_that_are_gone_once_in_five_times(
    stage: Backstage, monkeypatch: pytest.MonkeyPatch
) -> None:
    looks: Counter[str] = Counter()

    def count(name: str) -> None:
        list_them = getattr(DebateIndex, name)

        async def list_and_count(index: DebateIndex, **which: Any) -> Any:
            looks[name] += 1
            return await list_them(index, **which)

        monkeypatch.setattr(DebateIndex, name, list_and_count)

    count("list_owned")
    count("list_waiting")

    async def has_looked_ten_times() -> bool:
        return looks["list_waiting"] >= 10

    async with stage.replica("one", poll_seconds=0.01):
        await until(has_looked_ten_times, "it has looked ten times")
    assert looks["list_owned"] <= 3
