"""Debates that a very small model holds: asked for prose alone, answered in the panel's own sentences, marked."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import pytest_asyncio

from parley.runtime.server import RunningServer
from parley.v1 import agent_pb2, debate_pb2
from parley.v1.debate_pb2 import DEBATE_STATUS_COMPLETED, DEBATE_STATUS_FAILED
from parley.v1.panel_pb2 import SYNTHESIS_METHOD_VOTING
from tests.support.orchestration import Orchestrator, make_debate, orchestrating
from tests.support.scripted_faults import refusal
from tests.support.scripted_gateway import ScriptedGateway
from tests.support.stopping import Play

TEAM = ("ada", "bo", "cy")


def talk_small(step: str, agent: str) -> str:
    """What a small model says: it stops in the middle, and says a thing twice."""
    if step == "synthesis":
        return "I recommend to begin with one service. I recommend to begin with one service. It is the easiest to"
    if "critique" in step:
        return f"The problem with this is that {agent} sees no reason. And so"
    return f"I propose to do what {agent} likes. It is good. It is good."


@pytest.fixture
def gateway() -> ScriptedGateway:
    made = ScriptedGateway()
    made.demonstration, made.text = True, talk_small
    return made


@pytest_asyncio.fixture
async def server(gateway: ScriptedGateway) -> AsyncIterator[RunningServer]:
    async with gateway.served() as running:
        yield running


@pytest_asyncio.fixture
async def orchestrator(server: RunningServer, tmp_path: Path) -> AsyncIterator[Orchestrator]:
    async with orchestrating(tmp_path, server) as served:
        yield served


async def hold_debate(orchestrator: Orchestrator, **fields: object) -> debate_pb2.Debate:
    debate = await orchestrator.create(**fields)  # type: ignore[arg-type]
    await orchestrator.watch(debate)
    return await orchestrator.status(debate, DEBATE_STATUS_COMPLETED)


async def test_each_agent_is_asked_as_often_as_in_any_panel_and_never_for_a_form(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    debate = await hold_debate(orchestrator)
    assert len(gateway.calls) == debate.calls == 3 + 6 + 3 + 1
    assert not any(asked.schema for asked in gateway.calls)
    assert all(asked.answer_start for asked in gateway.calls)
    assert {asked.max_output_tokens for asked in gateway.calls} == {64}


async def test_the_judge_is_bounded_like_everybody_and_its_answer_is_begun_for_it(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    await hold_debate(orchestrator, max_output_tokens=20)
    judge = gateway.asked("synthesis")
    assert (judge.answer_start, judge.max_output_tokens) == ("I recommend to", 20)
    assert {asked.max_output_tokens for asked in gateway.calls} == {20}


async def test_no_prompt_holds_letters_names_or_half_sentences(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    await hold_debate(orchestrator, rounds=2)
    for asked in gateway.calls:
        assert "agent A" not in asked.prompt
        assert "Position:" not in asked.prompt
        assert "And so" not in asked.prompt
        assert len(asked.prompt) < 700
    assert (
        "You said before: I propose to do what ada likes. It is good."
        in gateway.asked("round/2/propose/ada").prompt
    )
    assert "sees no reason.\n- " in gateway.asked("round/1/refine/ada").prompt


async def test_the_answer_is_whole_sentences_without_lists_below_what_says_that_it_is_a_demonstration(
    orchestrator: Orchestrator,
) -> None:
    debate = await hold_debate(orchestrator)
    details = debate.outcome.details
    # What the judge left shorter than 80 characters is followed by a sentence of the panel.
    assert debate.outcome.description == (
        "I recommend to begin with one service. I propose to do what ada likes."
    )
    assert details == debate_pb2.AnswerDetails()
    marked, text, *more = debate.answer.split("\n\n")
    assert marked.startswith("*Demonstration: a very small model wrote this")
    assert (text, more) == (f"{debate.outcome.description}\n", [])
    assert not debate.outcome.scores


async def test_it_is_marked_and_neither_rated_nor_remembered(orchestrator: Orchestrator) -> None:
    debate = await hold_debate(orchestrator)
    assert debate.demonstration
    assert debate.answer.startswith("*Demonstration: ")
    assert not debate.warnings
    events = await orchestrator.watch(debate.id)
    assert not any(message.event.key.startswith("after/") for message in events)


async def test_one_round_is_held_unless_somebody_asks_for_more(orchestrator: Orchestrator) -> None:
    assert (await hold_debate(orchestrator, rounds=0)).max_rounds == 1
    assert (await hold_debate(orchestrator, rounds=2)).max_rounds == 2


async def test_a_debate_that_others_answer_is_none(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    gateway.demonstration = False
    debate = await hold_debate(orchestrator, rounds=0)
    assert not debate.demonstration
    assert debate.max_rounds == 3
    assert gateway.asked("synthesis").schema
    assert not gateway.asked("synthesis").answer_start


async def test_what_such_a_model_cannot_do_is_said(orchestrator: Orchestrator) -> None:
    debate = await hold_debate(orchestrator, synthesis_method=SYNTHESIS_METHOD_VOTING)
    assert list(debate.warnings) == ["a very small model answers: it cannot vote or merge: the judge answers"]


async def test_an_agent_alone_is_asked_for_no_critique(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    await hold_debate(orchestrator, agents=[debate_pb2.Participant(agent_id="ada")])
    assert gateway.steps() == ["round/1/propose/ada", "round/1/refine/ada", "synthesis"]
    assert "Colleagues" not in gateway.asked("round/1/refine/ada").prompt


async def test_guidance_and_a_prompt_of_ones_own_reach_the_model(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    hold = gateway.hold("round/1/propose/ada")
    own = agent_pb2.PromptText(text="You are a pirate.", source="pirate.md")
    ada = debate_pb2.Participant(agent=agent_pb2.Agent(id="ada", role="architect", system_prompt=own))
    debate = await orchestrator.create(rounds=2, agents=[ada])
    await gateway.wait_for("round/1/propose/ada")
    await orchestrator.intervene(debate, guide=debate_pb2.Guide(text="Mind the tide."))
    hold.release()
    await orchestrator.status(debate, DEBATE_STATUS_COMPLETED)
    second = gateway.asked("round/2/propose/ada").prompt
    assert second.startswith("You are a pirate.")
    assert "Mind this: Mind the tide." in second


async def test_a_model_that_cannot_be_asked_fails_the_debate_which_can_be_resumed(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    gateway.fail("round/1/propose/*", refusal("CONTEXT_OVERFLOW", "the question is too long"))
    debate = await orchestrator.create()
    failed = await orchestrator.status(debate, DEBATE_STATUS_FAILED)
    assert (failed.failure.reason, failed.failure.phase) == ("CONTEXT_OVERFLOW", "round 1 proposal")
    gateway.mend()
    await orchestrator.intervene(debate, resume=debate_pb2.Resume())
    assert (await orchestrator.status(debate, DEBATE_STATUS_COMPLETED)).demonstration


async def test_whoever_fails_is_gone_on_without(orchestrator: Orchestrator, gateway: ScriptedGateway) -> None:
    gateway.fail("round/1/propose/bo")
    gateway.fail("round/1/refine/cy")
    debate = await hold_debate(orchestrator)
    assert gateway.steps("round/1/critique/*/of/bo") == []
    assert "what cy likes" in gateway.asked("synthesis").prompt
    assert len(debate.failures) == 2


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.long) for part in range(1, 8))])
async def test_a_demonstration_that_is_stopped_at_any_event_ends_as_if_it_had_not_been(
    part: int, tmp_path: Path
) -> None:
    def make_gateway() -> ScriptedGateway:
        gateway = ScriptedGateway()
        gateway.fail("round/1/critique/ada/of/bo")
        return gateway

    held = await Play(make_debate(2, 2, demonstration=True), make_gateway).held(tmp_path)
    await held.ends_the_same_wherever_it_is_stopped(part, of=8)
