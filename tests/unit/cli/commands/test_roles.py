"""Roles of one's own on the command line: who has them, what is listed, and what is refused."""

import json
from pathlib import Path

import pytest

from parley.cli.__main__ import run
from parley.runtime.errors import FieldViolation, invalid_argument
from tests.support.scripted_orchestrator import ScriptedOrchestrator
from tests.unit.cli.commands.scripts import ROLES

LAWYER = "aliases: counsel\n\n# system\nYou are a lawyer.\n"


@pytest.fixture(autouse=True)
def roles(folder: Path) -> None:
    (folder / "roles").mkdir()
    (folder / "roles" / "lawyer.md").write_text(LAWYER)
    (folder / "parley.yaml").write_text("debate: {rounds: 1}\n")


def test_a_role_of_the_folder_debates_where_a_server_runs_the_debate(
    orchestrator: ScriptedOrchestrator, folder: Path
) -> None:
    assert run(["debate", "Which?", "-a", "counsel,security", "--server", orchestrator.address]) == 0
    (created,) = orchestrator.created
    lawyer, security = created.spec.agents
    assert (lawyer.agent.id, lawyer.agent.role) == ("lawyer", "lawyer")
    assert dict(lawyer.agent.own_role.sections) == {"system": "You are a lawyer."}
    assert lawyer.agent.own_role.source == str((folder / "roles/lawyer.md").resolve())
    assert security.agent_id == "security"


def test_roles_are_listed_with_where_they_come_from(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["roles"]) == 0
    head, first, *others = capsys.readouterr().out.splitlines()
    assert head.split() == ["ROLE", "OTHER", "NAMES", "FROM"]
    assert first.split()[:2] == ["lawyer", "counsel"]
    assert others[0].split() == ["architect", "built-in"]
    assert run(["roles", "--json"]) == 0
    listed = json.loads(capsys.readouterr().out)
    assert listed[0] == {
        "role": "lawyer",
        "aliases": ["counsel"],
        "source": str((folder / "roles/lawyer.md").resolve()),
    }


def test_unknown_roles_are_all_listed_with_the_known_ones(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "parley.yaml").write_text("agents:\n- role: poet\n- role: lawyer\n- role: bard\n")
    assert run(["debate", "Which?"]) == 4
    known = ROLES.replace("generalist, ", "generalist, lawyer, ")
    assert capsys.readouterr().err.splitlines() == [
        "Using parley.yaml of this folder.",
        f"parley: parley.yaml:2: agents[0].role: unknown role 'poet'; {known}",
        f"parley: parley.yaml:4: agents[2].role: unknown role 'bard'; {known}",
    ]


def test_what_the_orchestrator_refuses_of_roles_is_placed_in_the_file_all_of_it(
    orchestrator: ScriptedOrchestrator, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "parley.yaml").write_text("agents:\n- role: lawyer\n- role: bard\n")
    orchestrator.refusal = lambda request: invalid_argument(
        [
            FieldViolation(
                "spec.agents[0].agent.own_role", "role 'lawyer' has sections that nothing reads: x"
            ),
            FieldViolation("spec.agents[1].agent.role", "unknown role 'bard'; known roles: a"),
        ]
    )
    assert run(["debate", "Which?", "--server", orchestrator.address]) == 4
    assert capsys.readouterr().err.splitlines() == [
        "Using parley.yaml of this folder.",
        "parley: parley.yaml:2: agents[0].role: role 'lawyer' has sections that nothing reads: x",
        "parley: parley.yaml:3: agents[1].role: unknown role 'bard'; known roles: a",
    ]
