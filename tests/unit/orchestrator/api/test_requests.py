"""What a request for a debate may say of its format, tools and documents."""

from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from parley.orchestrator.formats.panel import V1
from parley.orchestrator.peers.roster import Roster
from parley.orchestrator.research.fetcher import Fetcher
from parley.orchestrator.research.sources import WebSources
from parley.orchestrator.roles.catalogue import load_shipped_roles
from parley.v1 import agent_pb2, debate_pb2
from parley.v1.arena_pb2 import TOPOLOGY_KIND_STAR, ArenaSettings, Topology
from parley.v1.debate_pb2 import Clarifications
from parley.v1.panel_pb2 import TERMINATION_RULE_CONVERGENCE, PanelSettings, Termination
from tests.support.orchestration import make_limits, panel_settings
from tests.unit.orchestrator.api.requested import (
    POLL,
    ROSTER,
    get_sections,
    list_violations,
    resolve_agent,
    resolve_debate,
    resolve_spec,
)


def test_an_agent_keeps_its_tools_and_its_limit_in_their_order() -> None:
    tools = [agent_pb2.TOOL_FILE_READ, agent_pb2.TOOL_CONTEXT_SEARCH]
    (kept,) = resolve_spec(resolve_agent(tools=tools, tool_call_limit=100)).agents
    assert (list(kept.agent.tools), kept.agent.tool_call_limit) == (tools, 100)


def test_agents_that_are_named_bring_the_tools_that_the_gateway_knows_them_with() -> None:
    (kept,) = resolve_spec().agents
    assert (list(kept.agent.tools), kept.agent.tool_call_limit) == ([agent_pb2.TOOL_LIST_FILES], 3)


def test_agents_have_what_their_roles_are_told() -> None:
    debate = resolve_debate(resolve_agent())
    assert get_sections(debate, "security") == load_shipped_roles().get("security").prompts
    assert get_sections(debate, "judge") == load_shipped_roles().get("judge").prompts


def test_labels_are_kept_as_they_are_up_to_their_bounds() -> None:
    labels = {
        "a": "",
        "team/eu.west_1-x": "Größe = 5",
        "n" * 63: "ü" * 63,
        **{f"l{number}": "x" for number in range(13)},
    }
    assert resolve_spec(labels=labels).labels == labels


@pytest.mark.parametrize(
    "labels",
    [
        {f"l{number}": "x" for number in range(17)},
        {"": "x"},
        {"Team": "x"},
        {"1": "x"},
        {"a=b": "x"},
        {"a\n": "x"},
        {"n" * 64: "x"},
        {"a": "x" * 64},
        {"a": "x\ny"},
        {"a": "\0"},
    ],
    ids=["many", "no name", "upper", "digit", "equals", "line", "long name", "long", "two lines", "nul"],
)
def test_labels_of_another_form_are_refused_whole(labels: dict[str, str]) -> None:
    assert [each.field for each in list_violations(labels={"fine": "x", **labels})] == ["spec.labels"]


def test_facts_are_kept_as_they_are_up_to_their_bounds() -> None:
    facts = {"n" * 64: "ü" * 1000, "date": "2026-11-25", **{f"fact {number}": "=" for number in range(48)}}
    assert resolve_spec(environment=facts).environment == facts


def test_facts_are_refused_whole_and_each_bad_one_is_named() -> None:
    facts = {
        "fine": "x",
        " ": "x",
        "a\nb": "x",
        "n" * 65: "x",
        "blank": " ",
        "lines": "x\ny",
        "long": "x" * 1001,
    }
    name = "its name must be one line of 1 to 64 characters"
    assert {each.field: each.description for each in list_violations(environment=facts)} == {
        "spec.environment. ": name,
        "spec.environment.a?b": name,
        f"spec.environment.{'n' * 65}": name,
        "spec.environment.blank": "is blank",
        "spec.environment.lines": "must be one line",
        "spec.environment.long": "must be at most 1000 characters",
    }
    (many,) = list_violations(environment={str(number): "x" for number in range(51)})
    assert (many.field, many.description) == ("spec.environment", "has 51, at most 50 are allowed")


def test_a_path_is_one_line_that_everything_it_meets_can_show() -> None:
    paths = ("docs/a.md", "a\nb", "a\u2028b", "d" * 1025, "d" * 1024)
    found = list_violations(context=[debate_pb2.ContextDocument(path=each, text="x") for each in paths])
    assert [each.field for each in found] == [f"spec.context[{place}].path" for place in (1, 2, 3)]


@pytest.mark.parametrize("limit", [-1, 101])
def test_every_bad_field_of_tools_is_listed(limit: int) -> None:
    tools: list[Any] = [agent_pb2.TOOL_FILE_READ, 0, 9, agent_pb2.TOOL_FILE_READ]
    agent = resolve_agent(tools=tools, tool_call_limit=limit)
    judge = debate_pb2.Participant(agent=agent_pb2.Agent(id="ju", role="judge", tools=tools[1:3]))
    assert [(each.field, each.description) for each in list_violations(agent, judge=judge)] == [
        ("spec.agents[0].agent.tools[1]", "is not a known tool"),
        ("spec.agents[0].agent.tools[2]", "is not a known tool"),
        ("spec.agents[0].agent.tools[3]", "is there twice"),
        ("spec.agents[0].agent.tool_call_limit", f"is {limit}, must be 1 to 100, or 0 for the default"),
        ("spec.judge.agent.tools[0]", "is not a known tool"),
        ("spec.judge.agent.tools[1]", "is not a known tool"),
    ]


def test_settings_that_are_not_said_are_those_of_the_format() -> None:
    assert resolve_spec().panel == panel_settings()
    given = PanelSettings(rounds=0, carry_forward=True, termination=Termination(threshold_percent=70))
    settings = resolve_spec(panel=given).panel
    assert settings == panel_settings(carry_forward=True, termination=Termination(threshold_percent=70))


def test_a_flag_of_the_settings_that_is_switched_off_stays_off() -> None:
    settings = resolve_spec(panel=PanelSettings(include_full_history=False)).panel
    assert settings == panel_settings(include_full_history=False)


def test_a_debate_that_names_no_format_has_that_of_its_settings_or_else_the_first() -> None:
    assert resolve_spec(formats=[POLL, V1]).format == "poll@1"
    assert resolve_spec(formats=[POLL, V1], panel=PanelSettings()).format == "panel@1"
    assert resolve_spec(formats=[POLL, V1], format="panel").format == "panel@1"
    assert resolve_spec(formats=[V1, POLL]).format == "panel@1"


def test_settings_that_name_somebody_who_takes_no_part_are_refused() -> None:
    topology = Topology(kind=TOPOLOGY_KIND_STAR, hub_agent_id="zed")
    (violation,) = list_violations(resolve_agent(), arena=ArenaSettings(topology=topology))
    assert (violation.field, violation.description) == (
        "spec.arena.topology.hub_agent_id",
        "no agent 'zed' takes part",
    )


def test_calls_at_a_time_go_by_the_labels_of_the_format() -> None:
    assert resolve_spec().concurrency == {}
    given = {"critiques": 1, "proposals": 1024}
    assert resolve_spec(concurrency=given).concurrency == given


@pytest.mark.parametrize("count", [-1, 0, 1025])
def test_a_label_without_a_limit_is_left_out_and_every_other_bad_one_is_listed(count: int) -> None:
    found = list_violations(concurrency={"votes": 2, "proposals": count, "critiques": 2})
    assert [(each.field, each.description) for each in found] == [
        ("spec.concurrency.proposals", "must be 1 to 1024"),
        (
            "spec.concurrency.votes",
            "is no label of the format panel; known labels: critiques, proposals, refinements",
        ),
    ]


def test_a_format_without_labels_takes_none() -> None:
    (found,) = list_violations(formats=[POLL], concurrency={"proposals": 2})
    assert (found.field, found.description) == (
        "spec.concurrency.proposals",
        "is no label of the format poll; known labels: none",
    )


def test_past_debates_and_the_domain_that_are_not_said_are_those_of_any_debate() -> None:
    spec = resolve_spec()
    assert (spec.history_limit, spec.domain) == (5, "general")
    assert resolve_spec(history_limit=0).history_limit == 0


def test_issues_and_evidence_of_past_debates_are_shown_unless_it_is_said_otherwise() -> None:
    assert resolve_spec().patterns
    assert resolve_spec().knowledge
    assert not resolve_spec(patterns=False).patterns
    assert not resolve_spec(knowledge=False).knowledge


def test_agents_may_ask_before_a_debate_only_where_that_is_said_and_only_so_much() -> None:
    assert not resolve_spec().HasField("clarifications")
    allowed = resolve_spec(clarifications=debate_pb2.Clarifications()).clarifications
    assert allowed == Clarifications(max_per_agent=5, max_times=3)
    found = list_violations(clarifications=debate_pb2.Clarifications(max_per_agent=6, max_times=4))
    assert [each.field for each in found] == [
        "spec.clarifications.max_per_agent",
        "spec.clarifications.max_times",
    ]


def test_limits_that_are_not_said_are_those_of_the_format() -> None:
    spec = resolve_spec(formats=[POLL], limits=debate_pb2.DebateLimits(max_tokens=9))
    assert spec.limits == make_limits(round=7, max_tokens=9)
    assert spec.WhichOneof("format_settings") is None


def test_settings_of_another_format_and_a_format_that_is_not_known_are_refused() -> None:
    (settings,) = list_violations(formats=[POLL, V1], format="poll", panel=PanelSettings())
    assert (settings.field, settings.description) == (
        "spec.panel",
        "are settings of another format than poll",
    )
    (unknown,) = list_violations(formats=[POLL, V1], format="poll@2")
    assert (unknown.field, unknown.description) == (
        "spec.format",
        "unknown format 'poll@2'; known formats: panel, poll",
    )


def test_settings_are_checked_by_their_format_with_the_number_of_agents() -> None:
    settings = PanelSettings(rounds=101, termination=Termination(rule=TERMINATION_RULE_CONVERGENCE))
    one, two = resolve_agent(), agent_pb2.Agent(id="cy", role="testing")
    assert [each.field for each in list_violations(one, panel=settings)] == [
        "spec.panel.rounds",
        "spec.panel.termination.rule",
    ]
    assert [each.field for each in list_violations(one, two, panel=settings)] == ["spec.panel.rounds"]
    assert [each.field for each in list_violations(panel=settings)] == [  # the default team is one agent
        "spec.panel.rounds",
        "spec.panel.termination.rule",
    ]


def make_demonstration(*routes: str) -> Roster:
    return replace(
        ROSTER,
        routes=frozenset({"local/small", "openai/m"}),
        default_routes=routes,
        demonstrations=frozenset({"local/small"}),
    )


def test_a_debate_whose_agents_a_demonstration_answers_is_one() -> None:
    assert resolve_debate(resolve_agent(), roster=make_demonstration("local/small")).demonstration
    assert resolve_debate(
        resolve_agent(routes=["local/small"]), roster=make_demonstration("openai/m")
    ).demonstration
    assert not resolve_debate(resolve_agent(), roster=make_demonstration("openai/m")).demonstration


def make_web(**fields: Any) -> WebSources:
    return WebSources(Fetcher(), Fetcher(), lambda: datetime.now(UTC), **fields)


def test_the_web_is_read_if_the_operator_has_switched_it_on_and_the_caller_not_off() -> None:
    web = make_web(search_url="http://searxng:8080")
    assert resolve_spec(web=web).research
    assert resolve_spec(web=web, research=True).research
    assert not resolve_spec(web=web, research=False).research
    assert not resolve_spec(web=make_web(reads_pages=True)).research  # there is nothing to read
    assert resolve_spec(web=make_web(reads_pages=True), research_pages=["https://a.example/"]).research
    assert not resolve_spec().HasField("research")


@pytest.mark.parametrize(
    ("web", "fields", "field"),
    [
        (None, {"research": True}, "spec.research"),
        (None, {"research_pages": ["https://a.example/"]}, "spec.research_pages"),
        (make_web(search_url="http://s/"), {"research_pages": ["https://a.example/"]}, "spec.research_pages"),
        (
            make_web(reads_pages=True),
            {"research": False, "research_pages": ["https://a.example/"]},
            "spec.research_pages",
        ),
        (make_web(reads_pages=True), {"research_pages": ["file:///etc/passwd"]}, "spec.research_pages[0]"),
        (
            make_web(reads_pages=True),
            {"research_pages": ["http://me:pw@a.example/"]},
            "spec.research_pages[0]",
        ),
    ],
)
def test_research_that_the_operator_does_not_allow_or_no_address_can_be_is_refused(
    web: WebSources | None, fields: dict[str, Any], field: str
) -> None:
    assert [each.field for each in list_violations(web=web, **fields)] == [field]
