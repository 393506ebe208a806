"""A clock that is set while a debate runs costs it none of its time: limits count by what its owners measured."""

from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from parley.orchestrator.log.envelope import Envelope
from parley.v1.event_pb2 import LimitReached
from tests.support.debate_logs import check_log
from tests.support.jumping_clock import JumpingClock
from tests.support.moderated_debates import ModeratedScript, moderated_spec
from tests.support.orchestration import Backstage, backstage, make_debate, make_limits

HOUR, MONTH = timedelta(hours=1), timedelta(days=30)
TEN_MINUTES: Final = make_limits(total=600)


def limits_reached(events: list[Envelope]) -> list[LimitReached]:
    return [event.payload for event in events if isinstance(event.payload, LimitReached)]


@pytest.mark.parametrize("jump", [HOUR, MONTH, -HOUR])
async def test_a_clock_that_jumps_before_a_takeover_uses_up_no_limit(
    stage: Backstage, jump: timedelta
) -> None:
    first, second = stage.gateway.hold("round/1/propose/bo"), stage.gateway.hold("round/1/refine/*")
    clock = JumpingClock()
    async with stage.replica("one", clock=clock) as one:
        debate = await one.create(make_debate(2, 1, limits=TEN_MINUTES))
        await first.reached.wait()
        clock.jump(jump)
        first.release()
        await second.reached.wait()
    second.release()
    async with stage.replica("two", clock=clock):
        events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert not limits_reached(events)


async def test_a_month_that_a_clock_jumps_costs_a_debate_nothing_that_then_waits_for_a_person(
    tmp_path: Path,
) -> None:
    gateway = ModeratedScript(decisions=("agreement",)).gateway()
    hold, clock = gateway.hold("round/1/evaluate"), JumpingClock()
    spec = moderated_spec(checkpoints=True, max_rounds=1, spec={"limits": TEN_MINUTES})
    async with backstage(tmp_path, gateway) as stage:
        async with stage.replica("one", clock=clock) as one:
            debate = await one.create(spec)
            await hold.reached.wait()
            clock.jump(MONTH)
            hold.release()
            events = await stage.has(debate, "checkpoint_opened")
        async with stage.replica("two", clock=clock) as two:
            for act in ("continue_debate", "approve"):
                kinds = [event.kind for event in await stage.events(debate)]
                await stage.has(debate, "checkpoint_opened", kinds.count("checkpoint_closed") + 1)
                await two.intervene(debate, act, approved=True)
            events = await stage.comes_to(debate, "COMPLETED")
    assert not limits_reached(events)


async def test_a_clock_that_jumps_while_a_person_is_asked_does_not_end_the_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parley.orchestrator.engine.checkpoints.OWNED_WAIT_SECONDS", 0.05)
    monkeypatch.setattr("parley.orchestrator.engine.call_admission.Slot.only_waits_for_person", False)
    gateway, clock = ModeratedScript(decisions=("agreement",)).gateway(), JumpingClock()
    spec = moderated_spec(checkpoints=True, max_rounds=1)
    async with backstage(tmp_path, gateway) as stage, stage.replica("one", clock=clock) as one:
        debate = await one.create(spec)
        await stage.has(debate, "checkpoint_opened")
        await stage.comes_to(await one.create(moderated_spec(max_rounds=1)), "COMPLETED")  # the wait began
        clock.jump(MONTH)
        later = await one.create(moderated_spec(max_rounds=1))
        await stage.comes_to(later, "COMPLETED")  # the wait was looked at again meanwhile
        assert "checkpoint_expired" not in await stage.kinds(debate)
        await one.intervene(debate, "cancel")
