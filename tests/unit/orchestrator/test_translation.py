from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.orchestrator import rows
from parley.orchestrator.agent_translation import (
    agent_from_proto,
    agent_to_proto,
    summaries_from_proto,
    tool_call_from_proto,
    tool_call_to_proto,
)
from parley.orchestrator.events import (
    Claimed,
    Concluded,
    DebateFailed,
    Recalled,
    RoundStarted,
    Solution,
    StepStarted,
    StepSucceeded,
    ToolCall,
    UnfulfilledRequirement,
    Usage,
    Warned,
    Work,
)
from parley.orchestrator.rows import Row
from parley.orchestrator.spec import (
    AgentSpec,
    ContextDocument,
    DebateSpec,
    Prompt,
    SummarySettings,
    Termination,
)
from parley.orchestrator.state import FIRST_DRAFT_VOTE, fold
from parley.orchestrator.translation import (
    debate_to_proto,
    event_to_proto,
    spec_to_proto,
    status_from_proto,
    status_to_proto,
    summary,
    synthesis_method_from_proto,
    termination_from_proto,
    usage_from_proto,
    usage_to_proto,
)
from parley.v1 import agent_pb2, orchestrator_pb2
from tests.unit.orchestrator.made_logs import ADA, BO, CREATED, DEBATE, JUDGE, START, failed, log, succeeded

PROMPTS = st.builds(Prompt, st.text(max_size=9), st.text(max_size=9))
SUMMARIES = st.builds(SummarySettings, st.booleans(), st.integers(1, 9999), st.integers(1, 9999))
SPECS = st.builds(
    AgentSpec,
    id=st.text(min_size=1, max_size=9),
    name=st.text(min_size=1, max_size=9),
    role=st.text(max_size=9),
    routes=st.lists(st.text(max_size=9), max_size=3).map(tuple),
    temperature=st.none() | st.floats(0, 2),
    system_prompt=st.none() | PROMPTS,
    summary_prompt=st.none() | PROMPTS,
    summaries=st.none() | SUMMARIES,
    tools=st.lists(st.sampled_from(["context_search", "file_read", "list_files"]), unique=True).map(tuple),
    tool_call_limit=st.integers(0, 100),
)
COUNTS = st.integers(0, 2**31 - 1)


@given(SPECS)
def test_an_agent_comes_back_as_it_went(agent: AgentSpec) -> None:
    assert agent_from_proto(agent_to_proto(agent)) == agent


@given(st.builds(Usage, COUNTS, COUNTS, st.none() | COUNTS, COUNTS))
def test_usage_comes_back_as_it_went_with_an_unknown_cost_apart_from_none(usage: Usage) -> None:
    assert usage_from_proto(usage_to_proto(usage)) == usage


@given(st.builds(ToolCall, st.text(max_size=9), st.text(max_size=9), st.booleans(), COUNTS))
def test_a_use_of_a_tool_comes_back_as_it_went(call: ToolCall) -> None:
    assert tool_call_from_proto(tool_call_to_proto(call)) == call


def test_of_what_a_model_asked_a_tool_500_characters_are_kept() -> None:
    assert (
        len(tool_call_from_proto(agent_pb2.ToolCall(name="file_read", arguments="a" * 501)).arguments) == 500
    )


def test_a_number_that_names_no_tool_is_passed_over() -> None:
    numbers: list[Any] = [agent_pb2.TOOL_FILE_READ, 0, 77]
    agent = agent_pb2.Agent(id="ada", tools=numbers)
    assert agent_from_proto(agent).tools == ("file_read",)


def test_an_agent_without_a_name_is_called_by_its_id() -> None:
    assert agent_from_proto(agent_pb2.Agent(id="ada", role="architect")) == AgentSpec(
        "ada", "ada", "architect"
    )


def test_a_temperature_of_zero_is_not_an_unset_one() -> None:
    assert agent_from_proto(agent_pb2.Agent(id="ada", temperature=0)).temperature == 0


def test_unset_settings_are_the_defaults_of_the_contract() -> None:
    assert summaries_from_proto(agent_pb2.SummarySettings()) == SummarySettings(
        enabled=True, threshold=5000, max_length=2500
    )
    assert termination_from_proto(orchestrator_pb2.Termination()) == Termination("fixed", 90)
    assert synthesis_method_from_proto(orchestrator_pb2.SYNTHESIS_METHOD_UNSPECIFIED) == "judge"


def test_summaries_that_are_switched_off_stay_off() -> None:
    assert not summaries_from_proto(agent_pb2.SummarySettings(enabled=False)).enabled


@pytest.mark.parametrize("rule", ["fixed", "convergence", "quality"])
def test_every_rule_that_ends_the_rounds_has_its_number(rule: str) -> None:
    spec = DebateSpec("Why?", "panel@1", (ADA,), JUDGE, termination=Termination(rule, 70))

    assert termination_from_proto(spec_to_proto(spec).termination) == Termination(rule, 70)


@pytest.mark.parametrize(
    "status",
    [
        rows.PENDING,
        rows.RUNNING,
        rows.WAITING,
        rows.PAUSED,
        rows.COMPLETED,
        rows.FAILED,
        rows.CANCELLED,
    ],
)
def test_every_state_has_its_number(status: str) -> None:
    assert status_from_proto(status_to_proto(status)) == status


@pytest.mark.parametrize("number", [0, 99])
def test_a_number_that_is_no_state_is_refused(number: int) -> None:
    with pytest.raises(ValueError):
        status_from_proto(number)  # type: ignore[arg-type]


def test_a_specification_says_everything_a_client_could_have_left_out() -> None:
    spec = DebateSpec(
        "Why?", "panel@1", (ADA, BO), JUDGE, context=(ContextDocument("a.md", "Text."),), call_seconds=1.5
    )

    said = spec_to_proto(spec)

    assert [each.agent.id for each in said.agents] == ["ada", "bo"]
    assert said.judge.agent.id == "judge"
    assert said.HasField("include_full_history")
    assert said.include_full_history
    assert said.HasField("carry_forward")
    assert not said.carry_forward
    assert said.limits.call.ToTimedelta() == timedelta(seconds=1.5)
    times = (said.limits.round, said.limits.checkpoint, said.limits.waiting)
    assert [each.ToSeconds() for each in times] == [300, 1800, 600]
    assert not said.limits.HasField("total")
    assert (said.rounds, said.history_limit, said.domain) == (3, 5, "general")
    assert (said.summaries.threshold, said.termination.threshold_percent) == (5000, 90)
    assert said.synthesis_method == orchestrator_pb2.SYNTHESIS_METHOD_JUDGE
    assert [(each.path, each.text) for each in said.context] == [("a.md", "Text.")]


def test_an_event_carries_its_payload_as_stored() -> None:
    event = log(CREATED, Claimed("a"))[1]

    said = event_to_proto(event)

    assert (said.sequence, said.kind, said.epoch, said.schema_version) == (2, "claimed", 1, 1)
    assert said.payload_json == '{"owner":"a"}'
    assert said.hash == event.hash
    assert said.time.ToDatetime(event.time.tzinfo) == event.time


def test_a_debate_is_told_whole() -> None:
    proposal, critique = Work("proposal", "ada", 1), Work("critique", "bo", 1, "ada")
    vote = {"groups": [{"agents": ["ada", "bo"], "position": "A."}], "majority": True}
    solution = Solution(
        "This one.",
        unfulfilled_requirements=(UnfulfilledRequirement("Free.", hard=True),),
        confidence=40,
        synthesized_by="judge",
        scores={"bo": 4.5, "ada": 8},
    )
    state = fold(
        log(
            CREATED,
            Claimed("a"),
            Recalled(("deb-1",)),
            RoundStarted(1, 1),
            StepStarted(proposal, "digest"),
            succeeded(proposal, "Use A."),
            failed(critique),
            StepSucceeded(Work(FIRST_DRAFT_VOTE), "digest", value=vote),  # type: ignore[arg-type]
            Warned("late"),
            Concluded("completed", solution),
        )
    )

    said = debate_to_proto(state)

    assert (said.id, said.status) == (DEBATE, orchestrator_pb2.DEBATE_STATUS_COMPLETED)
    assert (said.phase, said.current_round, said.calls, said.last_sequence) == ("round 1 proposal", 1, 2, 10)
    made = said.contributions[0]
    assert (made.agent_id, made.kind) == ("ada", orchestrator_pb2.CONTRIBUTION_KIND_PROPOSAL)
    assert (made.text, made.model, made.latency.ToMilliseconds()) == ("Use A.", "small", 1500)
    lost = said.failures[0]
    assert (lost.agent_id, lost.reason) == ("bo", "CALL_TIMEOUT")
    assert [score.agent_id for score in said.solution.scores] == ["ada", "bo"]
    assert said.solution.unfulfilled_requirements[0].hard
    assert list(said.first_draft_vote.groups[0].agent_ids) == ["ada", "bo"]
    assert (list(said.warnings), list(said.recalled_debate_ids)) == (["late"], ["deb-1"])
    assert said.usage == usage_to_proto(state.usage)
    assert not said.HasField("failure")


def test_a_failed_debate_has_a_failure_and_no_answer() -> None:
    failure = DebateFailed("PROVIDER_AUTH", "no key", "ada", "round 1 proposal", ("1/proposal/ada",))

    said = debate_to_proto(fold(log(CREATED, Claimed("a"), failure)))

    assert (said.failure.agent_id, list(said.failure.steps)) == ("ada", ["1/proposal/ada"])
    assert not said.HasField("solution")
    assert not said.HasField("first_draft_vote")


def test_a_row_is_listed_with_its_times() -> None:
    time = START.isoformat(timespec="microseconds")
    row = Row(
        tenant="default",
        debate=DEBATE,
        request_id="request-1",
        request_digest="digest",
        format="panel@1",
        status="RUNNING",
        open=True,
        owner=None,
        epoch=1,
        beat=1,
        created=f"{time}/{DEBATE}",
        updated=time,
        question="Which store?",
        opening="",
    )

    said = summary(row)

    assert (said.id, said.status) == (DEBATE, orchestrator_pb2.DEBATE_STATUS_RUNNING)
    assert said.created_at.ToDatetime(START.tzinfo) == said.updated_at.ToDatetime(START.tzinfo) == START
