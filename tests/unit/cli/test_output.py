"""Answers as text, state as JSON, files that are whole or untouched."""

import json
from pathlib import Path

import pytest

from parley.cli.failures import CommandError
from parley.cli.output import debate_json, report_path, solution_text, write
from parley.v1 import agent_pb2
from parley.v1 import orchestrator_pb2 as pb


def test_the_answer_is_told_with_all_its_parts() -> None:
    solution = pb.Solution(
        description=" Use one. ",
        implementation="Begin.",
        tradeoffs=["speed"],
        recommendations=["measure"],
        unfulfilled_requirements=[pb.UnfulfilledRequirement(text="cheap", hard=True)],
        confidence=40,
    )
    assert solution_text(solution) == (
        "Use one.\n\nImplementation\nBegin.\n\nTrade-offs\n- speed\n\nRecommendations\n- measure\n\n"
        "Unfulfilled requirements\n- cheap (a must)\n\nConfidence: 40 of 100\n"
    )


def test_state_as_json_has_plain_values() -> None:
    debate = pb.Debate(id="deb-1", status=pb.DEBATE_STATUS_COMPLETED, last_sequence=9)
    debate.spec.agents.add().agent.id = "ada"
    debate.spec.limits.call.FromMilliseconds(1500)
    debate.usage.CopyFrom(agent_pb2.Usage(input_tokens=5))
    debate.created_at.FromSeconds(0)
    debate.contributions.add(kind=pb.CONTRIBUTION_KIND_CRITIQUE)
    value = json.loads(debate_json(debate))
    assert (value["status"], value["last_sequence"]) == ("completed", 9)
    assert value["spec"]["agents"][0]["agent"]["id"] == "ada"
    assert "agent_id" not in value["spec"]["agents"][0]
    assert value["spec"]["limits"]["call"] == 1.5
    assert value["created_at"] == "1970-01-01T00:00:00Z"
    assert value["usage"] == {"input_tokens": 5, "output_tokens": 0, "cost_micros": None, "attempts": 0}
    assert value["contributions"][0]["kind"] == "critique"
    assert value["solution"] is None


def test_a_file_is_written_whole_with_its_parents(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b.txt"
    write(target, "one\n")
    write(target, "two\n")
    assert target.read_text() == "two\n"
    assert list(target.parent.iterdir()) == [target]


def test_a_link_stays_a_link_and_a_device_is_written_to(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    write(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"
    write(Path("/dev/null"), "gone")


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CommandError, match=r"file/x\.txt: cannot be written: (Not a directory|File exists)"):
        write(tmp_path / "file" / "x.txt", "text")
    with pytest.raises(CommandError, match="cannot be written: Is a directory"):
        write(tmp_path, "text")


@pytest.mark.parametrize(
    ("given", "used"), [("r", "r.md"), ("r.md", "r.md"), ("r.txt", "r.txt.md"), ("R.MD", "R.MD")]
)
def test_a_report_ends_in_md(given: str, used: str) -> None:
    assert report_path(Path(given)) == Path(used)
