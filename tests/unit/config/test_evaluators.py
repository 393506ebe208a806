"""Evaluators: in a section of the configuration, or in a file of their own as other tools write it."""

import json
from pathlib import Path
from typing import Any

import pytest

from parley.config import loading as config
from parley.config.errors import ConfigError
from parley.config.file import ConfigFile
from parley.config.messages import agent_message

FOLDER = Path(__file__).parents[2] / "data" / "evaluators"
FILES = ("single.json", "prompts.json", "openai.json", "mixed.json")


def load(name: str) -> ConfigFile:
    return config.load(FOLDER / name, evaluators=True)


def read(text: str | dict[str, Any], name: str = "eval.json") -> ConfigFile:
    given = text if isinstance(text, str) else json.dumps(text, indent=2)
    return config.loads(given, name, Path(), evaluators=True)


def refusal(given: str | dict[str, Any], name: str = "eval.json") -> str:
    with pytest.raises(ConfigError) as refused:
        read(given, name)
    return str(refused.value)


@pytest.mark.parametrize("name", FILES)
def test_files_of_evaluators_alone_load_as_they_are(name: str) -> None:
    found = load(name)
    assert found.evaluators
    assert not found.team_given
    assert all(each.role == "evaluator" for each in found.evaluators)


def test_an_evaluator_has_its_prompts_its_model_and_its_time() -> None:
    first, second = load("prompts.json").evaluators
    assert (first.id, first.name) == ("eval-1", "First evaluator")
    assert first.routes == ("openrouter/google/gemini-2.5-flash-lite",)
    assert (first.timeout_seconds, second.timeout_seconds) == (30, 45)
    message = agent_message(first)
    assert message.system_prompt.text.startswith("You grade answers")
    assert message.evaluation_prompt.text.startswith("Grade the solution.")
    assert message.evaluation_prompt.source == str(FOLDER / "prompts" / "user.md")


def test_a_disabled_evaluator_is_left_out() -> None:
    assert [each.id for each in load("openai.json").evaluators] == ["eval-1"]
    assert load("openai.json").evaluators[0].temperature == 0.1


def test_keys_that_mean_nothing_are_passed_over_and_a_prompt_that_is_not_there_is_warned_of() -> None:
    found = load("mixed.json")
    path = FOLDER / "mixed.json"
    assert found.notices == (
        f"{path}:2: trace: has no effect here and is passed over",
        f"{path}:18: agents[1].clarificationPromptPath: has no effect here and is passed over",
        f"{path}:17: agents[1].summarization: has no effect here and is passed over",
    )
    why = "./prompts/gone.md cannot be read: No such file or directory; the built-in prompt is used"
    assert found.warnings == (f"{path}:10: agents[0].userPromptPath: {why}",)
    assert found.evaluators[0].evaluation_prompt is None


def test_a_configuration_of_debates_may_have_a_section_of_evaluators() -> None:
    text = "agents: [{role: architect}]\nevaluators:\n- {id: strict, model: m, timeout: 2000}\n- {role: security}\n"
    found = config.loads(text, "parley.yaml", Path())
    assert [each.id for each in found.agents] == ["architect"]
    assert [(each.id, each.role) for each in found.evaluators] == [
        ("strict", "evaluator"),
        ("security", "security"),
    ]


def test_a_file_of_evaluators_alone_is_no_configuration_of_debates() -> None:
    text = (FOLDER / "single.json").read_text()
    with pytest.raises(ConfigError, match=r"eval\.json:3: agents\[0\]\.role: is missing"):
        config.loads(text, "eval.json", Path())


@pytest.mark.parametrize("section", [{"judge": {}}, {"debate": {}}, {"evaluators": []}])
def test_a_file_that_says_more_than_evaluators_is_read_as_one_of_debates(section: dict[str, Any]) -> None:
    assert "agents[0].role: is missing" in refusal({"agents": [{"id": "a"}], **section})


@pytest.mark.parametrize(
    ("given", "told"),
    [
        (
            {"agents": [{"id": "a", "timout": 3}]},
            "eval.json:5: agents[0].timout: unknown key; did you mean timeout?",
        ),
        ({"agents": [{"id": "a", "timeout": 30}]}, "eval.json:5: agents[0].timeout: must be at least 1000"),
        (
            {"agents": [{"id": "a", "timeout": "30 s"}]},
            "eval.json:5: agents[0].timeout: must be a whole number",
        ),
        ({"agents": [{"id": "A b"}]}, "eval.json:4: agents[0].id: must be up to 32 of a-z, 0-9 and `-`"),
        (
            {"agents": [{"id": "a"}, {"id": "a"}]},
            "eval.json:7: agents[1].id: a is the id of another evaluator too",
        ),
        (
            {"agents": [{"id": "a", "enabled": False}]},
            "eval.json:2: agents: no evaluator is left; enable one",
        ),
        (
            {"agents": [{"model": "m", "provider": "nobody"}]},
            "eval.json:5: agents[0].provider: unknown provider nobody",
        ),
        ({"agents": [{"provider": "openai"}]}, "eval.json:4: agents[0].provider: needs a model too"),
        ({"agents": [{"id": "a"}], "evaluator": 1}, "eval.json:7: evaluator: unknown key; did you mean "),
        ('{"agents": [{"id": "a",}]}', "eval.json:1: is not JSON: "),
        ({"agents": []}, "eval.json:2: agents: there is none; name one, or leave `agents` out"),
        ({"agents": "all"}, "eval.json:2: agents: must be a list"),
    ],
)
def test_a_file_that_cannot_be_used_is_told_by_file_line_and_key(given: Any, told: str) -> None:
    assert refusal(given).startswith(told)
