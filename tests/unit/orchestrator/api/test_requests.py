"""What a request for a debate may say of its format, tools and documents."""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import pytest
from msgspec.structs import replace

from parley.orchestrator.api.participants import ValidationContext
from parley.orchestrator.api.requests import resolve_request
from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.engine.format import Format, Formats
from parley.orchestrator.formats.panel import V1
from parley.orchestrator.formats.shipped import all_formats
from parley.orchestrator.peers.roster import Roster
from parley.orchestrator.research.fetcher import Fetcher
from parley.orchestrator.research.sources import WebSources
from parley.orchestrator.roles.catalogue import load_shipped_roles
from parley.runtime.errors import FieldViolation, ParleyError
from parley.v1 import agent_pb2, debate_pb2, orchestrator_pb2
from parley.v1.agent_pb2 import OwnRole
from parley.v1.arena_pb2 import TOPOLOGY_KIND_STAR, ArenaSettings, Topology
from parley.v1.debate_pb2 import Clarifications, Outcome
from parley.v1.event_pb2 import DebateCreated
from parley.v1.panel_pb2 import TERMINATION_RULE_CONVERGENCE, PanelSettings, Termination
from tests.support.orchestration import make_limits, panel_settings

AGENTS = (
    agent_pb2.Agent(id="ada", role="architect", tools=[agent_pb2.TOOL_LIST_FILES], tool_call_limit=3),
    agent_pb2.Agent(id="judge", role="judge"),
)
ROSTER = Roster({each.id: each for each in AGENTS}, ("ada",), "judge", frozenset(), frozenset())


async def _run(_debate: Debate) -> Outcome:
    raise AssertionError("nothing is run here")


POLL = Format("poll", 1, _run, limits=make_limits(round=7, max_tokens=5))


def created(
    *agents: agent_pb2.Agent,
    formats: Sequence[Format] = all_formats().all(),
    roster: Roster = ROSTER,
    web: WebSources | None = None,
    **fields: Any,
) -> DebateCreated:
    team = [debate_pb2.Participant(agent=each) for each in agents]
    spec = debate_pb2.DebateSpec(question="Which?", agents=team, **fields)
    request = orchestrator_pb2.CreateDebateRequest(request_id="r", spec=spec)
    return resolve_request(request, ValidationContext(Formats(formats), load_shipped_roles(), roster, web))


def asked(*agents: agent_pb2.Agent, **fields: Any) -> debate_pb2.DebateSpec:
    return created(*agents, **fields).spec


def told(debate: DebateCreated, role: str) -> Mapping[str, str]:
    """What a role is told in a debate."""
    (found,) = (each.sections for each in debate.roles if each.role == role)
    return found


def refused(*agents: agent_pb2.Agent, **fields: Any) -> Sequence[FieldViolation]:
    with pytest.raises(ParleyError) as caught:
        asked(*agents, **fields)
    return caught.value.violations


def described(**fields: Any) -> agent_pb2.Agent:
    return agent_pb2.Agent(id="bo", role="security", **fields)


def test_an_agent_keeps_its_tools_and_its_limit_in_their_order() -> None:
    tools = [agent_pb2.TOOL_FILE_READ, agent_pb2.TOOL_CONTEXT_SEARCH]
    (kept,) = asked(described(tools=tools, tool_call_limit=100)).agents
    assert (list(kept.agent.tools), kept.agent.tool_call_limit) == (tools, 100)


def test_agents_that_are_named_bring_the_tools_that_the_gateway_knows_them_with() -> None:
    (kept,) = asked().agents
    assert (list(kept.agent.tools), kept.agent.tool_call_limit) == ([agent_pb2.TOOL_LIST_FILES], 3)


def test_agents_have_what_their_roles_are_told() -> None:
    debate = created(described())
    assert told(debate, "security") == load_shipped_roles().get("security").prompts
    assert told(debate, "judge") == load_shipped_roles().get("judge").prompts


def test_labels_are_kept_as_they_are_up_to_their_bounds() -> None:
    labels = {
        "a": "",
        "team/eu.west_1-x": "Größe = 5",
        "n" * 63: "ü" * 63,
        **{f"l{number}": "x" for number in range(13)},
    }
    assert asked(labels=labels).labels == labels


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
    assert [each.field for each in refused(labels={"fine": "x", **labels})] == ["spec.labels"]


def test_facts_are_kept_as_they_are_up_to_their_bounds() -> None:
    facts = {"n" * 64: "ü" * 1000, "date": "2026-11-25", **{f"fact {number}": "=" for number in range(48)}}
    assert asked(environment=facts).environment == facts


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
    assert {each.field: each.description for each in refused(environment=facts)} == {
        "spec.environment. ": name,
        "spec.environment.a?b": name,
        f"spec.environment.{'n' * 65}": name,
        "spec.environment.blank": "is blank",
        "spec.environment.lines": "must be one line",
        "spec.environment.long": "must be at most 1000 characters",
    }
    (many,) = refused(environment={str(number): "x" for number in range(51)})
    assert (many.field, many.description) == ("spec.environment", "has 51, at most 50 are allowed")


def test_a_path_is_one_line_that_everything_it_meets_can_show() -> None:
    paths = ("docs/a.md", "a\nb", "a\u2028b", "d" * 1025, "d" * 1024)
    found = refused(context=[debate_pb2.ContextDocument(path=each, text="x") for each in paths])
    assert [each.field for each in found] == [f"spec.context[{place}].path" for place in (1, 2, 3)]


@pytest.mark.parametrize("limit", [-1, 101])
def test_every_bad_field_of_tools_is_listed(limit: int) -> None:
    tools: list[Any] = [agent_pb2.TOOL_FILE_READ, 0, 9, agent_pb2.TOOL_FILE_READ]
    agent = described(tools=tools, tool_call_limit=limit)
    judge = debate_pb2.Participant(agent=agent_pb2.Agent(id="ju", role="judge", tools=tools[1:3]))
    assert [(each.field, each.description) for each in refused(agent, judge=judge)] == [
        ("spec.agents[0].agent.tools[1]", "is not a known tool"),
        ("spec.agents[0].agent.tools[2]", "is not a known tool"),
        ("spec.agents[0].agent.tools[3]", "is there twice"),
        ("spec.agents[0].agent.tool_call_limit", f"is {limit}, must be 1 to 100, or 0 for the default"),
        ("spec.judge.agent.tools[0]", "is not a known tool"),
        ("spec.judge.agent.tools[1]", "is not a known tool"),
    ]


def test_settings_that_are_not_said_are_those_of_the_format() -> None:
    assert asked().panel == panel_settings()
    given = PanelSettings(rounds=0, carry_forward=True, termination=Termination(threshold_percent=70))
    settings = asked(panel=given).panel
    assert settings == panel_settings(carry_forward=True, termination=Termination(threshold_percent=70))


def test_a_flag_of_the_settings_that_is_switched_off_stays_off() -> None:
    settings = asked(panel=PanelSettings(include_full_history=False)).panel
    assert settings == panel_settings(include_full_history=False)


def test_a_debate_that_names_no_format_has_that_of_its_settings_or_else_the_first() -> None:
    assert asked(formats=[POLL, V1]).format == "poll@1"
    assert asked(formats=[POLL, V1], panel=PanelSettings()).format == "panel@1"
    assert asked(formats=[POLL, V1], format="panel").format == "panel@1"
    assert asked(formats=[V1, POLL]).format == "panel@1"


def test_settings_that_name_somebody_who_takes_no_part_are_refused() -> None:
    topology = Topology(kind=TOPOLOGY_KIND_STAR, hub_agent_id="zed")
    (violation,) = refused(described(), arena=ArenaSettings(topology=topology))
    assert (violation.field, violation.description) == (
        "spec.arena.topology.hub_agent_id",
        "no agent 'zed' takes part",
    )


def test_calls_at_a_time_go_by_the_labels_of_the_format() -> None:
    assert asked().concurrency == {}
    given = {"critiques": 1, "proposals": 1024}
    assert asked(concurrency=given).concurrency == given


@pytest.mark.parametrize("count", [-1, 0, 1025])
def test_a_label_without_a_limit_is_left_out_and_every_other_bad_one_is_listed(count: int) -> None:
    found = refused(concurrency={"votes": 2, "proposals": count, "critiques": 2})
    assert [(each.field, each.description) for each in found] == [
        ("spec.concurrency.proposals", "must be 1 to 1024"),
        (
            "spec.concurrency.votes",
            "is no label of the format panel; known labels: critiques, proposals, refinements",
        ),
    ]


def test_a_format_without_labels_takes_none() -> None:
    (found,) = refused(formats=[POLL], concurrency={"proposals": 2})
    assert (found.field, found.description) == (
        "spec.concurrency.proposals",
        "is no label of the format poll; known labels: none",
    )


def test_past_debates_and_the_domain_that_are_not_said_are_those_of_any_debate() -> None:
    spec = asked()
    assert (spec.history_limit, spec.domain) == (5, "general")
    assert asked(history_limit=0).history_limit == 0


def test_issues_and_evidence_of_past_debates_are_shown_unless_it_is_said_otherwise() -> None:
    assert asked().patterns
    assert asked().knowledge
    assert not asked(patterns=False).patterns
    assert not asked(knowledge=False).knowledge


def test_agents_may_ask_before_a_debate_only_where_that_is_said_and_only_so_much() -> None:
    assert not asked().HasField("clarifications")
    allowed = asked(clarifications=debate_pb2.Clarifications()).clarifications
    assert allowed == Clarifications(max_per_agent=5, max_times=3)
    found = refused(clarifications=debate_pb2.Clarifications(max_per_agent=6, max_times=4))
    assert [each.field for each in found] == [
        "spec.clarifications.max_per_agent",
        "spec.clarifications.max_times",
    ]


def test_limits_that_are_not_said_are_those_of_the_format() -> None:
    spec = asked(formats=[POLL], limits=debate_pb2.DebateLimits(max_tokens=9))
    assert spec.limits == make_limits(round=7, max_tokens=9)
    assert spec.WhichOneof("format_settings") is None


def test_settings_of_another_format_and_a_format_that_is_not_known_are_refused() -> None:
    (settings,) = refused(formats=[POLL, V1], format="poll", panel=PanelSettings())
    assert (settings.field, settings.description) == (
        "spec.panel",
        "are settings of another format than poll",
    )
    (unknown,) = refused(formats=[POLL, V1], format="poll@2")
    assert (unknown.field, unknown.description) == (
        "spec.format",
        "unknown format 'poll@2'; known formats: panel, poll",
    )


def test_settings_are_checked_by_their_format_with_the_number_of_agents() -> None:
    settings = PanelSettings(rounds=101, termination=Termination(rule=TERMINATION_RULE_CONVERGENCE))
    one, two = described(), agent_pb2.Agent(id="cy", role="testing")
    assert [each.field for each in refused(one, panel=settings)] == [
        "spec.panel.rounds",
        "spec.panel.termination.rule",
    ]
    assert [each.field for each in refused(one, two, panel=settings)] == ["spec.panel.rounds"]
    assert [each.field for each in refused(panel=settings)] == [  # the default team is one agent
        "spec.panel.rounds",
        "spec.panel.termination.rule",
    ]


def gateway_of(role: str, judge: str = "judge") -> Roster:
    """A gateway whose only agent, and whose judge, have these roles."""
    agents = (agent_pb2.Agent(id="ada", role=role), agent_pb2.Agent(id="ju", role=judge))
    known = {each.id: each for each in agents}
    return Roster(known, ("ada",), "ju", frozenset(), frozenset())


def test_the_default_team_is_checked_against_the_format() -> None:
    (found,) = refused(roster=gateway_of("judge"))
    assert (found.field, found.description) == (
        "spec.agents",
        "agent ada: role 'judge' judges and cannot debate",
    )


def test_an_agent_that_is_named_is_checked_against_the_format() -> None:
    named = [debate_pb2.Participant(agent_id="ada")]
    request = orchestrator_pb2.CreateDebateRequest(
        request_id="r", spec=debate_pb2.DebateSpec(question="Which?", agents=named)
    )
    with pytest.raises(ParleyError) as caught:
        resolve_request(request, ValidationContext(all_formats(), load_shipped_roles(), gateway_of("judge")))
    assert [each.field for each in caught.value.violations] == ["spec.agents[0]"]


def test_a_role_that_only_the_gateway_knows_is_refused_wherever_it_stands() -> None:
    roster = gateway_of("poet", judge="bard")
    ada, ju = (debate_pb2.Participant(agent_id=each) for each in ("ada", "ju"))
    request = orchestrator_pb2.CreateDebateRequest(
        request_id="r", spec=debate_pb2.DebateSpec(question="Which?", agents=[ada], judge=ju)
    )
    with pytest.raises(ParleyError) as caught:
        resolve_request(request, ValidationContext(all_formats(), load_shipped_roles(), roster))
    fields = ("spec.agents[0].agent_id", "spec.judge.agent_id")
    assert tuple(each.field for each in caught.value.violations) == fields
    by_default = refused(roster=roster)
    assert [each.field for each in by_default] == ["spec.agents", "spec.judge"]
    assert by_default[0].description.startswith("agent ada: unknown role 'poet'; known roles: architect, ")
    assert by_default[1].description.startswith("agent ju: unknown role 'bard'; known roles: ")


def test_a_role_of_the_gateway_may_be_an_alias() -> None:
    debate = created(roster=gateway_of("kiss"))
    assert debate.spec.agents[0].agent.role == "simplicity"
    assert told(debate, "simplicity") == load_shipped_roles().get("simplicity").prompts


def test_an_agent_whose_role_is_not_known_is_seen_with_all_else_that_is_bad() -> None:
    twice = agent_pb2.Agent(id="bo", role="poet")
    fields = [each.field for each in refused(twice, twice)]
    assert fields == ["spec.agents[0].agent.role", "spec.agents[1].agent.role", "spec.agents"]


def with_own_role(agent: str, role: str = "lawyer", **sections: str) -> agent_pb2.Agent:
    own = agent_pb2.OwnRole(sections=sections, source="roles/lawyer.md")
    return agent_pb2.Agent(id=agent, role=role, own_role=own)


def test_a_role_of_ones_own_has_its_words_and_the_generalists_where_it_says_none() -> None:
    debate = created(with_own_role("cy", system="You are a lawyer.", propose="Propose."))
    lawyer = told(debate, "lawyer")
    generalist = load_shipped_roles().get("generalist").prompts
    assert debate.spec.agents[0].agent.role == "lawyer"
    assert (lawyer["system"], lawyer["propose"]) == ("You are a lawyer.", "Propose.")
    assert lawyer["critique"] == generalist["critique"]
    assert lawyer["summarize"] == generalist["summarize"]


def test_a_judge_may_have_a_role_of_ones_own_with_the_judges_words_where_it_says_none() -> None:
    judge = debate_pb2.Participant(agent=with_own_role("ju", "umpire", system="You judge sternly."))
    debate = created(judge=judge)
    umpire = told(debate, "umpire")
    shipped = load_shipped_roles().get("judge").prompts
    assert (debate.spec.judge.agent.role, umpire["system"]) == ("umpire", "You judge sternly.")
    assert (umpire["synthesize"], umpire["summarize"]) == (shipped["synthesize"], shipped["summarize"])


def test_who_debates_and_who_judges_in_one_role_are_told_the_same() -> None:
    judge = debate_pb2.Participant(agent=with_own_role("ju", system="You are a lawyer."))
    debate = created(with_own_role("cy", system="You are a lawyer."), judge=judge)
    assert [each.role for each in debate.roles] == ["lawyer"]


def test_a_debate_keeps_the_words_and_the_source_of_a_role_of_ones_own() -> None:
    debate = created(with_own_role("cy", system="You are a lawyer."))
    assert debate.spec.agents[0].agent.own_role == OwnRole(source="roles/lawyer.md")
    assert told(debate, "lawyer")["system"] == "You are a lawyer."


@pytest.mark.parametrize(
    ("agents", "expected"),
    [
        (
            [with_own_role("cy", propose="x")],
            ["spec.agents[0].agent.own_role: role 'lawyer' lacks the section system"],
        ),
        (
            [with_own_role("cy", system="x", advise="y", zap="z")],
            [
                "spec.agents[0].agent.own_role: role 'lawyer' has sections that nothing reads: advise, zap; known sections: "
            ],
        ),
        (
            [with_own_role("cy", system=" ", propose="p" * 65537)],
            [
                "spec.agents[0].agent.own_role: section propose of role 'lawyer' must not be blank, at most 64 KiB",
                "spec.agents[0].agent.own_role: section system of role 'lawyer' must not be blank, at most 64 KiB",
            ],
        ),
        (
            [with_own_role("cy", "My Role", system="x")],
            ["spec.agents[0].agent.role: 'My Role' must match "],
        ),
        (
            [with_own_role("cy", system="x"), with_own_role("di", system="y")],
            ["spec.agents: agent di: role 'lawyer' has other prompts than with another agent of this debate"],
        ),
        (
            [with_own_role("cy", "security", system="x"), described()],
            [
                "spec.agents: agent bo: role 'security' has other prompts than with another agent of this debate"
            ],
        ),
        (
            [agent_pb2.Agent(id="cy", role="poet"), agent_pb2.Agent(id="di", role="bard")],
            [
                "spec.agents[0].agent.role: unknown role 'poet'; known roles: architect, ",
                "spec.agents[1].agent.role: unknown role 'bard'; known roles: architect, ",
            ],
        ),
    ],
)
def test_a_role_that_cannot_be_used_is_refused(agents: list[agent_pb2.Agent], expected: list[str]) -> None:
    found = [f"{each.field}: {each.description}" for each in refused(*agents)]
    assert len(found) == len(expected)
    assert all(told.startswith(begin) for told, begin in zip(found, expected, strict=True)), found


def demonstrating(*routes: str) -> Roster:
    return replace(
        ROSTER,
        routes=frozenset({"local/small", "openai/m"}),
        default_routes=routes,
        demonstrations=frozenset({"local/small"}),
    )


def test_a_debate_whose_agents_a_demonstration_answers_is_one() -> None:
    assert created(described(), roster=demonstrating("local/small")).demonstration
    assert created(described(routes=["local/small"]), roster=demonstrating("openai/m")).demonstration
    assert not created(described(), roster=demonstrating("openai/m")).demonstration


OFFERS = replace(
    ROSTER,
    routes=frozenset({"main", "x/claude", "y/gemini"}),
    models={"main": "openai/gpt-5-mini", "x/claude": "x/claude", "y/gemini": "y/gemini"},
    default_routes=("main", "x/claude", "y/gemini"),
)
CLAUDE, GEMINI = (
    agent_pb2.Agent(id="cy", role="security", routes=["x/claude"]),
    agent_pb2.Agent(id="dee", role="security", routes=["y/gemini"]),
)


def judge_of(made: DebateCreated) -> agent_pb2.Agent:
    return made.spec.judge.agent


def test_a_judge_that_names_no_route_answers_by_one_of_another_family_with_the_others_behind_it() -> None:
    made = created(described(), CLAUDE, roster=OFFERS)
    assert list(judge_of(made).routes) == ["y/gemini", "main", "x/claude"]
    assert [each.agent.model_family for each in made.spec.agents] == ["openai", "anthropic"]
    assert judge_of(made).model_family == "google"
    assert "y/gemini is of another family than the agents' models" in made.judge_reason
    assert "no agent's model is of its family (google)" in made.judge_reason
    assert not judge_of(made).stronger


def test_a_route_that_the_gateway_calls_stronger_judges_and_makes_the_judge_stronger() -> None:
    roster = replace(OFFERS, stronger=frozenset({"y/gemini"}))
    made = created(described(), roster=roster)
    assert (judge_of(made).routes[0], judge_of(made).stronger) == ("y/gemini", True)
    assert "it counts as stronger than the agents" in made.judge_reason
    beside = created(described(), GEMINI, roster=roster)
    assert (judge_of(beside).routes[0], judge_of(beside).stronger) == ("x/claude", False)


@pytest.mark.parametrize(("debater", "stronger"), [("x/claude", True), ("y/gemini", False)])
def test_the_routes_of_a_judge_stand_and_it_is_called_stronger_than_agents_with_other_routes(
    debater: str, stronger: bool
) -> None:
    judge = agent_pb2.Agent(id="judge", role="judge", routes=["y/gemini"], stronger=True)
    boaster = described(routes=[debater], stronger=True, model_family="mine")
    made = created(boaster, roster=OFFERS, judge=debate_pb2.Participant(agent=judge))
    assert (list(judge_of(made).routes), judge_of(made).stronger) == (["y/gemini"], stronger)
    (team,) = made.spec.agents
    assert (team.agent.stronger, team.agent.model_family) == (
        False,
        "google" if not stronger else "anthropic",
    )
    assert made.judge_reason.startswith("its routes are given; ")
    assert ("all models are of one family (google)" in made.judge_reason) == (not stronger)


def test_where_all_routes_are_of_one_family_the_judge_has_the_default_ones() -> None:
    made = created(described(), roster=replace(OFFERS, default_routes=("main",)))
    assert (list(judge_of(made).routes), judge_of(made).model_family) == ([], "openai")
    assert "it has the default routes; all models are of one family (openai)" in made.judge_reason
    boaster = agent_pb2.Agent(id="judge", role="judge", stronger=True)
    assert not judge_of(created(described(), judge=debate_pb2.Participant(agent=boaster))).stronger
    small = replace(OFFERS, default_routes=("main", "x/claude"), demonstrations=frozenset({"x/claude"}))
    assert not judge_of(created(described(), roster=small)).routes, "a demonstration judges nothing by choice"


def web_with(**fields: Any) -> WebSources:
    return WebSources(Fetcher(), Fetcher(), lambda: datetime.now(UTC), **fields)


def test_the_web_is_read_if_the_operator_has_switched_it_on_and_the_caller_not_off() -> None:
    web = web_with(search_url="http://searxng:8080")
    assert asked(web=web).research
    assert asked(web=web, research=True).research
    assert not asked(web=web, research=False).research
    assert not asked(web=web_with(reads_pages=True)).research  # there is nothing to read
    assert asked(web=web_with(reads_pages=True), research_pages=["https://a.example/"]).research
    assert not asked().HasField("research")


@pytest.mark.parametrize(
    ("web", "fields", "field"),
    [
        (None, {"research": True}, "spec.research"),
        (None, {"research_pages": ["https://a.example/"]}, "spec.research_pages"),
        (web_with(search_url="http://s/"), {"research_pages": ["https://a.example/"]}, "spec.research_pages"),
        (
            web_with(reads_pages=True),
            {"research": False, "research_pages": ["https://a.example/"]},
            "spec.research_pages",
        ),
        (web_with(reads_pages=True), {"research_pages": ["file:///etc/passwd"]}, "spec.research_pages[0]"),
        (
            web_with(reads_pages=True),
            {"research_pages": ["http://me:pw@a.example/"]},
            "spec.research_pages[0]",
        ),
    ],
)
def test_research_that_the_operator_does_not_allow_or_no_address_can_be_is_refused(
    web: WebSources | None, fields: dict[str, Any], field: str
) -> None:
    assert [each.field for each in refused(web=web, **fields)] == [field]
