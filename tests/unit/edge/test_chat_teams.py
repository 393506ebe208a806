"""Configuration files as models."""

from pathlib import Path

import pytest

from parley.edge.chat.teams import load_teams
from parley.runtime.errors import ConfigurationError

_REVIEW = """
agents:
  - {id: ann, role: security}
  - {id: bob, role: architect}
judge: {role: generalist}
debate: {format: arena, max_cost: 0.5, interactive_clarifications: true}
"""


def write(folder: Path, **files: str) -> Path:
    for name, text in files.items():
        (folder / f"{name}.yaml").write_text(text, encoding="utf-8")
    return folder


def test_each_file_is_a_model_by_its_name_with_all_that_it_says(tmp_path: Path) -> None:
    write(tmp_path, review=_REVIEW, plain="debate: {rounds: 2}\n")
    (tmp_path / "notes.txt").write_text("not a team", encoding="utf-8")
    plain, review = load_teams(tmp_path)
    assert (plain.name, plain.spec.format, plain.spec.panel.rounds) == ("plain", "", 2)
    assert not plain.spec.agents
    assert not plain.spec.HasField("judge")
    assert (review.name, review.spec.format) == ("review", "arena")
    assert [each.agent.id for each in review.spec.agents] == ["ann", "bob"]
    assert review.spec.judge.agent.role == "generalist"
    assert review.spec.limits.max_cost_micros == 500_000


def test_a_team_asks_no_person_whatever_its_file_says(tmp_path: Path) -> None:
    write(tmp_path, review=_REVIEW, council="debate: {format: moderated, checkpoints: true}\n")
    council, review = load_teams(tmp_path)
    assert council.spec.moderated.checkpoints is False
    assert not review.spec.HasField("clarifications")


def test_every_file_that_cannot_be_used_is_named(tmp_path: Path) -> None:
    write(tmp_path, panel="{}", bad="debate: {rounds: none}\n", **{"My Team": "{}"})
    with pytest.raises(ConfigurationError) as caught:
        load_teams(tmp_path)
    assert len(caught.value.problems) == 3
    for name in ("panel.yaml", "bad.yaml", "My Team.yaml"):
        assert name in str(caught.value)


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"PARLEY_EDGE_TEAMS: .*nowhere: No such file"):
        load_teams(tmp_path / "nowhere")
