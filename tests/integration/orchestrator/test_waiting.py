"""A debate that waits for a person for longer than a moment has no owner, and whoever comes gives it one again."""

import asyncio
import random
from datetime import datetime
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from parley.orchestrator.engine import checkpoints
from parley.orchestrator.engine.checkpoints import OWNED_WAIT_SECONDS
from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.engine.format import Formats
from parley.orchestrator.engine.status_writer import StatusWriter
from parley.orchestrator.formats import panel
from parley.orchestrator.log.debate_record import RUNNING, WAITING, DebateRecord
from parley.orchestrator.log.index import DebateIndex, LivenessWindow
from parley.runtime.errors import ParleyError
from parley.runtime.server import RunningServer
from parley.v1 import debate_pb2, orchestrator_pb2
from parley.v1.debate_pb2 import Direction, Outcome
from parley.v1.event_pb2 import Intervened
from tests.support.checked_format import (
    BEFORE,
    CHECKED,
    CHECKED_FORMATS,
    approve_answer,
    create_panel,
    make_checked_debate,
)
from tests.support.debate_logs import check_log, count_claims
from tests.support.manual_clock import ManualClock
from tests.support.orchestration import (
    Backstage,
    Replica,
    kind_of,
    make_debate,
    make_limits,
    orchestrating,
    until,
)

LONG = OWNED_WAIT_SECONDS + 1
CHECKPOINT_SECONDS = 1800.0


async def _ask_beside_timer(debate: Debate) -> Outcome:
    """Let a person be asked while a timer runs."""
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(debate.run_timer("cooling", 60))
        await debate.run_checkpoint(BEFORE, Direction(text="Shall we begin?"))
    return await panel.V1.run(debate)


BESIDE = create_panel("beside", _ask_beside_timer)


@pytest.fixture
def formats() -> Formats:
    return Formats([*CHECKED_FORMATS.all(), BESIDE])


async def is_left(stage: Backstage, debate: str) -> bool:
    """Whether a debate waits without an owner."""
    record = await stage.record(debate)
    return record.status == WAITING and record.owner is None and record.due is not None


async def leave_waiting(stage: Backstage, clock: ManualClock, replica: Replica, **fields: Any) -> str:
    """A debate that waits at its first checkpoint, without an owner."""
    debate = await replica.create(make_checked_debate(**fields))
    await stage.has(debate, "checkpoint_opened")
    await until(partial(_is_asleep, clock), "it waits")
    clock.advance(LONG)
    await until(partial(is_left, stage, debate), "its owner leaves it")
    return debate


async def _is_asleep(clock: ManualClock) -> bool:
    """Whether somebody sleeps for no longer than an owner stays: nothing else of these debates is as short."""
    soon = clock.monotonic() + OWNED_WAIT_SECONDS
    return any(deadline <= soon and not woken.done() for deadline, _, woken in clock._sleepers)


async def test_it_is_left_after_a_moment_and_costs_its_replica_nothing(
    stage: Backstage, clock: ManualClock
) -> None:
    async with stage.replica(clock=clock, max_debates=1) as replica:
        debate = await leave_waiting(stage, clock, replica)
        record = await stage.record(debate)
        assert not record.open, "no scan sees it"
        index = replica.dependencies.index
        assert (await index.list_owned(), await index.list_waiting()) == ([], ([], True))
        assert not replica.runner._owned
        length = len(await stage.events(debate))
        check_log(await stage.comes_to(await replica.create(make_debate(2, 1)), "COMPLETED"))
        assert len(await stage.events(debate)) == length
        await replica.intervene(debate, "guide", text="Think of cost.")
        await approve_answer(stage, replica, debate)
        prompt = stage.gateway.asked("round/1/propose/ada").prompt
        assert prompt.count("Think of cost.") == 1
        told = [each.payload for each in await stage.events(debate) if isinstance(each.payload, Intervened)]
        assert [each.intervention.guide.text for each in told].count("Think of cost.") == 1


async def test_whoever_answers_within_a_moment_is_heard_by_the_same_owner(
    stage: Backstage, replica: Replica, clock: ManualClock
) -> None:
    debate = await replica.create(make_checked_debate())
    await stage.has(debate, "checkpoint_opened")
    await until(partial(_is_asleep, clock), "it waits")
    clock.advance(OWNED_WAIT_SECONDS - 1)
    await replica.intervene(debate, "continue_debate")
    await approve_answer(stage, replica, debate)
    assert await count_claims(stage, debate) == 1


async def test_it_is_taken_up_by_any_replica_after_days(stage: Backstage, clock: ManualClock) -> None:
    days = 3 * 24 * 3600.0
    async with stage.replica(clock=clock, exclusive=False) as one:
        debate = await leave_waiting(
            stage, clock, one, limits=make_limits(checkpoint=2 * days, total=30, round=20)
        )
    clock.advance(days)
    async with stage.replica(clock=clock, exclusive=False) as two:
        await two.intervene(debate, "continue_debate")
        await approve_answer(stage, two, debate)
    assert "limit_reached" not in await stage.kinds(debate)


async def test_where_nobody_comes_it_pauses_when_its_time_is_over_though_no_slot_is_free(
    stage: Backstage, clock: ManualClock
) -> None:
    async with stage.replica(clock=clock, max_debates=1) as replica:
        debate = await leave_waiting(stage, clock, replica, limits=make_limits(checkpoint=CHECKPOINT_SECONDS))
        hold = stage.gateway.hold("round/1/refine/*")
        busy = await replica.create(make_debate(2, 1))
        await stage.gateway.wait_for("round/1/refine/*")
        clock.advance(CHECKPOINT_SECONDS - LONG - 1)
        assert await is_left(stage, debate)
        clock.advance(1)
        events = await stage.comes_to(debate, "PAUSED")
        assert [event.kind for event in events][-3:] == ["claimed", "checkpoint_expired", "paused"]
        hold.release()
        await stage.comes_to(busy, "COMPLETED")
        await replica.intervene(debate, "resume")
        await stage.has(debate, "checkpoint_opened", 2)
        await replica.intervene(debate, "continue_debate")
        await stage.has(debate, "checkpoint_opened", 3)
        await replica.intervene(debate, "approve", approved=True)
        check_log(await stage.comes_to(debate, "COMPLETED"))


async def test_it_is_answered_though_no_slot_is_free_and_then_waits_for_one(
    stage: Backstage, clock: ManualClock
) -> None:
    async with stage.replica(clock=clock, max_debates=1) as replica:
        debate = await leave_waiting(stage, clock, replica)
        hold = stage.gateway.hold("round/1/refine/*")
        busy = await replica.create(make_debate(2, 1))
        await stage.gateway.wait_for("round/1/refine/*")
        await replica.intervene(debate, "mute", agent_id="bo")
        await until(partial(is_left, stage, debate), "it waits on")
        await replica.intervene(debate, "continue_debate")

        async def waits_for_slot() -> bool:
            record = await stage.record(debate)
            return record.open and record.owner is None and record.status == RUNNING

        await until(waits_for_slot, "it waits for a slot")
        assert {asked.debate for asked in stage.gateway.calls} == {busy}
        hold.release()
        await approve_answer(stage, replica, debate)


@pytest.mark.parametrize(("act", "status"), [("cancel", "CANCELLED"), ("pause", "PAUSED")])
async def test_it_is_steered_at_once(stage: Backstage, clock: ManualClock, act: str, status: str) -> None:
    async with stage.replica(clock=clock) as replica:
        debate = await leave_waiting(stage, clock, replica)
        await replica.intervene(debate, act)
        await stage.comes_to(debate, status)
        assert (await stage.record(debate)).due is None


async def test_what_is_refused_leaves_it_waiting(stage: Backstage, clock: ManualClock) -> None:
    async with stage.replica(clock=clock) as replica:
        debate = await leave_waiting(stage, clock, replica)
        with pytest.raises(ParleyError, match="no open checkpoint that approve closes"):
            await replica.intervene(debate, "approve", approved=True)
        await until(partial(_is_asleep, clock), "it waits again")
        clock.advance(LONG)
        await until(partial(is_left, stage, debate), "it is left again")
        await replica.intervene(debate, "continue_debate")
        await approve_answer(stage, replica, debate)


async def test_its_owner_stays_while_something_else_is_waited_for_too(
    stage: Backstage, replica: Replica, clock: ManualClock
) -> None:
    debate = await replica.create(make_debate(2, 1, format=BESIDE.id))
    await stage.has(debate, "checkpoint_opened")
    await stage.has(debate, "timer_started")
    await clock.sleeping(3)
    clock.advance(LONG)
    await clock.sleeping(3)
    assert not await is_left(stage, debate)
    clock.advance(60)
    await stage.has(debate, "timer_fired")
    await clock.sleeping(2)
    clock.advance(LONG)
    await until(partial(is_left, stage, debate), "its owner leaves it")
    await replica.intervene(debate, "continue_debate")
    check_log(await stage.comes_to(debate, "COMPLETED"))


async def test_a_replica_that_adopts_nothing_sees_to_what_was_made_there_alone(
    stage: Backstage, clock: ManualClock
) -> None:
    async with stage.replica(clock=clock, adopt=False) as one:
        foreign = await leave_waiting(stage, clock, one)
    async with stage.replica(clock=clock, adopt=False) as two:
        own = await leave_waiting(stage, clock, two)
        clock.advance(2 * CHECKPOINT_SECONDS)
        await stage.comes_to(own, "PAUSED")
        assert await is_left(stage, foreign)


async def test_a_scan_claims_no_debate_that_its_owner_here_releases_during_the_scan(
    stage: Backstage, replica: Replica, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    list_owned, found_owned, next_scan = DebateIndex.list_owned, asyncio.Event(), asyncio.Event()

    async def owns_no_debate() -> bool:
        return not replica.runner._owned

    async def list_slowly(
        index: DebateIndex, alive: LivenessWindow | None = None, **_: int
    ) -> list[DebateRecord]:
        if found_owned.is_set():
            next_scan.set()
            return await list_owned(index, alive)
        found = await list_owned(index, alive)
        if found:
            found_owned.set()
            await until(owns_no_debate, "its owner releases it")
        return found

    debate = await replica.create(make_checked_debate())
    await stage.has(debate, "checkpoint_opened")
    await until(partial(_is_asleep, clock), "it waits")
    monkeypatch.setattr(DebateIndex, "list_owned", list_slowly)
    async with asyncio.timeout(30):
        await found_owned.wait()
        clock.advance(LONG)
        await next_scan.wait()
    assert await owns_no_debate()
    assert await is_left(stage, debate)
    assert await count_claims(stage, debate) == 1
    await replica.intervene(debate, "continue_debate")
    await approve_answer(stage, replica, debate)
    assert await count_claims(stage, debate) == 2


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2))])
async def test_what_is_said_in_the_moment_in_which_it_is_left_is_heard_once(
    stage: Backstage, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(checkpoints, "OWNED_WAIT_SECONDS", 0.02)
    dice = random.Random(seed)
    async with stage.replica() as replica:
        debates = [await replica.create(make_checked_debate()) for _ in range(6)]

        async def steer(debate: str) -> None:
            await stage.has(debate, "checkpoint_opened")
            for act in ("mute", "unmute", "guide"):
                await asyncio.sleep(dice.uniform(0, 0.05))
                await replica.intervene(debate, act, text="Think of cost.", agent_id="bo")
            await approve_answer(stage, replica, debate)

        await asyncio.gather(*map(steer, debates))
        for debate in debates:
            acts = [
                each.payload.intervention.WhichOneof("act")
                for each in await stage.events(debate)
                if isinstance(each.payload, Intervened)
            ]
            assert acts == ["mute", "unmute", "guide", "approve"]


async def test_a_watcher_gets_heartbeats_while_no_replica_owns_the_debate_and_then_the_next_claim(
    gateway_server: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_rest, left = StatusWriter.write_rest, asyncio.Event()

    async def write_rest_once(writer: StatusWriter, status: str, due: datetime | None = None) -> None:
        await write_rest(writer, status, due)
        # The next owner stays, on a slow machine too: how often the debate is claimed depends on no time.
        monkeypatch.setattr(checkpoints, "OWNED_WAIT_SECONDS", 60.0)
        left.set()

    monkeypatch.setattr(checkpoints, "OWNED_WAIT_SECONDS", 0.02)
    monkeypatch.setattr(StatusWriter, "write_rest", write_rest_once)
    async with orchestrating(
        tmp_path, gateway_server, formats=CHECKED_FORMATS, heartbeat_seconds=0.05
    ) as orchestrator:
        debate = await orchestrator.create(format=CHECKED.id)
        watching = orchestrator.stub.WatchDebate(
            orchestrator_pb2.WatchDebateRequest(debate_id=debate, text_deltas=True), timeout=30
        )
        kinds: list[str] = []
        heartbeats = 0
        async for message in watching:
            if message.HasField("heartbeat"):
                heartbeats += left.is_set()
                if heartbeats == 4:
                    await orchestrator.intervene(debate, continue_debate=debate_pb2.Continue())
            if not message.HasField("event"):
                continue
            kinds.append(kind_of(message.event))
            if kinds.count("checkpoint_opened") == 2 and kinds[-1] == "checkpoint_opened":
                await orchestrator.intervene(debate, approve=debate_pb2.Approve(approved=True))
    assert kinds[-1] == "closed"
    assert kinds.count("claimed") == 2
