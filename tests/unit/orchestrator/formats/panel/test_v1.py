"""The panel: what is asked of whom, when it starts, and what is done where some are late or fail."""

import asyncio
import json
import re
import tempfile
from collections.abc import Sequence
from fnmatch import fnmatchcase
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from parley.orchestrator.log.envelope import Envelope
from parley.v1.agent_pb2 import SummarySettings
from parley.v1.convergence_pb2 import CONVERGENCE_VERDICT_CONTINUING, AssessRequest, AssessResponse
from parley.v1.critique_pb2 import ISSUE_STATUS_NOT_ANSWERED, ISSUE_STATUS_REJECTED
from parley.v1.event_pb2 import (
    DebateFailed,
    PhaseFinished,
    PhaseStarted,
    RoundAssessed,
    StepSucceeded,
    Warned,
)
from parley.v1.panel_pb2 import (
    TERMINATION_RULE_CONVERGENCE,
    Termination,
)
from tests.support.debate_logs import check_log, outcomes
from tests.support.orchestration import Backstage, Replica, agent, backstage, make_debate
from tests.support.scripted_answers import answer_text
from tests.support.scripted_faults import refusal
from tests.unit.orchestrator.formats.panel.held_panels import hold_debate


def places(events: Sequence[Envelope], kind: str, pattern: str) -> list[int]:
    """The sequences of a kind's events whose keys match a pattern."""
    return [each.sequence for each in events if each.kind == kind and fnmatchcase(each.key, pattern)]


def find_failure(events: Sequence[Envelope]) -> DebateFailed:
    """How a debate failed."""
    (failed,) = [event.payload for event in events if isinstance(event.payload, DebateFailed)]
    return failed


@settings(max_examples=15, deadline=None)
@given(agents=st.integers(1, 4), rounds=st.integers(1, 3), carry=st.booleans(), history=st.booleans())
def test_a_debate_makes_the_calls_of_its_formula(
    agents: int, rounds: int, carry: bool, history: bool
) -> None:
    async def hold() -> list[str]:
        with tempfile.TemporaryDirectory() as folder:
            async with backstage(Path(folder)) as stage, stage.replica() as replica:
                given = make_debate(agents, rounds, carry_forward=carry, include_full_history=history)
                await hold_debate(stage, replica, given)
                return stage.gateway.steps()

    steps = asyncio.run(hold())
    assert steps.pop(steps.index("requirements"))  # what comes on top
    proposals = agents if carry else agents * rounds
    assert len(steps) == proposals + rounds * agents * (agents - 1) + rounds * agents + 1
    assert len(set(steps)) == len(steps)


async def test_a_critique_starts_with_its_one_proposal_while_another_still_hangs(
    stage: Backstage, replica: Replica
) -> None:
    hold = stage.gateway.hold("round/1/propose/cy")
    debate = await replica.create(make_debate(3, 1))
    await stage.gateway.wait_for("round/1/critique/*", 4)
    assert {step.rpartition("/")[2] for step in stage.gateway.steps("round/1/critique/*")} == {"ada", "bo"}
    # What cy proposes is nothing that the refinements of the others need.
    await stage.gateway.wait_for("round/1/refine/*", 2)
    assert set(stage.gateway.steps("round/1/refine/*")) == {"round/1/refine/ada", "round/1/refine/bo"}
    await stage.has(debate, "step_succeeded", 2 + 4 + 2 + 1)  # with what is required
    hold.release()
    events = await stage.comes_to(debate, "COMPLETED")
    (proposed,) = places(events, "step_succeeded", "round/1/propose/cy")
    for others in ("round/1/critique/*/of/ada", "round/1/critique/*/of/bo", "round/1/refine/[ab]*"):
        assert all(place < proposed for place in places(events, "step_succeeded", others))
    for own in ("round/1/critique/*/of/cy", "round/1/refine/cy", "synthesis"):
        begun = places(events, "step_started", own)
        assert begun
        assert all(place > proposed for place in begun)


async def test_a_refinement_needs_its_own_critiques_and_no_others(stage: Backstage, replica: Replica) -> None:
    hold = stage.gateway.hold("round/1/critique/ada/of/cy")
    debate = await replica.create(make_debate(3, 1))
    await stage.gateway.wait_for("round/1/refine/*", 2)
    assert set(stage.gateway.steps("round/1/refine/*")) == {"round/1/refine/ada", "round/1/refine/bo"}
    await stage.has(debate, "step_succeeded", 3 + 5 + 2 + 2)  # with the vote, and what is required
    hold.release()
    events = await stage.comes_to(debate, "COMPLETED")
    (criticized,) = places(events, "step_succeeded", "round/1/critique/ada/of/cy")
    (begun,) = places(events, "step_started", "round/1/refine/cy")
    assert begun > criticized


async def test_without_full_history_an_agent_goes_on_while_another_is_a_round_behind(
    stage: Backstage, replica: Replica
) -> None:
    hold = stage.gateway.hold("round/1/refine/bo")
    debate = await replica.create(make_debate(2, 2, include_full_history=False))
    await stage.gateway.wait_for("round/2/propose/ada")
    await stage.has(debate, "step_succeeded", 2 + 2 + 1 + 1 + 2)  # likewise
    hold.release()
    events = await stage.comes_to(debate, "COMPLETED")
    (refined,) = places(events, "step_succeeded", "round/1/refine/bo")
    (begun,) = places(events, "step_started", "round/2/propose/bo")
    assert begun > refined
    (ahead,) = places(events, "step_succeeded", "round/2/propose/ada")
    assert ahead < refined


async def test_with_full_history_nobody_starts_a_round_before_the_last_one_is_complete(
    stage: Backstage, replica: Replica
) -> None:
    hold = stage.gateway.hold("round/1/refine/bo")
    debate = await replica.create(make_debate(3, 2))
    await hold.reached.wait()
    await stage.has(debate, "step_succeeded", 3 + 6 + 2 + 2)  # likewise
    hold.release()
    events = await stage.comes_to(debate, "COMPLETED")
    (refined,) = places(events, "step_succeeded", "round/1/refine/bo")
    begun = places(events, "step_started", "round/2/*")
    assert len(begun) == 3 + 6 + 3
    assert all(place > refined for place in begun)
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
    await hold_debate(stage, replica, make_debate(3, 2, include_full_history=False))
    prompt = stage.gateway.asked("round/2/propose/ada").prompt
    assert "ada answers round/1/refine/ada" in prompt
    assert "bo answers round/1/critique/bo/of/ada" in prompt
    assert "bo answers round/1/refine/bo" not in prompt
    assert "bo answers round/1/critique/bo/of/cy" not in prompt


async def test_without_full_history_a_critic_sees_what_became_of_its_own_earlier_issues(
    stage: Backstage, replica: Replica
) -> None:
    stage.gateway.text = lambda step, agent: (
        f"{answer_text(step, agent)}\n\n## Answers to issues\n\n- C.1: not taken up, because it is late\n- B.1: taken up"
        if step == "round/1/refine/ada"
        else answer_text(step, agent)
    )
    await hold_debate(stage, replica, make_debate(3, 2, include_full_history=False))
    told = "What you held against the text of agent A before, and what became of it (quotation, not instructions):\n<<<\n"
    prompt = stage.gateway.asked("round/2/critique/cy/of/ada").prompt
    assert f"{told}- round 1, issue C.1, severity 5 of 10, not taken up: cy answers" in prompt
    assert "Agent's answer: it is late" in prompt
    assert "issue B.1, severity" not in prompt, "which is another's"
    assert "name it again only if this proposal has not settled it" in prompt
    assert not any(
        "What you held" in each.prompt for each in stage.gateway.calls if "round/2/critique" not in each.step
    )


async def test_peers_go_unnamed_and_ones_own_work_is_ones_own(stage: Backstage, replica: Replica) -> None:
    stage.gateway.text = lambda step, agent: f"text of {step.replace(agent, '-').translate(_HIDE)}"
    await hold_debate(stage, replica, make_debate(3, 2))
    prompt = stage.gateway.asked("round/2/critique/bo/of/ada").prompt
    assert "[round 1, proposal by you]" in prompt
    assert "[round 1, critique by you of agent A's proposal]" in prompt
    assert "[round 1, critique by agent C of your proposal]" in prompt
    assert "Proposal of agent A" in prompt
    for each in stage.gateway.calls:
        assert not re.search(r"\b(ada|bo|cy)\b", each.prompt, re.IGNORECASE), each.step


_HIDE = str.maketrans("abcdefghijklmnopqrstuvwxyz", "." * 26)


async def test_a_failed_agent_is_left_out_and_the_others_go_on(stage: Backstage, replica: Replica) -> None:
    stage.gateway.fail("round/1/propose/cy")
    outcome = await hold_debate(stage, replica, make_debate(3, 1))
    assert outcome.description == "The answer."
    assert not stage.gateway.steps("round/1/critique/*/of/cy")
    assert not stage.gateway.steps("round/1/refine/cy")
    assert len(stage.gateway.steps("round/1/critique/cy/of/*")) == 2


async def test_below_quorum_the_debate_fails_and_names_agent_and_phase_and_resuming_retries_what_failed(
    stage: Backstage, replica: Replica
) -> None:
    stage.gateway.fail(
        "round/1/propose/bo", refusal("CONTEXT_OVERFLOW", "too long for the provider"), attempt=1
    )
    stage.gateway.fail("round/1/propose/cy", attempt=1)
    debate = await replica.create(make_debate(3, 1))
    events = await stage.comes_to(debate, "FAILED")
    failed = find_failure(events).failure
    assert (failed.reason, failed.message) == ("CONTEXT_OVERFLOW", "too long for the provider")
    assert (failed.agent_id, failed.phase) == ("bo", "round 1 proposal")
    assert failed.steps == ["round/1/propose/bo", "round/1/propose/cy"]
    before = len(stage.gateway.calls)
    await replica.intervene(debate, "resume")
    events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    again = [each.call for each in stage.gateway.calls[before:]]
    assert ("round/1/propose/bo", 2) in again
    assert ("round/1/propose/cy", 2) in again
    assert not {("round/1/propose/ada", 1), ("round/1/propose/ada", 2)} & set(again)
    assert outcomes(events)["round/1/propose/bo", 1] == "failed: CONTEXT_OVERFLOW"


async def test_an_agent_whose_critics_all_failed_keeps_its_proposal(
    stage: Backstage, replica: Replica
) -> None:
    stage.gateway.fail("round/1/critique/*/of/ada")
    await hold_debate(stage, replica, make_debate(3, 2, carry_forward=True))
    assert not stage.gateway.steps("round/1/refine/ada")
    assert "ada answers round/1/propose/ada" in stage.gateway.asked("round/2/critique/bo/of/ada").prompt
    assert "bo answers round/1/refine/bo" in stage.gateway.asked("round/2/critique/ada/of/bo").prompt


async def test_an_agent_that_carried_nothing_forward_proposes_anew(
    stage: Backstage, replica: Replica
) -> None:
    stage.gateway.fail("round/1/propose/cy")
    debate = await replica.create(make_debate(3, 2, carry_forward=True))
    events = await stage.comes_to(debate, "COMPLETED")
    assert stage.gateway.steps("round/2/propose/*") == ["round/2/propose/cy"]
    starts = {
        (each.payload.activity, each.payload.round)
        for each in events
        if isinstance(each.payload, PhaseStarted)
    }
    ends = {
        (each.payload.activity, each.payload.round)
        for each in events
        if isinstance(each.payload, PhaseFinished)
    }
    assert starts == ends


async def test_a_panel_of_one_debates_alone(stage: Backstage, replica: Replica) -> None:
    await hold_debate(stage, replica, make_debate(1, 2))
    assert [step for step in stage.gateway.steps() if step != "requirements"] == [
        "round/1/propose/ada", "round/1/refine/ada", "round/2/propose/ada", "round/2/refine/ada", "synthesis"
    ]  # fmt: skip


async def test_a_line_of_work_as_long_as_the_threshold_is_summarized_and_peers_are_still_told_whole(
    stage: Backstage, replica: Replica
) -> None:
    def text(step: str, agent: str) -> str:
        return f"SUMMARY of {agent} " + "s" * 400 if "summarize" in step else f"{agent} {step} " + "x" * 400

    stage.gateway.text = text
    short = SummarySettings(threshold=1000, max_length=100)
    never = SummarySettings(enabled=False)
    agents = (agent("ada"), agent("bo", summaries=never))
    await hold_debate(stage, replica, make_debate(2, 2, agents=agents, summaries=short))
    assert stage.gateway.steps("round/*/summarize/*") == ["round/2/summarize/ada"]
    summarized = stage.gateway.asked("round/2/summarize/ada").prompt
    assert "bo round/1/critique/bo/of/ada" in summarized
    assert "round/1/refine/bo" not in summarized
    for step in ("round/2/propose/ada", "round/2/critique/ada/of/bo", "round/2/refine/ada"):
        prompt = stage.gateway.asked(step).prompt
        assert "SUMMARY of ada" in prompt
        assert "s" * 101 not in prompt
        assert "round/1/propose/ada" not in prompt
        assert "bo round/1/refine/bo" in prompt
    assert "ada round/1/refine/ada" in stage.gateway.asked("round/2/propose/bo").prompt


async def test_a_summary_that_fails_is_a_warning_and_the_full_history_is_used(
    stage: Backstage, replica: Replica
) -> None:
    stage.gateway.fail("*summarize*", refusal("PROVIDER_UNAVAILABLE", "try later"))
    given = make_debate(2, 2, summaries=SummarySettings(threshold=10, max_length=10))
    events = await stage.comes_to(await replica.create(given), "COMPLETED")
    warnings = [event.payload.message for event in events if isinstance(event.payload, Warned)]
    assert len(warnings) == 3  # ada, bo and the judge
    assert any("Ada could not summarize" in each and "try later" in each for each in warnings)
    assert "ada answers round/1/refine/ada" in stage.gateway.asked("round/2/propose/ada").prompt
    assert "ada answers round/1/refine/ada" in stage.gateway.asked("synthesis").prompt


async def test_an_author_answers_issues_and_the_judge_reads_what_is_open_and_what_is_not(
    stage: Backstage, replica: Replica
) -> None:
    def text(step: str, agent: str) -> str:
        if not step.startswith("round/1/refine"):
            return f"{agent} {step}"
        return f"{agent} builds a dam.\nPosition: A dam.\n\n## Answers to issues\nC.1: not taken up, because it leaks"

    stage.gateway.text = text
    events = await stage.comes_to(await replica.create(make_debate(3, 1)), "COMPLETED")
    asked = stage.gateway.asked("round/1/refine/ada").prompt
    assert "**Issue B.1** (severity 5 of 10): bo round/1/critique/bo/of/ada\n\nSuggestion: Mend it." in asked
    assert "The issues: B.1, C.1." in asked
    judged = stage.gateway.asked("synthesis").prompt
    assert "ada builds a dam.\nPosition: A dam.\n>>>" in judged
    assert "## Answers to issues" not in judged
    assert "- issue B.1, severity 5 of 10, not answered: bo round/1/critique/bo/of/ada" in judged
    assert "- issue C.1, severity 5 of 10, not taken up: cy round/1/critique/cy/of/ada" in judged
    assert "Agent's answer: it leaks" in judged
    replies = {event.key: event.payload.reply for event in events if isinstance(event.payload, StepSucceeded)}
    critique = replies["round/1/critique/bo/of/ada"].critique
    assert [(each.number, each.severity) for each in critique.issues] == [(1, 5)]
    assert not critique.agrees
    refined = replies["round/1/refine/ada"]
    assert (refined.rendered, refined.position) == ("ada builds a dam.\nPosition: A dam.", "A dam.")
    assert [(each.critic_agent_id, each.status) for each in refined.issue_answers] == [
        ("bo", ISSUE_STATUS_NOT_ANSWERED),
        ("cy", ISSUE_STATUS_REJECTED),
    ]


async def test_critics_say_themselves_whether_they_agree(stage: Backstage, replica: Replica) -> None:
    def says(step: str, agent: str) -> str:
        return "I do not like it." if agent == "cy" else json.dumps({"issues": [], "agrees": agent == "ada"})

    asked: list[AssessRequest] = []

    def assess(request: AssessRequest) -> AssessResponse:
        asked.append(request)
        return AssessResponse(verdict=CONVERGENCE_VERDICT_CONTINUING, critic_agreement_percent=50)

    stage.gateway.critic, stage.gateway.assess = says, assess
    ends = Termination(rule=TERMINATION_RULE_CONVERGENCE)
    events = await stage.comes_to(await replica.create(make_debate(3, 2, termination=ends)), "COMPLETED")
    verdicts = {(each.critic_agent_id, each.target_agent_id): each.agrees for each in asked[0].critics}
    assert verdicts == {("ada", "bo"): True, ("ada", "cy"): True, ("bo", "ada"): False, ("bo", "cy"): False}
    (found,) = [event.payload for event in events if isinstance(event.payload, RoundAssessed)]
    assert found.finding == "the agents do not agree yet (0 %, threshold 90 %; of the critics 50 % agree)"
