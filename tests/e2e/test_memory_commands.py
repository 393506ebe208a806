"""What a debate decided is found, shown and forgotten by the command, which runs the system itself or asks `parley up`."""

import json
from pathlib import Path

from tests.support.command import Command, Ended
from tests.support.ports import free_ports

QUESTION = "Should this service keep a zebra cache of its own?"


def run(folder: Path, url: str, *arguments: str) -> Ended:
    ended = Command(arguments, folder, {"OPENAI_BASE_URL": url, "PARLEY_MODEL": "test"}).end()
    assert ended.code == 0, ended.err
    return ended


def test_what_a_debate_decided_is_found_shown_and_forgotten(tmp_path: Path, models: str) -> None:
    run(tmp_path, models, "debate", QUESTION, "--agents", "architect,security", "--rounds", "1")
    (found,) = json.loads(run(tmp_path, models, "memory", "search", "a zebra cache?", "--json").out)
    debate = found["debate_id"]
    assert found["question"] == QUESTION
    shown = run(tmp_path, models, "memory", "show", debate.removeprefix("deb-")[:15])
    assert QUESTION in shown.out
    assert "## Issues" in shown.out
    forgotten = run(tmp_path, models, "memory", "forget", debate, "--yes")
    assert forgotten.out == f"Forgotten: {debate}.\n"
    nothing = run(tmp_path, models, "memory", "search", "a zebra cache?")
    assert (nothing.out, nothing.err[-1].partition(";")[0]) == ("", "Nothing like it is remembered")
    assert QUESTION in run(tmp_path, models, "show", debate).out
    assert not any(b"zebra" in each.read_bytes() for each in (tmp_path / "data").glob("memory*"))


def test_a_system_that_runs_already_is_asked(tmp_path: Path, models: str) -> None:
    variables = {"OPENAI_BASE_URL": models, "PARLEY_MODEL": "test"}
    Command(["up", "--port", str(next(free_ports()))], tmp_path, variables).wait_for("Ctrl-C stops")
    run(tmp_path, models, "debate", QUESTION, "--agents", "architect,security", "--rounds", "1")
    (found,) = json.loads(run(tmp_path, models, "memory", "search", "a zebra cache?", "--json").out)
    assert found["question"] == QUESTION
