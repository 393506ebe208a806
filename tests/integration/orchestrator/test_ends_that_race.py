"""A cancel, a pause or a limit against the answer: in every interleaving one wins, and whoever intervened hears which."""

import asyncio
import random
from collections.abc import Awaitable
from pathlib import Path
from typing import Any

import pytest

from parley.storage.ports import Log, Record
from parley.v1.event_pb2 import Concluded
from tests.support.debate_logs import check_log
from tests.support.interventions import hear_end
from tests.support.manual_clock import ManualClock
from tests.support.orchestration import Backstage, backstage, make_debate, make_limits, until
from tests.support.passing_log import PassingLog


class WaveringLog(PassingLog):
    """A log whose appends take now more, now fewer turns of the loop, before and after they are durable."""

    def __init__(self, log: Log, dice: random.Random) -> None:
        super().__init__(log)
        self._dice = dice

    async def append(self, log: str, record: Record, **beside: Any) -> None:
        await turns(self._dice.randrange(20))
        await self._log.append(log, record, **beside)
        await turns(self._dice.randrange(20))


async def turns(count: int) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.long) for seed in (1, 2, 3))])
async def test_of_a_cancel_a_limit_and_the_answer_one_wins_whoever_is_faster(
    seed: int, tmp_path: Path
) -> None:
    dice = random.Random(seed)
    clock = ManualClock()
    won = set()
    async with (
        backstage(tmp_path) as stage,
        stage.replica(log=WaveringLog(stage.store.log, dice), clock=clock) as replica,
    ):
        for number in range(40):
            last = ("round/1/refine/ada", "synthesis")[number % 2]
            hold = stage.gateway.hold(last)
            debate = await replica.create(make_debate(1, 1, limits=make_limits(total=60)))
            await hold.reached.wait()
            cancelling = asyncio.create_task(
                _intervene_later(
                    dice.randrange(dice.choice((150, 3000))), hear_end(replica.intervene(debate, "cancel"))
                )
            )
            await turns(dice.randrange(150))
            if dice.random() < 0.5:
                clock.advance(60)
                await turns(dice.randrange(50))
            hold.release()
            heard = await cancelling
            won.add(await _find_end(stage, debate, heard))
            stage.gateway._holds.clear()
    assert len(won) > 1, "the dice let different ones win"


async def _intervene_later(count: int, intervening: Awaitable[int | str]) -> int | str:
    await turns(count)
    return await intervening


async def _find_end(stage: Backstage, debate: str, heard: int | str) -> str:
    async def is_closed() -> bool:
        return not (await stage.record(debate)).open

    await until(is_closed, f"{debate} ends")
    events = await stage.events(debate)
    check_log(events)
    (end,) = [event.payload for event in events if isinstance(event.payload, Concluded)]
    status = (await stage.record(debate)).status
    answered = end.HasField("outcome")
    if isinstance(heard, int):
        assert (answered, status) == (False, "CANCELLED")
        assert events[heard - 1].kind == "intervened"
    else:
        assert heard == "DEBATE_ENDED"
        assert (answered, status) == (True, "COMPLETED")
        assert "intervened" not in [event.kind for event in events]
        assert bool(end.ended_by) == ("limit_reached" in [event.kind for event in events])
    return status + end.ended_by
