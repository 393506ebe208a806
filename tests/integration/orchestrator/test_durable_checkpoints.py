"""What ends a checkpoint counts at once, and is durable before a debate goes on from there."""

import asyncio

import pytest

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.engine.format import Formats
from parley.orchestrator.engine.inbox import InboxEntry
from parley.orchestrator.formats import panel
from parley.orchestrator.formats.shipped import all_formats
from parley.orchestrator.log.debate_record import RUNNING, WAITING
from parley.orchestrator.log.index import DebateIndex
from parley.storage.ports import Update
from parley.v1.debate_pb2 import Direction, Outcome
from tests.support.checked_format import BEFORE, CHECKED_FORMATS, create_panel, make_checked_debate
from tests.support.debate_logs import hold_append
from tests.support.manual_clock import ManualClock
from tests.support.orchestration import WITHIN, Backstage, make_limits


@pytest.fixture
def formats() -> Formats:
    return CHECKED_FORMATS


async def _let_others_go_on() -> None:
    for _ in range(20):
        await asyncio.sleep(0)


async def test_a_debate_goes_on_from_a_checkpoint_that_is_closed_as_it_opens_once_that_is_durable(
    stage: Backstage, monkeypatch: pytest.MonkeyPatch
) -> None:
    write, waits, closing, told = DebateIndex.write, asyncio.Event(), asyncio.Event(), asyncio.Event()
    went_on: list[bool] = []

    async def hold_waiting(index: DebateIndex, update: Update) -> bool:
        if update.changes.get("status") == WAITING and not waits.is_set():
            waits.set()
            await closing.wait()
            is_written = await write(index, update)
            told.set()
            return is_written
        if update.changes.get("status") == RUNNING and told.is_set():
            went_on.append(released.is_set())
        return await write(index, update)

    monkeypatch.setattr(DebateIndex, "write", hold_waiting)
    reached, released = hold_append(stage, monkeypatch, "checkpoint_closed")
    async with stage.replica() as replica, asyncio.timeout(WITHIN):
        debate = await replica.create(make_checked_debate())
        await waits.wait()
        person = asyncio.create_task(replica.intervene(debate, "continue_debate"))
        await reached.wait()
        closing.set()
        await told.wait()
        await _let_others_go_on()
        released.set()
        await person
        await stage.has(debate, "checkpoint_opened", 2)
    assert went_on == [True]


async def test_a_later_owner_goes_on_from_a_checkpoint_that_is_closed_before_it_is_there_once_that_is_durable(
    stage: Backstage, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_ask, went_on = asyncio.Event(), list[bool]()

    async def run(debate: Debate) -> Outcome:
        await may_ask.wait()
        await debate.run_checkpoint(BEFORE, Direction(text="Shall we begin?"))
        went_on.append(released.is_set())
        return await panel.V1.run(debate)

    late = create_panel("late", run)
    formats = Formats([*all_formats().all(), late])
    async with stage.replica(formats=formats) as replica, asyncio.timeout(WITHIN):
        may_ask.set()
        debate = await replica.create(make_checked_debate(late))
        await stage.has(debate, "checkpoint_opened")
    may_ask.clear()
    reached, released = hold_append(stage, monkeypatch, "checkpoint_closed")
    async with stage.replica(formats=formats) as replica, asyncio.timeout(WITHIN):
        await stage.has(debate, "claimed", 2)
        person = asyncio.create_task(replica.intervene(debate, "continue_debate"))
        await reached.wait()
        may_ask.set()
        await _let_others_go_on()
        released.set()
        await person
        await stage.comes_to(debate, "COMPLETED")
    assert went_on == [True]


async def test_a_debate_that_is_resumed_as_its_checkpoint_expires_asks_again(
    stage: Backstage, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = ManualClock()
    reached, released = hold_append(stage, monkeypatch, "checkpoint_expired")
    async with stage.replica(clock=clock, exclusive=False) as replica, asyncio.timeout(WITHIN):
        debate = await replica.create(make_checked_debate(limits=make_limits(checkpoint=3)))
        await stage.has(debate, "checkpoint_opened")
        await clock.sleeping(2)
        clock.advance(3)
        await reached.wait()
        ((owner, _),) = replica.runner._owned.values()
        deliver, delivered = owner.deliver, asyncio.Event()

        def note(entry: InboxEntry) -> None:
            deliver(entry)
            delivered.set()

        monkeypatch.setattr(owner, "deliver", note)
        person = asyncio.create_task(replica.intervene(debate, "resume"))
        await delivered.wait()
        await _let_others_go_on()
        released.set()
        await person
        await stage.has(debate, "checkpoint_opened", 2)
