"""A debate that only waits gives its slot back, and takes one again, in turn, before anything is called."""

import asyncio
import random
import uuid
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial

import pytest

from parley.orchestrator.engine import slots
from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.engine.format import Formats
from parley.orchestrator.formats import panel
from parley.orchestrator.log.debate_record import RUNNING, WAITING, DebateRecord
from parley.orchestrator.log.index import DebateIndex
from parley.orchestrator.log.reading import read_events
from parley.v1.debate_pb2 import Outcome
from parley.v1.event_pb2 import DebateCreated, Intervened
from tests.support.checked_format import (
    AFTER,
    BEFORE,
    CHECKED_FORMATS,
    approve_answer,
    create_panel,
    make_checked_debate,
    person,
)
from tests.support.debate_logs import check_log, count_claims
from tests.support.log_reader import LogReader
from tests.support.manual_clock import ManualClock
from tests.support.orchestration import (
    TENANT,
    Backstage,
    Replica,
    make_debate,
    make_limits,
    until,
    with_fields,
)
from tests.support.scripted_faults import refusal
from tests.support.scripted_gateway import ScriptedGateway

SPEC = make_debate(2, 1)
TIMER_SECONDS = 60.0
NEVER = 3600.0
"""Seconds of a poll that does not come."""


async def _run_after_timer(debate: Debate) -> Outcome:
    await debate.run_timer("cooling", TIMER_SECONDS)
    return await panel.V1.run(debate)


TIMED = create_panel("timed", _run_after_timer)


@pytest.fixture
def formats() -> Formats:
    return Formats([*CHECKED_FORMATS.all(), TIMED])


async def waits(stage: Backstage, debate: str) -> bool:
    """Whether it is owned, and waits for something outside."""
    record = await stage.record(debate)
    return record.status == WAITING and record.owner is not None


async def waits_for_slot(stage: Backstage, debate: str) -> bool:
    record = await stage.record(debate)
    return record.open and record.owner is None and record.status == RUNNING


async def accept(replica: Replica, tenant: str, spec: DebateCreated) -> str:
    request = uuid.uuid4().hex
    debate, _ = await replica.intake.create_debate(tenant, with_fields(spec, request_id=request), request)
    return debate


async def wait_for_slot(replica: Replica) -> None:
    """Wait until a slot of a replica is free."""

    async def is_free() -> bool:
        return replica.runner.has_slot(TENANT)

    await until(is_free, "a slot is free")


def list_begun(stage: Backstage) -> set[str]:
    return {asked.debate for asked in stage.gateway.calls}


@asynccontextmanager
async def keep_busy(stage: Backstage, replica: Replica) -> AsyncIterator[str]:
    """A debate that holds the only slot while the block runs, and then comes to its end."""
    await wait_for_slot(replica)
    hold = stage.gateway.hold("round/1/refine/*")
    busy = await replica.create(SPEC)
    await stage.gateway.wait_for("round/1/refine/*")
    yield busy
    hold.release()
    check_log(await stage.comes_to(busy, "COMPLETED"))


async def test_a_debate_that_waits_for_a_person_keeps_no_other_from_running(stage: Backstage) -> None:
    async with stage.replica(max_debates=1) as replica:
        waiting = await replica.create(make_checked_debate())
        await stage.has(waiting, "checkpoint_opened")
        check_log(await stage.comes_to(await replica.create(SPEC), "COMPLETED"))
        await replica.intervene(waiting, "continue_debate")
        check_log(await stage.comes_to(await replica.create(SPEC), "COMPLETED"))
        await approve_answer(stage, replica, waiting)
        claims = await count_claims(stage, waiting)
    assert claims <= 2, "its owner went on with it wherever the slot was free"


async def test_nor_does_one_that_waits_for_time_to_pass(stage: Backstage, clock: ManualClock) -> None:
    async with stage.replica(clock=clock, max_debates=1) as replica:
        waiting = await replica.create(make_debate(2, 1, format=TIMED.id))
        await stage.has(waiting, "timer_started")
        await wait_for_slot(replica)
        check_log(await stage.comes_to(await replica.create(SPEC), "COMPLETED"))
        await clock.sleeping(2)
        clock.advance(TIMER_SECONDS)
        check_log(await stage.comes_to(waiting, "COMPLETED"))


async def test_nor_does_one_that_waits_for_providers(stage: Backstage, clock: ManualClock) -> None:
    stage.gateway.fail("round/1/propose/*", refusal("PROVIDER_UNAVAILABLE"), times=2)
    async with stage.replica(clock=clock, max_debates=1) as replica:
        waiting = await replica.create(SPEC)
        await stage.has(waiting, "wait_started")
        await wait_for_slot(replica)
        check_log(await stage.comes_to(await replica.create(SPEC), "COMPLETED"))
        await clock.sleeping(2)
        clock.advance(5)
        check_log(await stage.comes_to(waiting, "COMPLETED"))


async def test_after_the_answer_it_calls_nobody_before_it_has_a_slot_and_that_wait_counts_against_no_limit(
    stage: Backstage, clock: ManualClock
) -> None:
    async with stage.replica(clock=clock, max_debates=1) as replica:
        waiting = await replica.create(make_checked_debate(limits=make_limits(total=30, round=20)))
        await stage.has(waiting, "checkpoint_opened")
        async with keep_busy(stage, replica) as busy:
            await replica.intervene(waiting, "continue_debate")
            await until(partial(waits_for_slot, stage, waiting), "it waits for a slot")
            assert list_begun(stage) == {busy}
            clock.advance(1000)
        await approve_answer(stage, replica, waiting)
        assert "limit_reached" not in await stage.kinds(waiting)


@pytest.mark.parametrize(("act", "status"), [("cancel", "CANCELLED"), ("pause", "PAUSED")])
async def test_a_debate_that_waits_for_a_slot_again_is_steered_at_once(
    stage: Backstage, act: str, status: str
) -> None:
    async with stage.replica(max_debates=1) as replica:
        waiting = await replica.create(make_checked_debate())
        await stage.has(waiting, "checkpoint_opened")
        async with keep_busy(stage, replica) as busy:
            await replica.intervene(waiting, "continue_debate")
            await until(partial(waits_for_slot, stage, waiting), "it waits for a slot")
            await replica.intervene(waiting, act)
            await stage.comes_to(waiting, status)
            if act == "pause":
                await replica.intervene(waiting, "resume")
            assert list_begun(stage) == {busy}
        if act == "pause":
            await approve_answer(stage, replica, waiting)


async def test_what_is_said_in_the_moment_in_which_it_finds_no_slot_is_recorded(stage: Backstage) -> None:
    async with stage.replica(max_debates=1) as replica:
        waiting = await replica.create(make_checked_debate())
        await stage.has(waiting, "checkpoint_opened")
        async with keep_busy(stage, replica):
            texts = [f"guidance {number}" for number in range(8)]
            await asyncio.gather(*(replica.intervene(waiting, "guide", text=text) for text in texts))
            recorded = [event.payload for event in await stage.events(waiting)]
            told = [each.intervention.guide.text for each in recorded if isinstance(each, Intervened)]
            assert sorted(told) == texts
        await approve_answer(stage, replica, waiting)


async def test_it_waits_for_a_slot_in_turn(stage: Backstage) -> None:
    async with stage.replica(max_debates=1) as replica:
        waiting = await replica.create(make_checked_debate())
        await stage.has(waiting, "checkpoint_opened")
        async with keep_busy(stage, replica) as busy:
            other = await replica.create(SPEC)
            await replica.intervene(waiting, "continue_debate")
            await until(partial(waits_for_slot, stage, waiting), "it waits for a slot")
        await approve_answer(stage, replica, waiting)
        await until(partial(_has_begun, stage, other), "the other begins too")
        order = list(dict.fromkeys(asked.debate for asked in stage.gateway.calls))
    assert order == [busy, waiting, other], (
        "of tenants that run nothing, the one with the oldest debate is next"
    )


async def _has_begun(stage: Backstage, debate: str) -> bool:
    return debate in list_begun(stage)


async def test_a_tenant_whose_debate_waits_is_not_put_behind_for_it(stage: Backstage) -> None:
    async with stage.replica(max_debates=1) as replica:
        waiting = await accept(replica, "acme", make_checked_debate())
        await until(partial(_has_opened, stage, "acme", waiting), "it waits")
        async with keep_busy(stage, replica) as busy:
            first, second = [await accept(replica, tenant, SPEC) for tenant in ("acme", "small")]
        await stage.gateway.wait_for("synthesis", 3, within=30)
        order = list(dict.fromkeys(asked.debate for asked in stage.gateway.calls))
    assert order == [busy, first, second]


async def _has_opened(stage: Backstage, tenant: str, debate: str) -> bool:
    events = await read_events(stage.store.log, tenant, debate)
    return "checkpoint_opened" in [event.kind for event in events]


async def test_what_follows_the_answer_takes_no_slot(stage: Backstage) -> None:
    async with stage.replica(max_debates=1) as replica:
        waiting = await replica.create(make_checked_debate())
        await stage.has(waiting, "checkpoint_opened")
        await replica.intervene(waiting, "continue_debate")
        await stage.has(waiting, "checkpoint_opened", 2)
        async with keep_busy(stage, replica):
            await approve_answer(stage, replica, waiting)


async def test_only_so_many_wait_without_a_slot(stage: Backstage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "_MAX_IDLE", 2)
    async with stage.replica(max_debates=1) as replica:
        debates = [await replica.create(make_checked_debate()) for _ in range(4)]
        await until(partial(_do_so_many_wait, stage, debates, 3), "three wait")
        assert len(replica.runner._owned) == 3
        for debate in debates:
            await stage.has(debate, "checkpoint_opened")
            await replica.intervene(debate, "cancel")
            await stage.comes_to(debate, "CANCELLED")


async def _do_so_many_wait(stage: Backstage, debates: list[str], count: int) -> bool:
    return sum([await waits(stage, debate) for debate in debates]) == count


@pytest.mark.parametrize("answered", [False, True], ids=["before the answer", "after the answer"])
async def test_the_next_owner_goes_on_with_a_debate_whose_owner_died_while_it_waited(
    stage: Backstage, *, answered: bool
) -> None:
    async with stage.replica(max_debates=1) as one:
        waiting = await one.create(make_checked_debate())
        await stage.has(waiting, "checkpoint_opened")
        if answered:
            hold = stage.gateway.hold("round/1/refine/*")
            await one.create(SPEC)
            await hold.reached.wait()
            await one.intervene(waiting, "continue_debate")
            await until(partial(waits_for_slot, stage, waiting), "it waits for a slot")
            hold.release()
    async with stage.replica(max_debates=1) as two:
        if not answered:
            await two.intervene(waiting, "continue_debate")
        await approve_answer(stage, two, waiting)


async def test_a_drained_replica_gives_up_what_waits_and_has_no_slot(stage: Backstage) -> None:
    async with stage.replica(max_debates=1) as one:
        debates = [await one.create(make_checked_debate()) for _ in range(3)]
        await until(partial(_do_so_many_wait, stage, debates, 3), "all wait")
        await one.runner.drain()
        assert [(await stage.record(debate)).owner for debate in debates] == [None] * 3
        assert not one.runner.has_slot("default"), "another replica may start new ones"


class Watched:
    """Counts the debates that have a call in flight whenever one begins."""

    def __init__(self, gateway: ScriptedGateway) -> None:
        self.most = 0
        self._gateway = gateway
        self._text = gateway.text
        gateway.text = self._says

    def _says(self, step: str, agent: str) -> str:
        running = {asked.debate for asked in self._gateway.calls if asked.end == "open"}
        self.most = max(self.most, len(running))
        return self._text(step, agent)


@pytest.mark.parametrize("waiting", [15, pytest.param(50, marks=pytest.mark.long)])
async def test_all_that_wait_come_to_their_ends_through_one_slot(stage: Backstage, waiting: int) -> None:
    watched = Watched(stage.gateway)
    async with stage.replica(max_debates=1) as replica:
        debates = await asyncio.gather(*(replica.create(make_checked_debate()) for _ in range(waiting)))
        await until(partial(_do_so_many_wait, stage, list(debates), waiting), "all wait", 60)
        check_log(await stage.comes_to(await replica.create(SPEC), "COMPLETED"))
        await _answer_all(stage, replica, debates, "continue_debate", BEFORE)
        await _answer_all(stage, replica, debates, "approve", AFTER)
        for debate in debates:
            check_log(await stage.comes_to(debate, "COMPLETED", 60))
    assert watched.most == 1


async def _answer_all(
    stage: Backstage, replica: Replica, debates: list[str], act: str, checkpoint: str
) -> None:
    reader = LogReader(stage)

    async def answer(debate: str) -> None:
        async def is_asked() -> bool:
            return checkpoint in (await reader.recorded(debate)).open_checkpoints

        await until(is_asked, f"{checkpoint} is open", 60)
        await replica.intervene(debate, act, approved=True, checkpoint=checkpoint)

    await asyncio.gather(*map(answer, debates))


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2, 3))])
async def test_no_slot_is_given_twice_whatever_waits_and_whoever_dies(stage: Backstage, seed: int) -> None:
    dice = random.Random(seed)
    watched = Watched(stage.gateway)
    made: list[Callable[[], DebateCreated]] = [make_checked_debate, lambda: SPEC]
    debates: list[str] = []
    for turn in range(3):
        await until(partial(_have_hung_up, stage), "the gateway has heard of the owner's death")
        calls = len(stage.gateway.calls)
        async with stage.replica(max_debates=2) as replica, person(stage, replica):
            debates += [await replica.create(dice.choice(made)()) for _ in range(4)]
            calls += dice.randint(1, 20)
            if turn < 2:
                await until(partial(_has_called, stage, calls), "some calls")
                continue  # its owner dies here
            for debate in debates:
                check_log(await stage.comes_to(debate, "COMPLETED", 30))
    assert watched.most <= 2


async def _have_hung_up(stage: Backstage) -> bool:
    return all(asked.end != "open" for asked in stage.gateway.calls)


async def _has_called(stage: Backstage, count: int) -> bool:
    return len(stage.gateway.calls) >= count


async def test_a_debate_that_waits_for_a_slot_starts_when_another_ends_and_not_at_the_next_poll(
    stage: Backstage,
) -> None:
    async with stage.replica(max_debates=1, poll_seconds=NEVER) as replica:
        async with keep_busy(stage, replica):
            waiting = await accept(replica, TENANT, SPEC)
        check_log(await stage.comes_to(waiting, "COMPLETED"))


async def test_the_end_of_a_debate_leads_to_no_search_while_none_waits(
    stage: Backstage, monkeypatch: pytest.MonkeyPatch
) -> None:
    searches, search = [], DebateIndex.list_waiting

    async def note(index: DebateIndex) -> tuple[list[DebateRecord], bool]:
        searches.append(index)
        return await search(index)

    monkeypatch.setattr(DebateIndex, "list_waiting", note)
    async with stage.replica(poll_seconds=NEVER) as replica:
        for _ in range(2):  # what the end of the first one leads to is done before the second one's
            check_log(await stage.comes_to(await replica.create(SPEC), "COMPLETED"))
    assert len(searches) == 1, "the one of the start"
