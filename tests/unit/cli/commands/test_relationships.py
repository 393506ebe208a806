"""`parley relationships`: how an agent gets along with others."""

import json

import pytest

from parley.cli.__main__ import run
from parley.v1.ratings_pb2 import Relationship
from tests.support.scripted_orchestrator import ScriptedOrchestrator


@pytest.fixture
def at(orchestrator: ScriptedOrchestrator) -> list[str]:
    orchestrator.relationships = [
        Relationship(
            agent_id="ada",
            other_agent_id=other,
            debates=9 - number,
            wins=4,
            draws=2,
            losses=3,
            agreements=7,
            disagreements=1,
        )
        for number, other in enumerate(("bo", "cy", "di"))
    ]
    return ["--server", orchestrator.address]


def test_relationships_are_a_table_whatever_a_page_holds(
    at: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["relationships", "ada", *at]) == 0
    assert [line.split() for line in capsys.readouterr().out.splitlines()] == [
        ["AGENT", "DEBATES", "WON", "DRAWN", "LOST", "AGREED", "DISAGREED"],
        ["bo", "9", "4", "2", "3", "7", "1"],
        ["cy", "8", "4", "2", "3", "7", "1"],
        ["di", "7", "4", "2", "3", "7", "1"],
    ]


def test_relationships_are_json_too(at: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["relationships", "ada", "--json", *at]) == 0
    assert [each["other_agent_id"] for each in json.loads(capsys.readouterr().out)] == ["bo", "cy", "di"]


def test_what_to_do_is_said_of_an_agent_that_has_met_no_other(
    at: list[str], orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]
) -> None:
    orchestrator.relationships = ()
    assert run(["relationships", "ada", *at]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert said.err == f"ada has met no other agent yet. Agents that have: parley ratings --server {at[1]}\n"
