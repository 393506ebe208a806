"""Models of one's own: how much they read, given by option or variable, and those too small to be relied on."""

import json
from pathlib import Path

from tests.support.command import Command, Ended

LONG = "Which of these? " + "A line of the question that says little. " * 400


def run(folder: Path, url: str, *arguments: str, **variables: str) -> Ended:
    return Command(arguments, folder, {"OPENAI_BASE_URL": url, "PARLEY_MODEL": "m", **variables}).end()


def test_a_question_that_does_not_fit_is_refused_and_another_size_lets_it_through(
    tmp_path: Path, models: str
) -> None:
    asked = ["debate", LONG, "--agents", "architect,security", "--rounds", "1"]
    ended = run(tmp_path, models, *asked, "--context-tokens", "512")
    assert ended.code != 0
    assert "CONTEXT_OVERFLOW" in ended.err[-1]
    assert run(tmp_path, models, *asked, "--context-tokens", "100000").code == 0


def test_the_variable_says_it_too(tmp_path: Path, models: str) -> None:
    (tmp_path / "parley.yaml").write_text("routes: [{provider: openai, model: m}]\n")
    ended = run(tmp_path, models, "agents", "--json", PARLEY_CONTEXT_TOKENS="4096")
    (route,) = [each for each in json.loads(ended.out)["routes"] if each["name"] == "openai/m"]
    assert route["context_tokens"] == 4096


def test_a_debate_of_a_tiny_model_of_ones_own_is_a_demonstration(tmp_path: Path, models: str) -> None:
    asked = ["debate", "Which?", "--agents", "architect,security"]
    ended = run(tmp_path, models, *asked, PARLEY_MODEL="smollm2:135m")
    assert ended.code == 0
    assert any(line.startswith("The model smollm2:135m is very small.") for line in ended.err)
    assert ended.out.startswith("*Demonstration: ")
    assert len(run(tmp_path, models, "ratings").out.splitlines()) == 1, "no debate is counted"
