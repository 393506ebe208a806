"""Replicas that end at any write of a delivery, and receivers of which every fifth fails: each event arrives, in order, under one id."""

import asyncio
import random
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest

from parley.orchestrator.delivery.deliveries import DEAD, DELIVERED
from parley.orchestrator.delivery.message import DeliveryError, Message
from parley.orchestrator.log.debate_record import COMPLETED
from parley.orchestrator.log.index import DEBATES, DebateIndex
from parley.orchestrator.model.times import time_text
from parley.v1.event_pb2 import CheckpointOpened
from parley.v1.hook_pb2 import HOOK_EVENT_CONCLUDED, HOOK_EVENT_WAITING
from tests.support.hook_stage import TENANT, HookStage, make_concluded, open_hook_stage
from tests.support.manual_clock import ManualClock
from tests.support.orchestration import until
from tests.support.stopping_stores import StoppedError, StoppingDocuments, Writes

WRITES: Final = 9
"""At least: the debate's status, two deliveries, that hooks are told, and of each delivery that it is taken and that it has arrived; and that
the second one may go."""


async def end_at(stage: HookStage, writes: Writes) -> None:
    """Run one replica that ends at a write: it owns a debate that waited and has just ended."""
    documents: Any = StoppingDocuments(stage.store.documents, writes)
    index = DebateIndex(documents)
    replica = stage.replica(documents, index=index)
    record = await stage.add_debate("one", CheckpointOpened(), make_concluded(), is_marked=False)

    async def take_over() -> None:
        updated = time_text(stage.clock.now())
        planned = index.plan_status(record, 1, status=COMPLETED, is_open=False, owner=None, updated=updated)
        await index.write(planned)

    running = asyncio.create_task(replica.run())
    with suppress(StoppedError):
        await take_over()

        async def is_over() -> bool:
            delivered = await stage.deliveries.list_page(TENANT, "", 2, state=DELIVERED)
            return running.done() or len(delivered) == 2

        await until(is_over, "it has ended, or delivered all")
    running.cancel()
    await asyncio.gather(running, return_exceptions=True)
    if not writes.made:  # another replica claims the debate, and writes what the log says
        await stage.extend(record)


@pytest.mark.parametrize("lost", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("limit", range(WRITES))
async def test_whoever_ends_at_any_write_leaves_a_delivery_to_the_others(
    tmp_path: Path, limit: int, *, lost: bool
) -> None:
    clock, writes = ManualClock(), Writes(limit, lost)
    async with open_hook_stage(tmp_path, clock) as stage:
        hook = await stage.add_hook(HOOK_EVENT_WAITING, HOOK_EVENT_CONCLUDED)
        async with asyncio.timeout(20):
            await end_at(stage, writes)
            assert writes.has_stopped, "it ended there"
            clock.advance(61)
            async with stage.running():
                await stage.comes_to(DELIVERED, 2)
        [found] = await stage.store.documents.find(DEBATES, {"tenant": TENANT})
    assert (found.fields["news"], found.fields["told"]) == (None, 3)
    got = stage.got[hook]
    first = list(dict.fromkeys(each.event for each in got))
    assert first == [HOOK_EVENT_WAITING, HOOK_EVENT_CONCLUDED]
    assert len({each.id for each in got}) == 2
    assert len(got) <= 3, "only what was sent and not recorded is sent again"


async def test_a_delivery_during_whose_every_try_the_process_ends_is_a_dead_letter(tmp_path: Path) -> None:
    clock, begun = ManualClock(), asyncio.Event()

    async def end(_: Message) -> None:
        begun.set()
        await asyncio.Event().wait()

    async with open_hook_stage(tmp_path, clock) as stage, asyncio.timeout(20):
        await stage.add_hook(behave=end)
        await stage.add_debate("one", make_concluded())
        for _ in range(20):
            async with stage.running():
                await begun.wait()
            begun.clear()
            clock.advance(61)
        async with stage.running():
            [dead] = await stage.comes_to(DEAD)
    assert "did not end" in dead.error
    assert not begun.is_set()


@pytest.mark.parametrize("count", [200, pytest.param(1000, marks=pytest.mark.long)])
async def test_of_many_debates_before_failing_receivers_none_is_lost(tmp_path: Path, count: int) -> None:
    chance, clock, tries = random.Random(7), ManualClock(), Counter[str]()

    async def fail_often(message: Message) -> None:
        tries[message.id] += 1
        if chance.random() < 0.2:
            raise DeliveryError("it answered 500", retry_after=chance.choice([None, 30.0]))

    async with open_hook_stage(tmp_path, clock) as stage:
        hook = await stage.add_hook(behave=fail_often)
        names = {f"debate-{number}" for number in range(count)}
        async with stage.running(2):
            await asyncio.gather(*(stage.add_debate(name, make_concluded()) for name in names))
            async with asyncio.timeout(120):
                while len(stage.got[hook]) < len(names):
                    await clock.sleeping(2)
                    clock.advance(1)
                    await asyncio.sleep(0.01)
            await stage.comes_to(DELIVERED, count)
    assert {each.debate for each in stage.got[hook]} == names
    assert len(tries) == count
    assert sum(tries.values()) > 1.1 * count
