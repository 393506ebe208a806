"""The panel: what is asked of whom, when it starts, and what is done where some are late or fail."""

import asyncio
import re
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parley.orchestrator.events import Concluded, DebateFailed, PhaseFinished, PhaseStarted, Solution, Warned
from parley.orchestrator.spec import DebateSpec, SummarySettings
from tests.support.orchestration import Backstage, Replica, agent, backstage, check_log, make_spec, outcomes
from tests.support.scripted_gateway import judgement, refusal


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Backstage]:
    async with backstage(tmp_path) as behind:
        yield behind


@pytest.fixture
async def replica(stage: Backstage) -> AsyncIterator[Replica]:
    async with stage.replica() as started:
        yield started


async def held(stage: Backstage, replica: Replica, spec: DebateSpec) -> Solution:
    """Hold a debate to its end and return its answer."""
    events = await stage.comes_to(await replica.create(spec), "COMPLETED")
    check_log(events)
    (solution,) = [event.payload.solution for event in events if isinstance(event.payload, Concluded)]
    assert solution is not None
    return solution


@settings(max_examples=15, deadline=None)
@given(agents=st.integers(1, 4), rounds=st.integers(1, 3), carry=st.booleans(), history=st.booleans())
def test_a_debate_makes_the_calls_of_its_formula(
    agents: int, rounds: int, carry: bool, history: bool
) -> None:
    async def hold() -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            async with backstage(Path(folder)) as stage, stage.replica() as replica:
                spec = make_spec(agents, rounds, carry_forward=carry, include_full_history=history)
                await held(stage, replica, spec)
                return stage.gateway.steps()

    steps = asyncio.run(hold())
    proposals = agents if carry else agents * rounds
    assert len(steps) == proposals + rounds * agents * (agents - 1) + rounds * agents + 1
    assert len(set(steps)) == len(steps)


async def test_a_critique_starts_with_its_one_proposal_while_another_still_hangs(
    stage: Backstage, replica: Replica
) -> None:
    hold = stage.gateway.hold("round/1/propose/cy")
    await replica.create(make_spec(3, 1))
    await stage.gateway.wait_for("round/1/critique/*", 4)
    assert {step.rpartition("/")[2] for step in stage.gateway.steps("round/1/critique/*")} == {"ada", "bo"}
    assert not stage.gateway.steps("round/1/refine/*")
    hold.release()
    await stage.gateway.wait_for("synthesis")


async def test_a_refinement_needs_its_own_critiques_and_no_others(stage: Backstage, replica: Replica) -> None:
    stage.gateway.hold("round/1/critique/ada/of/cy")
    await replica.create(make_spec(3, 1))
    await stage.gateway.wait_for("round/1/refine/*", 2)
    assert set(stage.gateway.steps("round/1/refine/*")) == {"round/1/refine/ada", "round/1/refine/bo"}


async def test_without_full_history_an_agent_goes_on_while_another_is_a_round_behind(
    stage: Backstage, replica: Replica
) -> None:
    hold = stage.gateway.hold("round/1/refine/bo")
    debate = await replica.create(make_spec(2, 2, include_full_history=False))
    await stage.gateway.wait_for("round/2/propose/ada")
    assert not stage.gateway.steps("round/2/propose/bo")
    hold.release()
    await stage.comes_to(debate, "COMPLETED")


async def test_with_full_history_nobody_starts_a_round_before_the_last_one_is_complete(
    stage: Backstage, replica: Replica
) -> None:
    hold = stage.gateway.hold("round/1/refine/bo")
    debate = await replica.create(make_spec(3, 2))
    await hold.reached.wait()
    await stage.gateway.wait_for("round/1/refine/*", 3)
    await stage.has(debate, "step_succeeded", 3 + 6 + 2)
    assert not stage.gateway.steps("round/2/*")
    hold.release()
    await stage.comes_to(debate, "COMPLETED")
    prompt = stage.gateway.asked("round/2/propose/ada").prompt
    for text in (
        "bo answers round/1/refine/bo",
        "bo answers round/1/critique/bo/of/cy",
        "ada answers round/1/propose/ada",
    ):
        assert text in prompt


async def test_without_full_history_an_agent_sees_its_own_line_of_work_only(
    stage: Backstage, replica: Replica
) -> None:
    await held(stage, replica, make_spec(3, 2, include_full_history=False))
    prompt = stage.gateway.asked("round/2/propose/ada").prompt
    assert "ada answers round/1/refine/ada" in prompt
    assert "bo answers round/1/critique/bo/of/ada" in prompt
    assert "bo answers round/1/refine/bo" not in prompt
    assert "bo answers round/1/critique/bo/of/cy" not in prompt


async def test_peers_go_unnamed_and_ones_own_work_is_ones_own(stage: Backstage, replica: Replica) -> None:
    stage.gateway.text = lambda step, agent: f"text of {step.replace(agent, '-').translate(_HIDE)}"
    await held(stage, replica, make_spec(3, 2))
    prompt = stage.gateway.asked("round/2/critique/bo/of/ada").prompt
    assert "[round 1, proposal by you]" in prompt
    assert "[round 1, critique of agent A's proposal by you]" in prompt
    assert "[round 1, critique of your proposal by agent C]" in prompt
    assert "Proposal of agent A" in prompt
    for each in stage.gateway.calls:
        assert not re.search(r"\b(ada|bo|cy)\b", each.prompt, re.IGNORECASE), each.step


_HIDE = str.maketrans("abcdefghijklmnopqrstuvwxyz", "." * 26)


async def test_a_failed_agent_is_left_out_and_the_others_go_on(stage: Backstage, replica: Replica) -> None:
    stage.gateway.fail("round/1/propose/cy")
    solution = await held(stage, replica, make_spec(3, 1))
    assert solution.description == "The answer."
    assert not stage.gateway.steps("round/1/critique/*/of/cy")
    assert not stage.gateway.steps("round/1/refine/cy")
    assert len(stage.gateway.steps("round/1/critique/cy/of/*")) == 2


async def test_below_quorum_the_debate_fails_and_names_agent_and_phase_and_resuming_retries_what_failed(
    stage: Backstage, replica: Replica
) -> None:
    stage.gateway.fail("round/1/propose/bo", refusal("PROVIDER_AUTH", "401 from the provider"), attempt=1)
    stage.gateway.fail("round/1/propose/cy", attempt=1)
    debate = await replica.create(make_spec(3, 1))
    events = await stage.comes_to(debate, "FAILED")
    (failed,) = [event.payload for event in events if isinstance(event.payload, DebateFailed)]
    assert (failed.reason, failed.message) == ("PROVIDER_AUTH", "401 from the provider")
    assert (failed.agent, failed.phase) == ("bo", "round 1 proposal")
    assert failed.steps == ("round/1/propose/bo", "round/1/propose/cy")
    before = len(stage.gateway.calls)
    await replica.wish(debate, "resume")
    events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    again = [each.call for each in stage.gateway.calls[before:]]
    assert ("round/1/propose/bo", 2) in again
    assert ("round/1/propose/cy", 2) in again
    assert not {("round/1/propose/ada", 1), ("round/1/propose/ada", 2)} & set(again)
    assert outcomes(events)["round/1/propose/bo", 1] == "failed: PROVIDER_AUTH"


async def test_a_debate_whose_judge_failed_is_resumed_at_the_judge(
    stage: Backstage, replica: Replica
) -> None:
    stage.gateway.fail("synthesis", refusal("INVALID_STRUCTURED_ANSWER", "not JSON"), attempt=1)
    debate = await replica.create(make_spec(2, 1))
    events = await stage.comes_to(debate, "FAILED")
    (failed,) = [event.payload for event in events if isinstance(event.payload, DebateFailed)]
    assert (failed.agent, failed.phase, failed.steps) == ("judge", "synthesis", ("synthesis",))
    before = len(stage.gateway.calls)
    await replica.wish(debate, "resume")
    await stage.comes_to(debate, "COMPLETED")
    assert [each.call for each in stage.gateway.calls[before:]] == [("synthesis", 2)]


async def test_an_agent_whose_critics_all_failed_keeps_its_proposal(
    stage: Backstage, replica: Replica
) -> None:
    stage.gateway.fail("round/1/critique/*/of/ada")
    await held(stage, replica, make_spec(3, 2, carry_forward=True))
    assert not stage.gateway.steps("round/1/refine/ada")
    assert "ada answers round/1/propose/ada" in stage.gateway.asked("round/2/critique/bo/of/ada").prompt
    assert "bo answers round/1/refine/bo" in stage.gateway.asked("round/2/critique/ada/of/bo").prompt


async def test_an_agent_that_carried_nothing_forward_proposes_anew(
    stage: Backstage, replica: Replica
) -> None:
    stage.gateway.fail("round/1/propose/cy")
    debate = await replica.create(make_spec(3, 2, carry_forward=True))
    events = await stage.comes_to(debate, "COMPLETED")
    assert stage.gateway.steps("round/2/propose/*") == ["round/2/propose/cy"]
    starts = {
        (each.payload.name, each.payload.round) for each in events if isinstance(each.payload, PhaseStarted)
    }
    ends = {
        (each.payload.name, each.payload.round) for each in events if isinstance(each.payload, PhaseFinished)
    }
    assert starts == ends


async def test_a_panel_of_one_debates_alone(stage: Backstage, replica: Replica) -> None:
    await held(stage, replica, make_spec(1, 2))
    assert stage.gateway.steps() == [
        "round/1/propose/ada", "round/1/refine/ada", "round/2/propose/ada", "round/2/refine/ada", "synthesis"
    ]  # fmt: skip


async def test_a_long_history_is_summarized_and_later_prompts_use_the_summary(
    stage: Backstage, replica: Replica
) -> None:
    def text(step: str, agent: str) -> str:
        return f"SUMMARY of {agent} " + "s" * 400 if "summarize" in step else f"{agent} {step} " + "x" * 400

    stage.gateway.text = text
    short = SummarySettings(threshold=1000, max_length=100)
    never = SummarySettings(enabled=False)
    agents = (agent("ada"), agent("bo", summaries=never))
    await held(stage, replica, make_spec(2, 2, agents=agents, summaries=short))
    assert stage.gateway.steps("round/*/summarize/*") == ["round/2/summarize/ada"]
    summarized = stage.gateway.asked("round/2/summarize/ada").prompt
    assert "bo round/1/critique/bo/of/ada" in summarized
    assert "round/1/refine/bo" not in summarized
    for step in ("round/2/propose/ada", "round/2/critique/ada/of/bo", "round/2/refine/ada"):
        prompt = stage.gateway.asked(step).prompt
        assert "SUMMARY of ada" in prompt
        assert "s" * 101 not in prompt
        assert "round/1/refine/ada" not in prompt
    assert "ada round/1/refine/ada" in stage.gateway.asked("round/2/propose/bo").prompt


async def test_a_summary_that_fails_is_a_warning_and_the_full_history_is_used(
    stage: Backstage, replica: Replica
) -> None:
    stage.gateway.fail("*summarize*", refusal("PROVIDER_UNAVAILABLE", "try later"))
    spec = make_spec(2, 2, summaries=SummarySettings(threshold=10, max_length=10))
    events = await stage.comes_to(await replica.create(spec), "COMPLETED")
    warnings = [event.payload.message for event in events if isinstance(event.payload, Warned)]
    assert len(warnings) == 3  # ada, bo and the judge
    assert any("Ada could not summarize" in each and "try later" in each for each in warnings)
    assert "ada answers round/1/refine/ada" in stage.gateway.asked("round/2/propose/ada").prompt
    assert "ada answers round/1/refine/ada" in stage.gateway.asked("synthesis").prompt


async def test_the_judge_reads_its_own_summary_of_a_long_last_round(
    stage: Backstage, replica: Replica
) -> None:
    stage.gateway.text = lambda step, agent: (
        "THE GIST" if step == "synthesis/summarize" else f"{step} " + "x" * 300
    )
    judge = agent("judge", "judge", summaries=SummarySettings(threshold=1000, max_length=50))
    await held(stage, replica, make_spec(2, 2, judge=judge))
    assert "round/2/propose/ada" in stage.gateway.asked("synthesis/summarize").prompt
    assert "round/2/critique" not in stage.gateway.asked("synthesis/summarize").prompt
    assert "THE GIST" in stage.gateway.asked("synthesis").prompt
    assert "round/2/propose/ada" not in stage.gateway.asked("synthesis").prompt


async def test_the_judges_scores_are_told_by_agent_and_all_it_said_is_kept(
    stage: Backstage, replica: Replica
) -> None:
    solution = await held(stage, replica, make_spec(3, 1))
    assert dict(solution.scores) == {"ada": 1.0, "bo": 2.0, "cy": 3.0}
    assert (solution.confidence, solution.synthesized_by) == (80, "judge")
    assert (solution.implementation, solution.tradeoffs) == ("Do it.", ("time for money",))
    assert (solution.recommendations, solution.open_questions) == (("begin",), ("when?",))


@pytest.mark.parametrize(("hard", "confidence"), [(True, 40), (False, 80)])
async def test_confidence_is_capped_while_a_hard_requirement_is_unmet(
    stage: Backstage, replica: Replica, hard: bool, confidence: int
) -> None:
    unmet = [{"text": "must float", "hard": hard}]
    stage.gateway.judge = lambda schema: judgement(schema, unfulfilled_requirements=unmet)
    solution = await held(stage, replica, make_spec(2, 1))
    assert solution.confidence == confidence
    assert [(each.text, each.hard) for each in solution.unfulfilled_requirements] == [("must float", hard)]


async def test_a_judges_answer_that_cannot_be_read_is_asked_for_anew_on_resuming(
    stage: Backstage, replica: Replica
) -> None:
    answers = ['{"description": ""}']
    stage.gateway.judge = lambda schema: answers.pop() if answers else judgement(schema)
    debate = await replica.create(make_spec(2, 1))
    await stage.comes_to(debate, "FAILED")
    await replica.wish(debate, "resume")
    await stage.comes_to(debate, "COMPLETED")
    assert [each.call for each in stage.gateway.calls if each.step == "synthesis"] == [
        ("synthesis", 1),
        ("synthesis", 2),
    ]
