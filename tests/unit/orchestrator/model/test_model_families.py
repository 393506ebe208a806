"""Families of models, and what follows: one voice, and a judge of another family."""

import pytest

from parley.orchestrator.model.judge_choice import Distance, choose_judge
from parley.orchestrator.model.model_families import FAMILIES, family_of, shared_family
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
