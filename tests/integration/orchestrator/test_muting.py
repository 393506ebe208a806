"""Who is muted and heard again: the owner decides, so that somebody is heard whoever asks at once."""

import asyncio
from collections.abc import Awaitable

import grpc
import pytest

from parley.runtime.errors import ParleyError
from tests.support.debate_logs import check_log
from tests.support.orchestration import Backstage, make_debate
from tests.support.scripted_gateway import ScriptedGateway

AGENTS = ("ada", "bo", "cy")


async def hear_refusal(intervening: Awaitable[int]) -> int | str:
    """Return the sequence that records an intervention, or why it was refused."""
    try:
        return await intervening
    except ParleyError as error:
        return error.reason if error.code == grpc.StatusCode.FAILED_PRECONDITION else str(error)


@pytest.mark.parametrize("at_rest", [False, True])
async def test_of_all_who_are_muted_at_once_at_two_replicas_one_is_still_heard(
    stage: Backstage, at_rest: bool
) -> None:
    hold = stage.gateway.hold("round/1/propose/*")
    async with stage.replica("one") as one, stage.replica("two", exclusive=False) as two:
        debate = await one.create(make_debate(3))
        await stage.gateway.wait_for("round/1/propose/*", 3)
        if at_rest:
            await one.intervene(debate, "pause", stop_calls=True)
            await stage.comes_to(debate, "PAUSED")
        asked = [
            hear_refusal(at.intervene(debate, "mute", f"mute-{each}", agent_id=each))
            for at, each in zip((one, two, one), AGENTS, strict=True)
        ]
        answers = await asyncio.gather(*asked)
        (refused,) = [each for each, answer in zip(AGENTS, answers, strict=True) if answer == "LAST_AGENT"]
        assert sum(isinstance(each, int) for each in answers) == 2
        again = one.intervene(debate, "mute", f"mute-{refused}", agent_id=refused)
        assert await hear_refusal(again) == "LAST_AGENT", "whenever it is sent again"
        hold.release()
        if at_rest:
            await one.intervene(debate, "resume")
        events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert [event.kind for event in events].count("intervened") == 2 + 2 * at_rest
    assert {step.rsplit("/", 1)[1] for step in stage.gateway.steps("round/2/propose/*")} == {refused}


@pytest.mark.parametrize("act", ["mute", "unmute"])
async def test_who_does_not_debate_is_neither_muted_nor_heard(stage: Backstage, act: str) -> None:
    stage.gateway.hold("*")
    async with stage.replica() as replica:
        debate = await replica.create(make_debate())
        with pytest.raises(ParleyError) as refused:
            await replica.intervene(debate, act, agent_id="nobody")
    assert refused.value.code == grpc.StatusCode.INVALID_ARGUMENT
    assert [each.field for each in refused.value.violations] == [f"intervention.{act}.agent_id"]
    assert "agents of this debate: ada, bo" in refused.value.violations[0].description


def in_round(gateway: ScriptedGateway, number: int, agent: str) -> list[str]:
    return [step for step in gateway.steps(f"round/{number}/*") if step.endswith(f"/{agent}")]


async def test_an_agent_that_is_unmuted_takes_part_again_from_the_next_round_on(stage: Backstage) -> None:
    first, second = stage.gateway.hold("round/1/refine/*"), stage.gateway.hold("round/2/refine/*")
    async with stage.replica() as replica:
        debate = await replica.create(make_debate(3, rounds=3))
        await first.reached.wait()
        await replica.intervene(debate, "mute", agent_id="bo")
        first.release()
        await second.reached.wait()
        await replica.intervene(debate, "unmute", agent_id="bo")
        await replica.intervene(debate, "unmute", agent_id="ada")  # was never muted: nothing changes
        second.release()
        events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert [bool(in_round(stage.gateway, number, "bo")) for number in (1, 2, 3)] == [True, False, True]
    assert all(in_round(stage.gateway, number, "ada") for number in (1, 2, 3))
