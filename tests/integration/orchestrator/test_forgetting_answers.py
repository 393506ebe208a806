"""What the gateway keeps of answers once the log has them."""

from pathlib import Path

from tests.support.debate_logs import leave_log
from tests.support.orchestration import Backstage, Orchestrator, backstage, kind_of, make_debate, until
from tests.support.scripted_gateway import ScriptedGateway


async def test_the_gateway_forgets_the_answers_of_a_debate_once_it_is_closed(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    debate = await orchestrator.create(rounds=1)
    events = [each.event for each in await orchestrator.watch(debate)]
    await until(lambda: _is_told(gateway), "the gateway is told")
    answered = {
        (each.key, each.attempt)
        for each in events
        if kind_of(each) == "step_succeeded" and each.step_succeeded.HasField("reply")
    }
    (told,) = gateway.unkept
    assert set(told) == answered
    assert len(told) == len(answered)


async def test_a_gateway_that_cannot_forget_holds_nothing_up(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    gateway.forgets = False
    for _ in range(2):
        events = await orchestrator.watch(await orchestrator.create(rounds=1))
        assert kind_of(events[-1].event) == "closed"
    await until(lambda: _is_told(gateway, 2), "each debate has tried it")


async def test_answers_that_the_gateway_holds_are_forgotten_while_the_debate_goes_on_and_not_again_at_the_end(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    gateway.holds_answers = True
    last = gateway.hold("synthesis")
    debate = await orchestrator.create(rounds=1)
    await last.reached.wait()
    answered = len(gateway.calls) - 1
    await until(lambda: _is_told_of(gateway, answered), "the gateway is told of all answers so far")
    last.release()
    events = await orchestrator.watch(debate)
    assert kind_of(events[-1].event) == "closed"
    await until(lambda: _is_told_of(gateway, len(gateway.calls)), "it is told of the others")
    other = await orchestrator.create(rounds=1)
    await orchestrator.watch(other)
    await until(lambda: _is_told_of(gateway, len(gateway.calls)), "it is told of the other debate's")
    told = [each for calls in gateway.unkept for each in calls]
    assert sorted(set(told)) == sorted((step, 1) for step in set(gateway.steps()))
    assert len(told) == len(gateway.calls), "each once"


async def test_an_owner_of_a_debate_that_closed_as_the_one_before_was_killed_lets_the_gateway_forget_its_answers(
    stage: Backstage, tmp_path: Path
) -> None:
    async with stage.replica() as first:
        events = await stage.comes_to(await first.create(make_debate(2, 1)), "COMPLETED")
    async with backstage(tmp_path / "later") as later:
        await leave_log(later, events)
        async with later.replica():
            await until(lambda: _is_told(later.gateway), "the gateway is told")
    (told,) = later.gateway.unkept
    assert sorted(told) == sorted((step, 1) for step in stage.gateway.steps())


async def _is_told(gateway: ScriptedGateway, times: int = 1) -> bool:
    return len(gateway.unkept) >= times


async def _is_told_of(gateway: ScriptedGateway, answers: int) -> bool:
    return sum(map(len, gateway.unkept)) >= answers
