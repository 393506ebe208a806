"""Roles in requests: those that are known, those of the gateway and roles of one's own."""

import pytest

from parley.orchestrator.api.participants import ValidationContext
from parley.orchestrator.api.requests import resolve_request
from parley.orchestrator.formats.shipped import all_formats
from parley.orchestrator.peers.roster import Roster
from parley.orchestrator.roles.catalogue import load_shipped_roles
from parley.runtime.errors import ParleyError
from parley.v1 import agent_pb2, debate_pb2, orchestrator_pb2
from parley.v1.agent_pb2 import OwnRole
from tests.unit.orchestrator.api.requested import get_sections, list_violations, resolve_agent, resolve_debate


def make_roster(role: str, judge: str = "judge") -> Roster:
    """A gateway whose only agent, and whose judge, have these roles."""
    agents = (agent_pb2.Agent(id="ada", role=role), agent_pb2.Agent(id="ju", role=judge))
    known = {each.id: each for each in agents}
    return Roster(known, ("ada",), "ju", frozenset(), frozenset())


def test_the_default_team_is_checked_against_the_format() -> None:
    (found,) = list_violations(roster=make_roster("judge"))
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
        resolve_request(request, ValidationContext(all_formats(), load_shipped_roles(), make_roster("judge")))
    assert [each.field for each in caught.value.violations] == ["spec.agents[0]"]


def test_a_role_that_only_the_gateway_knows_is_refused_wherever_it_stands() -> None:
    roster = make_roster("poet", judge="bard")
    ada, ju = (debate_pb2.Participant(agent_id=each) for each in ("ada", "ju"))
    request = orchestrator_pb2.CreateDebateRequest(
        request_id="r", spec=debate_pb2.DebateSpec(question="Which?", agents=[ada], judge=ju)
    )
    with pytest.raises(ParleyError) as caught:
        resolve_request(request, ValidationContext(all_formats(), load_shipped_roles(), roster))
    fields = ("spec.agents[0].agent_id", "spec.judge.agent_id")
    assert tuple(each.field for each in caught.value.violations) == fields
    by_default = list_violations(roster=roster)
    assert [each.field for each in by_default] == ["spec.agents", "spec.judge"]
    assert by_default[0].description.startswith("agent ada: unknown role 'poet'; known roles: architect, ")
    assert by_default[1].description.startswith("agent ju: unknown role 'bard'; known roles: ")


def test_a_role_of_the_gateway_may_be_an_alias() -> None:
    debate = resolve_debate(roster=make_roster("kiss"))
    assert debate.spec.agents[0].agent.role == "simplicity"
    assert get_sections(debate, "simplicity") == load_shipped_roles().get("simplicity").prompts


def test_an_agent_whose_role_is_not_known_is_seen_with_all_else_that_is_bad() -> None:
    twice = agent_pb2.Agent(id="bo", role="poet")
    fields = [each.field for each in list_violations(twice, twice)]
    assert fields == ["spec.agents[0].agent.role", "spec.agents[1].agent.role", "spec.agents"]


def make_agent(agent: str, role: str = "lawyer", **sections: str) -> agent_pb2.Agent:
    own = agent_pb2.OwnRole(sections=sections, source="roles/lawyer.md")
    return agent_pb2.Agent(id=agent, role=role, own_role=own)


def test_a_role_of_ones_own_has_its_words_and_the_generalists_where_it_says_none() -> None:
    debate = resolve_debate(make_agent("cy", system="You are a lawyer.", propose="Propose."))
    lawyer = get_sections(debate, "lawyer")
    generalist = load_shipped_roles().get("generalist").prompts
    assert debate.spec.agents[0].agent.role == "lawyer"
    assert (lawyer["system"], lawyer["propose"]) == ("You are a lawyer.", "Propose.")
    assert lawyer["critique"] == generalist["critique"]
    assert lawyer["summarize"] == generalist["summarize"]


def test_a_judge_may_have_a_role_of_ones_own_with_the_judges_words_where_it_says_none() -> None:
    judge = debate_pb2.Participant(agent=make_agent("ju", "umpire", system="You judge sternly."))
    debate = resolve_debate(judge=judge)
    umpire = get_sections(debate, "umpire")
    shipped = load_shipped_roles().get("judge").prompts
    assert (debate.spec.judge.agent.role, umpire["system"]) == ("umpire", "You judge sternly.")
    assert (umpire["synthesize"], umpire["summarize"]) == (shipped["synthesize"], shipped["summarize"])


def test_who_debates_and_who_judges_in_one_role_are_told_the_same() -> None:
    judge = debate_pb2.Participant(agent=make_agent("ju", system="You are a lawyer."))
    debate = resolve_debate(make_agent("cy", system="You are a lawyer."), judge=judge)
    assert [each.role for each in debate.roles] == ["lawyer"]


def test_a_debate_keeps_the_words_and_the_source_of_a_role_of_ones_own() -> None:
    debate = resolve_debate(make_agent("cy", system="You are a lawyer."))
    assert debate.spec.agents[0].agent.own_role == OwnRole(source="roles/lawyer.md")
    assert get_sections(debate, "lawyer")["system"] == "You are a lawyer."


@pytest.mark.parametrize(
    ("agents", "expected"),
    [
        (
            [make_agent("cy", propose="x")],
            ["spec.agents[0].agent.own_role: role 'lawyer' lacks the section system"],
        ),
        (
            [make_agent("cy", system="x", advise="y", zap="z")],
            [
                "spec.agents[0].agent.own_role: role 'lawyer' has sections that nothing reads: advise, zap; known sections: "
            ],
        ),
        (
            [make_agent("cy", system=" ", propose="p" * 65537)],
            [
                "spec.agents[0].agent.own_role: section propose of role 'lawyer' must not be blank, at most 64 KiB",
                "spec.agents[0].agent.own_role: section system of role 'lawyer' must not be blank, at most 64 KiB",
            ],
        ),
        (
            [make_agent("cy", "My Role", system="x")],
            ["spec.agents[0].agent.role: 'My Role' must match "],
        ),
        (
            [make_agent("cy", system="x"), make_agent("di", system="y")],
            ["spec.agents: agent di: role 'lawyer' has other prompts than with another agent of this debate"],
        ),
        (
            [make_agent("cy", "security", system="x"), resolve_agent()],
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
    found = [f"{each.field}: {each.description}" for each in list_violations(*agents)]
    assert len(found) == len(expected)
    assert all(told.startswith(begin) for told, begin in zip(found, expected, strict=True)), found
