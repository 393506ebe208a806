"""Commands that only look at things, on this machine: what they start, and what they leave alone."""

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.e2e.harness import model_server
from tests.support.command import Command, Ended

QUESTION = ["debate", "One process or several?", "--agents", "architect,security", "--rounds", "1"]
RULES = [
    {"match": {"prompt": "End with one line `Position: `"}, "answer": "One will do.\nPosition: Keep one."}
]
"""Agents take one position in the same words, so that it is certain how their first drafts group."""
NO_EMBEDDINGS = {"PARLEY_EMBEDDING_FINE": "endpoint"}
"""Convergence refuses to start with this alone, so that a command that succeeds has not started it."""


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    rules = tmp_path_factory.mktemp("models") / "rules.json"
    rules.write_text(json.dumps(RULES))
    with model_server("--faults", str(rules)) as url:
        yield url


def command(folder: Path, url: str, *arguments: str, **variables: str) -> Ended:
    given = {"OPENAI_BASE_URL": url, "PARLEY_MODEL": "test", **variables}
    began = time.monotonic()
    ended = Command(arguments, folder, given).end()
    print(f"parley {arguments[0]}: {time.monotonic() - began:.2f} s")  # noqa: T201 (for people; -s shows it)
    return ended


@dataclass(frozen=True)
class Held:
    """A folder in which a debate was held, by the command in one process."""

    folder: Path
    debate: str
    told: str


@pytest.fixture(scope="module")
def held(tmp_path_factory: pytest.TempPathFactory, models: str) -> Held:
    folder = tmp_path_factory.mktemp("held")
    ended = command(folder, models, *QUESTION, "--verbose", "--report", "r.md")
    assert ended.code == 0, ended.err
    told = "\n".join(ended.err)
    (debate,) = set(re.findall(r"deb-\d{8}-\d{6}-[a-z0-9]{8}", told))
    return Held(folder, debate, told)


def test_the_vote_over_the_first_drafts_is_told_and_reported(held: Held) -> None:
    assert "  vote over the first drafts: 2 of 2 agree\n" in held.told
    assert "both first drafts (architect, security)" in (held.folder / "r.md").read_text()


@pytest.mark.parametrize(
    ("arguments", "shows"),
    [
        (["list"], "{debate}"),
        (["show", "{debate}"], "Status     completed"),
        (["report", "{debate}"], "## What the debate changed"),
        (["agents"], "openai/test"),
        (["ratings"], "architect"),
        (["ratings", "--domain", "general"], "security"),
    ],
    ids=" ".join,
)
def test_looking_starts_no_embeddings(held: Held, models: str, arguments: list[str], shows: str) -> None:
    asked = [each.format(debate=held.debate) for each in arguments]
    ended = command(held.folder, models, *asked, **NO_EMBEDDINGS)
    assert (ended.code, ended.err) == (0, [])
    assert shows.format(debate=held.debate) in ended.out


def test_a_command_that_needs_embeddings_does_not_start_without(models: str, tmp_path: Path) -> None:
    assert command(tmp_path, models, *QUESTION, **NO_EMBEDDINGS).code == 4


def test_a_second_debate_tells_which_past_ones_were_shown(held: Held, models: str) -> None:
    ended = command(held.folder, models, *QUESTION, "--verbose")
    assert f"Past debates shown\n  {held.debate}\n" in "\n".join(ended.err)


def test_ratings_can_be_read_beside_a_debate_that_runs(tmp_path: Path) -> None:
    with model_server("--latency-ms", "2500") as slow:
        variables = {"OPENAI_BASE_URL": slow, "PARLEY_MODEL": "test"}
        running = Command(["debate", "Which?", "--rounds", "1"], tmp_path, variables)
        running.wait_for("round 1/1")
        beside = command(tmp_path, slow, "ratings")
        assert running.process.poll() is None
        assert (beside.code, beside.err) == (0, ["No match is recorded yet."])
        assert running.end().code == 0
