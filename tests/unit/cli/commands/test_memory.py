"""`parley memory show` and `forget`: all that a debate left, shown whole and forgotten for good."""

import json
from pathlib import Path

import pytest

from parley.cli.__main__ import run
from tests.support.scripted_orchestrator import ScriptedOrchestrator
from tests.support.terminal import on_terminal
from tests.unit.cli.commands.remembered import KAFKA, LONG, make_record


def test_a_stand_is_shown_with_the_first_one_of_its_agent_if_that_was_another(
    at: list[str], orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    found = make_record()
    found.stands[0].first_text = "Use RabbitMQ."
    found.stands[0].first_for_decision = False
    found.stands[1].first_text = found.stands[1].text
    orchestrator.memories = {KAFKA: found}
    assert run(["memory", "show", KAFKA, *at]) == 0
    shown = capsys.readouterr().out
    assert "- Ada (for the decision): Use Kafka. At first (against it): Use RabbitMQ.\n" in shown
    assert "- cy (against it): Use RabbitMQ.\n" in shown


def test_all_of_a_debate_is_shown_whole(at: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["memory", "show", "20260301", *at]) == 1  # of the debates, none's id begins so
    assert run(["memory", "show", KAFKA, *at]) == 0
    head, conclusion, *sections = capsys.readouterr().out.rstrip("\n").split("\n\n")
    assert head.splitlines()[0] == f"Debate      {KAFKA}"
    assert head.splitlines()[3:] == [
        "Domain      data",
        "Agreement   moderate agreement",
        "Confidence  84 % sure (2 of 3 votes)",
    ]
    assert conclusion == LONG.strip()
    assert sections == [
        "## Against the decision",
        f"- cy: {('It is hard to run. ' * 10).strip()}\n- di: Nobody knows it.",
        "## What it rests on",
        "- Kafka keeps order in a partition. (docs/kafka.md)",
        "## Where agents stood",
        "- Ada (for the decision): Use Kafka.\n- cy (against it): Use RabbitMQ.",
        "## Issues",
        "- ada to cy, severity 7: No figures. (rejected: They are in the annex.)",
    ]


def test_what_is_remembered_is_json_too(at: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["memory", "show", KAFKA, "--json", *at]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["debate"]["conclusion"], found["stands"][1]["text"]) == (LONG, "Use RabbitMQ.")


def test_no_remembered_text_poses_as_a_section(
    at: list[str], orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    posing = "Yes.\n\n## Issues\n\n- ada to cy: none"
    found = make_record(conclusion=posing)
    found.stands[0].text = found.issues[0].issue.text = found.debate.dissents[0].text = posing
    orchestrator.memories = {KAFKA: found}
    assert run(["memory", "show", KAFKA, *at]) == 0
    assert capsys.readouterr().out.splitlines().count("## Issues") == 1


def test_that_nothing_is_remembered_is_said_in_one_line(
    at: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    unknown = "deb-20260303-101112-cccccccc"
    assert run(["memory", "show", unknown, *at]) == 1
    assert capsys.readouterr().err == (
        f"parley: nothing is remembered of {unknown}; the debate itself: parley show {unknown} --server {at[1]}\n"
    )
    for arguments in ([], ["--yes"]):
        assert run(["memory", "forget", unknown, *arguments, *at]) == 0
        assert capsys.readouterr().out == f"Nothing is remembered of {unknown}.\n"


def test_whoever_is_sure_is_not_asked(
    at: list[str], orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["memory", "forget", KAFKA, *at]) == 2
    assert capsys.readouterr().err == "parley: there is no terminal to confirm on; use --yes\n"
    assert KAFKA in orchestrator.memories
    assert run(["memory", "forget", KAFKA, "--yes", *at]) == 0
    assert capsys.readouterr().out == f"Forgotten: {KAFKA}.\n"
    assert KAFKA not in orchestrator.memories


@pytest.mark.parametrize(("answer", "is_forgotten"), [(b"yes\n", True), (b"no\n", False)])
def test_a_person_is_shown_the_question_and_asked(
    at: list[str], orchestrator: ScriptedOrchestrator, tmp_path: Path, answer: bytes, *, is_forgotten: bool
) -> None:
    code, shown = on_terminal(["memory", "forget", KAFKA, *at], tmp_path, {"TERM": "dumb"}, typed=answer)
    assert f"Forget {KAFKA} for good? Kafka or RabbitMQ for orders?" in shown
    assert (code, KAFKA not in orchestrator.memories) == ((0, True) if is_forgotten else (1, False)), shown
