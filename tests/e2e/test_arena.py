"""An arena as people hold it: the command, a whole system in its process, and a model over HTTP."""

import json
from pathlib import Path

from tests.e2e.harness import model_server as models
from tests.support.command import Command


def test_an_arena_is_held_by_the_command_and_its_answer_says_vote_ranking_and_dissent(tmp_path: Path) -> None:
    arguments = ["--agents", "architect,security,performance", "--rounds", "1", "--protocol", "socratic"]
    with models() as url:
        ended = Command(
            ["debate", "Which?", "--format", "arena", *arguments, "--topology", "ring", "--output", "x.json"],
            tmp_path,
            {"OPENAI_BASE_URL": url, "PARLEY_MODEL": "test"},
        ).end()
    assert ended.code == 0, ended.err
    state = json.loads((tmp_path / "x.json").read_text())
    assert state["spec"]["judge"]["agent"]["role"] == "judge"
    arena = state["outcome"]["arena"]
    assert len(arena["votes"][0]["ballots"]) >= 2
    assert {each["agent_id"] for each in arena["ranking"]} <= {"architect", "security", "performance"}
    assert len(arena.get("dissent", [])) + len(arena.get("consenting_agent_ids", [])) == 3
    assert "## Vote" in state["process"]
    assert "## Vote" not in state["answer"]
    watched = Command(["watch", state["id"]], tmp_path).end().out
    for line in ("phase CONTEXT_READY", "ring: ", "phase ROUND_3_REVISION", "phase VOTING"):
        assert line in watched
