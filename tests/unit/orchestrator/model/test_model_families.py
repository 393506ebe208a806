"""Families of models, and what follows: one voice, and a judge of another family."""

import pytest

from parley.orchestrator.model.judge_choice import (
    Distance,
    Offer,
    choose_judge,
    choose_route,
    describe_relation,
)
from parley.orchestrator.model.model_families import FAMILIES, UNKNOWN_FAMILY, family_of, shared_family
from parley.v1.agent_pb2 import Agent


def agent(name: str, *routes: str) -> Agent:
    return Agent(id=name, name=name.title(), role="generalist", routes=routes)


@pytest.mark.parametrize(
    ("model", "family"),
    [
        ("openai/gpt-5", "openai"),
        ("gpt-4.1-mini", "openai"),
        ("azure/gpt-4o", "openai"),
        ("openrouter/openai/o3", "openai"),
        ("openrouter/anthropic/claude-sonnet-4:free", "anthropic"),
        ("bedrock/us.anthropic.claude-3-5-sonnet-v2:0", "anthropic"),
        ("google/gemini-2.5-pro", "google"),
        ("ollama/gemma3:27b", "google"),
        ("groq/llama-3.3-70b-versatile", "meta"),
        ("together/meta-llama/Llama-3-8b", "meta"),
        ("mistralai/Mixtral-8x7B-Instruct", "mistral"),
        ("local/qwen2.5-0.5b", "qwen"),
        ("openrouter/deepseek/deepseek-r1-distill-llama-70b", "deepseek"),
        ("nousresearch/hermes-3-llama-3.1-405b", "meta"),
        ("x-ai/grok-4", "xai"),
        ("openrouter/x-ai/some-new-one", "xai"),
        ("my-route", ""),
        ("provider/philosopher", ""),
        ("", ""),
    ],
)
def test_a_name_tells_the_family_of_its_model(model: str, family: str) -> None:
    assert family_of(model) == family


def test_no_word_names_two_families() -> None:
    words = [word for each in FAMILIES.values() for word in each]
    assert len(set(words)) == len(words)


def test_agents_of_one_family_are_one_voice_and_those_of_two_are_not() -> None:
    same = [agent("ada", "openai/gpt-5"), agent("bo", "openrouter/openai/o3", "anthropic/claude")]
    assert shared_family(same) == "openai"
    assert shared_family([*same, agent("cy", "anthropic/claude-opus-4")]) == ""
    assert shared_family([*same, agent("cy", "mystery")]) == "", "an unknown model may be of another family"
    assert shared_family(same[:1]) == ""


def test_agents_of_one_route_are_one_voice_whatever_its_family() -> None:
    assert shared_family([agent("ada", "mystery"), agent("bo", "mystery")]) == "mystery"
    assert shared_family([agent("ada"), agent("bo")]) == "the default route"
    assert shared_family([agent("ada", "mystery"), agent("bo", "riddle")]) == ""


GPT, CLAUDE, GEMINI = (
    agent("ada", "openai/gpt-5"),
    agent("bo", "anthropic/claude-opus-4"),
    agent("cy", "google/gemini-2.5-pro"),
)


def test_the_judge_is_of_another_family_than_the_authors_where_the_roster_allows() -> None:
    other_gpt = agent("dee", "openai/o3")
    chosen = choose_judge([other_gpt, GPT, GEMINI], [GPT, CLAUDE])
    assert (chosen.agent, chosen.distance) == (GEMINI, Distance.OTHER_FAMILY)
    assert "google" in chosen.reason


@pytest.mark.parametrize(
    ("candidates", "authors", "judge", "distance"),
    [
        ([GPT, agent("dee", "openai/o3")], [GPT, CLAUDE], "dee", Distance.SAME_FAMILY),
        ([agent("dee", "openai/o3"), agent("eve", "mystery")], [GPT], "eve", Distance.UNKNOWN_FAMILY),
        ([agent("dee", "mystery")], [agent("eve", "mystery")], "dee", Distance.SAME_FAMILY),
        ([GEMINI], [agent("eve", "mystery")], "cy", Distance.UNKNOWN_FAMILY),
        ([CLAUDE, GPT], [GPT, CLAUDE], "bo", Distance.AUTHOR),
        ([GEMINI, agent("dee", "mistral/large")], [GPT], "cy", Distance.OTHER_FAMILY),
    ],
)
def test_of_those_who_may_judge_the_farthest_does_and_of_several_the_first(
    candidates: list[Agent], authors: list[Agent], judge: str, distance: Distance
) -> None:
    chosen = choose_judge(candidates, authors)
    assert (chosen.agent.id, chosen.distance) == (judge, distance)
    assert chosen.reason


GPT_MINI, GPT_LARGE = Offer("openai/gpt-5-mini", "openai"), Offer("openai/gpt-5", "openai", stronger=True)
HAIKU, OPUS = Offer("x/claude-haiku", "anthropic"), Offer("x/claude-opus", "anthropic", stronger=True)
MYSTERY = Offer("mystery", "")


@pytest.mark.parametrize(
    ("panel", "offered", "route"),
    [
        ([GPT_MINI], [GPT_MINI, HAIKU, OPUS], "x/claude-opus"),
        ([GPT_MINI], [GPT_LARGE, GPT_MINI, HAIKU], "x/claude-haiku"),
        ([GPT_MINI], [GPT_MINI, Offer("g/gemini", "google"), HAIKU], "g/gemini"),
        ([GPT_MINI, HAIKU], [GPT_MINI, HAIKU, GPT_LARGE], "openai/gpt-5"),
        ([GPT_MINI, GPT_LARGE], [GPT_MINI, GPT_LARGE], ""),
        ([GPT_LARGE], [GPT_LARGE, HAIKU], "x/claude-haiku"),
        ([GPT_MINI, MYSTERY], [GPT_MINI, HAIKU], ""),
        ([GPT_MINI], [GPT_MINI, MYSTERY], ""),
        ([GPT_MINI], [GPT_MINI], ""),
        ([GPT_MINI], [], ""),
    ],
)
def test_a_judge_without_a_route_gets_the_strongest_of_another_family_or_else_a_stronger_one(
    panel: list[Offer], offered: list[Offer], route: str
) -> None:
    chosen = choose_route(panel, offered)
    assert (chosen.route if chosen else "") == route
    assert chosen is None or route in chosen.reason


@pytest.mark.parametrize(
    ("judge", "team", "said"),
    [
        (GEMINI, [GPT, CLAUDE], "no agent's model is of its family (google)"),
        (GPT, [agent("dee", "openai/o3")], "all models are of one family (openai)"),
        (GPT, [agent("dee", "openai/o3"), CLAUDE], "an agent's model is of its family too"),
        (GEMINI, [agent("dee", "mystery")], "is not known"),
        (agent("judge"), [agent("dee")], "all models are of one family (the default route)"),
    ],
)
def test_it_is_said_how_the_judges_model_is_related_to_the_agents(
    judge: Agent, team: list[Agent], said: str
) -> None:
    assert said in describe_relation(judge, team)


def test_the_family_that_a_debate_has_recorded_counts_before_the_name_of_a_route() -> None:
    assert shared_family([agent("ada", "fast"), GPT]) == ""
    named = agent("ada", "fast")
    named.model_family = "openai"
    assert shared_family([named, GPT]) == "openai"
    of_own_server = agent("bo", "openai/mine")
    assert shared_family([of_own_server, GPT]) == "openai", (
        "as logs have it that do not say that it is unknown"
    )
    of_own_server.model_family = UNKNOWN_FAMILY
    assert shared_family([of_own_server, GPT]) == ""
