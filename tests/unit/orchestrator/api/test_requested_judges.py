"""The judge of a request, and the routes by which it answers."""

import pytest
from msgspec.structs import replace

from parley.v1 import agent_pb2, debate_pb2
from parley.v1.event_pb2 import DebateCreated
from tests.unit.orchestrator.api.requested import ROSTER, resolve_agent, resolve_debate

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


def find_judge(made: DebateCreated) -> agent_pb2.Agent:
    return made.spec.judge.agent


def test_a_judge_that_names_no_route_answers_by_one_of_another_family_with_the_others_behind_it() -> None:
    made = resolve_debate(resolve_agent(), CLAUDE, roster=OFFERS)
    assert list(find_judge(made).routes) == ["y/gemini", "main", "x/claude"]
    assert [each.agent.model_family for each in made.spec.agents] == ["openai", "anthropic"]
    assert find_judge(made).model_family == "google"
    assert "y/gemini is of another family than the agents' models" in made.judge_reason
    assert "no agent's model is of its family (google)" in made.judge_reason
    assert not find_judge(made).stronger


def test_a_route_that_the_gateway_calls_stronger_judges_and_makes_the_judge_stronger() -> None:
    roster = replace(OFFERS, stronger=frozenset({"y/gemini"}))
    made = resolve_debate(resolve_agent(), roster=roster)
    assert (find_judge(made).routes[0], find_judge(made).stronger) == ("y/gemini", True)
    assert "it counts as stronger than the agents" in made.judge_reason
    beside = resolve_debate(resolve_agent(), GEMINI, roster=roster)
    assert (find_judge(beside).routes[0], find_judge(beside).stronger) == ("x/claude", False)


@pytest.mark.parametrize(("debater", "stronger"), [("x/claude", True), ("y/gemini", False)])
def test_the_routes_of_a_judge_stand_and_it_is_called_stronger_than_agents_with_other_routes(
    debater: str, stronger: bool
) -> None:
    judge = agent_pb2.Agent(id="judge", role="judge", routes=["y/gemini"], stronger=True)
    boaster = resolve_agent(routes=[debater], stronger=True, model_family="mine")
    made = resolve_debate(boaster, roster=OFFERS, judge=debate_pb2.Participant(agent=judge))
    assert (list(find_judge(made).routes), find_judge(made).stronger) == (["y/gemini"], stronger)
    (team,) = made.spec.agents
    assert (team.agent.stronger, team.agent.model_family) == (
        False,
        "google" if not stronger else "anthropic",
    )
    assert made.judge_reason.startswith("its routes are given; ")
    assert ("all models are of one family (google)" in made.judge_reason) == (not stronger)


def test_where_all_routes_are_of_one_family_the_judge_has_the_default_ones() -> None:
    made = resolve_debate(resolve_agent(), roster=replace(OFFERS, default_routes=("main",)))
    assert (list(find_judge(made).routes), find_judge(made).model_family) == ([], "openai")
    assert "it has the default routes; all models are of one family (openai)" in made.judge_reason
    boaster = agent_pb2.Agent(id="judge", role="judge", stronger=True)
    assert not find_judge(
        resolve_debate(resolve_agent(), judge=debate_pb2.Participant(agent=boaster))
    ).stronger
    small = replace(OFFERS, default_routes=("main", "x/claude"), demonstrations=frozenset({"x/claude"}))
    assert not find_judge(resolve_debate(resolve_agent(), roster=small)).routes, (
        "a demonstration judges nothing by choice"
    )
