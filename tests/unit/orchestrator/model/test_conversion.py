"""Between the specification of a debate and the contract's messages."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from parley.orchestrator.log.events import first_event, spec_of
from parley.orchestrator.model.conversion import (
    agent_from_proto,
    agent_to_proto,
    format_settings,
    limits_from_proto,
    spec_from_proto,
    spec_to_proto,
    summaries_from_proto,
    summaries_to_proto,
)
from parley.orchestrator.model.spec import (
    AgentSpec,
    Clarifications,
    ContextDocument,
    DebateSpec,
    Limits,
    Prompt,
    SummarySettings,
)
from parley.v1 import agent_pb2, debate_pb2
from parley.v1.panel_pb2 import TerminationRule
from tests.support.orchestration import panel_settings
from tests.unit.orchestrator.made_logs import ADA, BO, JUDGE, SPEC

TEXTS = st.text(max_size=9)
PROMPTS = st.builds(Prompt, TEXTS, TEXTS)
SUMMARIES = st.builds(SummarySettings, st.booleans(), st.integers(1, 9999), st.integers(1, 9999))
AGENTS = st.builds(
    AgentSpec,
    id=st.text(min_size=1, max_size=9),
    name=st.text(min_size=1, max_size=9),
    role=TEXTS,
    routes=st.lists(TEXTS, max_size=3).map(tuple),
    temperature=st.none() | st.floats(0, 2),
    system_prompt=st.none() | PROMPTS,
    summary_prompt=st.none() | PROMPTS,
    clarification_prompt=st.none() | PROMPTS,
    summaries=st.none() | SUMMARIES,
    instructions=st.just({}),
    tools=st.lists(st.sampled_from(["context_search", "file_read", "list_files"]), unique=True).map(tuple),
    tool_call_limit=st.integers(0, 100),
)
MILLISECONDS = st.integers(1, 10**7).map(lambda count: count / 1000)
LIMITS = st.builds(
    Limits,
    call_seconds=MILLISECONDS,
    round_seconds=MILLISECONDS,
    total_seconds=st.just(0.0) | MILLISECONDS,
    checkpoint_seconds=MILLISECONDS,
    waiting_seconds=st.just(0.0) | MILLISECONDS,
    max_tokens=st.integers(0, 10**12),
    max_cost_micros=st.integers(0, 10**12),
)
COUNTS = st.integers(0, 1024)
SPECS = st.builds(
    DebateSpec,
    question=TEXTS,
    format=TEXTS,
    agents=st.lists(AGENTS, max_size=3).map(tuple),
    judge=AGENTS,
    context=st.lists(st.builds(ContextDocument, TEXTS, TEXTS), max_size=2).map(tuple),
    limits=LIMITS,
    concurrency=st.dictionaries(TEXTS, st.integers(1, 1024), max_size=3),
    max_output_tokens=COUNTS,
    history_limit=st.integers(0, 20),
    domain=TEXTS,
    clarifications=st.none() | st.builds(Clarifications, st.integers(1, 5), st.integers(1, 3)),
    settings=st.none()
    | st.builds(
        panel_settings,
        rounds=st.integers(1, 100),
        include_full_history=st.booleans(),
        carry_forward=st.booleans(),
    ),
)


@given(AGENTS)
def test_an_agent_comes_back_as_it_went(agent: AgentSpec) -> None:
    assert agent_from_proto(agent_to_proto(agent)) == agent


@given(SUMMARIES)
def test_settings_of_summaries_come_back_as_they_went(settings: SummarySettings) -> None:
    assert summaries_from_proto(summaries_to_proto(settings)) == settings


@given(SPECS)
def test_a_specification_comes_back_as_it_went(spec: DebateSpec) -> None:
    assert spec_from_proto(spec_to_proto(spec), {}) == spec


def test_what_a_role_is_told_is_frozen_with_the_debate() -> None:
    architect, security, judge = ({"system": f"You are {name}."} for name in ("bold", "wary", "fair"))
    agents = (replace(ADA, instructions=architect), replace(BO, instructions=security))
    spec = replace(SPEC, agents=agents, judge=replace(JUDGE, instructions=judge))
    assert spec_of(first_event("r", spec, "")) == spec


def test_a_number_that_names_no_tool_is_passed_over() -> None:
    numbers: list[Any] = [agent_pb2.TOOL_FILE_READ, 0, 77]
    agent = agent_pb2.Agent(id="ada", tools=numbers)
    assert agent_from_proto(agent).tools == ("file_read",)


def test_an_agent_without_a_name_is_called_by_its_id() -> None:
    agent = agent_from_proto(agent_pb2.Agent(id="ada", role="architect"))
    assert agent == AgentSpec("ada", "ada", "architect")


def test_a_temperature_of_zero_is_not_an_unset_one() -> None:
    assert agent_from_proto(agent_pb2.Agent(id="ada", temperature=0)).temperature == 0


def test_unset_settings_are_the_defaults_of_the_contract() -> None:
    assert summaries_from_proto(agent_pb2.SummarySettings()) == SummarySettings(
        enabled=True, threshold=0, max_length=0
    )
    assert limits_from_proto(debate_pb2.DebateLimits(), Limits()) == Limits(
        call_seconds=90, round_seconds=300, total_seconds=0, checkpoint_seconds=1800, waiting_seconds=600
    )
    assert format_settings(debate_pb2.DebateSpec()) is None


def test_summaries_that_are_switched_off_stay_off() -> None:
    assert not summaries_from_proto(agent_pb2.SummarySettings(enabled=False)).enabled


def test_limits_that_are_not_said_are_those_of_the_format_and_a_wait_of_nothing_is_said() -> None:
    said = debate_pb2.DebateLimits(max_tokens=7)
    said.waiting.FromTimedelta(timedelta(0))
    said.call.FromTimedelta(timedelta(seconds=1.5))
    limits = limits_from_proto(said, Limits(round_seconds=12, max_tokens=5, max_cost_micros=9))
    assert limits == Limits(
        call_seconds=1.5, round_seconds=12, waiting_seconds=0, max_tokens=7, max_cost_micros=9
    )


def test_a_specification_says_everything_a_client_could_have_left_out() -> None:
    spec = DebateSpec(
        "Why?",
        "panel@1",
        (ADA, BO),
        JUDGE,
        context=(ContextDocument("a.md", "Text."),),
        limits=Limits(call_seconds=1.5),
        settings=panel_settings(),
    )

    said = spec_to_proto(spec)

    assert [each.agent.id for each in said.agents] == ["ada", "bo"]
    assert said.judge.agent.id == "judge"
    assert said.panel.HasField("include_full_history")
    assert said.panel.include_full_history
    assert said.panel.HasField("carry_forward")
    assert not said.panel.carry_forward
    assert said.limits.call.ToTimedelta() == timedelta(seconds=1.5)
    times = (said.limits.round, said.limits.checkpoint, said.limits.waiting)
    assert [each.ToSeconds() for each in times] == [300, 1800, 600]
    assert not said.limits.HasField("total")
    assert (said.panel.rounds, said.history_limit, said.domain) == (3, 5, "general")
    assert not said.panel.summaries.threshold, "automatic"
    termination = said.panel.termination
    assert (TerminationRule.Name(termination.rule), termination.threshold_percent) == (
        "TERMINATION_RULE_FIXED",
        90,
    )
    assert [(each.path, each.text) for each in said.context] == [("a.md", "Text.")]
