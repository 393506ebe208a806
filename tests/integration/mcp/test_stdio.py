"""`parley mcp` over stdio, as a client of the SDK meets it."""

from pathlib import Path

import pytest

from parley.v1 import debate_pb2
from tests.integration.mcp.conftest import Connect, text_of
from tests.support.orchestration import Orchestrator
from tests.support.scripted_gateway import ScriptedGateway


@pytest.mark.parametrize("mode", ["legacy", "auto"])
async def test_a_debate_is_followed_to_its_answer_with_progress_all_the_way(
    stdio: Connect, orchestrator: Orchestrator, mode: str
) -> None:
    seen: list[tuple[float, str]] = []

    async def note(progress: float, total: float | None, message: str | None) -> None:
        assert total is None
        seen.append((progress, message or ""))

    async with stdio(mode=mode) as client:
        result = await client.call_tool(
            "debate", {"question": "Is water wet?", "format": "panel"}, progress_callback=note
        )
        found = result.structured_content or {}
    assert not result.is_error, text_of(result)
    debate = await orchestrator.get(found["debate_id"])
    assert debate.status == debate_pb2.DEBATE_STATUS_COMPLETED
    assert found["status"] == "completed"
    assert "The answer." in found["answer"]
    assert 0 < found["cost"]["calls"] <= debate.calls  # the analysis follows the answer
    assert found["report"] == f"parley://debates/{debate.id}/report"
    numbers = [number for number, _ in seen]
    assert numbers == sorted(set(numbers))
    texts = [text for _, text in seen]
    assert texts[0] == f"debate {debate.id}"
    assert any(text.startswith("round 1/") for text in texts)
    assert any("critique" in text for text in texts)
    assert texts[-1] == "concluded"


async def test_a_debate_that_was_started_is_found_again_by_another_client(
    stdio: Connect, orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    hold = gateway.hold("round/1/propose/*")
    async with stdio() as client:
        started = await client.call_tool("start_debate", {"question": "Is water wet?"})
        debate = (started.structured_content or {})["debate_id"]
        await hold.reached.wait()
        running = await client.call_tool("get_debate", {"debate_id": debate})
        assert (running.structured_content or {})["status"] == "running"
    hold.release()
    await orchestrator.status(debate, debate_pb2.DEBATE_STATUS_COMPLETED)
    async with stdio() as client:
        ended = await client.call_tool("get_debate", {"debate_id": debate})
        listed = await client.call_tool("list_debates", {"status": "completed"})
    assert "The answer." in (ended.structured_content or {})["answer"]
    (line,) = (listed.structured_content or {})["debates"]
    assert (line["debate_id"], line["status"], line["question"]) == (debate, "completed", "Is water wet?")


async def test_what_is_wrong_is_said_in_a_line_for_people(stdio: Connect) -> None:
    async with stdio() as client:
        unknown = await client.call_tool("get_debate", {"debate_id": "deb-20261125-101112-aaaaaaaa"})
        nobody = await client.call_tool("debate", {"question": "Which?", "agents": ["nobody"]})
        empty = await client.call_tool("debate", {"question": ""})
    assert unknown.is_error
    assert "deb-20261125-101112-aaaaaaaa" in text_of(unknown)
    assert nobody.is_error
    assert "nobody" in text_of(nobody)
    assert empty.is_error
    assert text_of(empty) == "question: String should have at least 1 character"
    for each in (unknown, nobody, empty):
        assert len(text_of(each).splitlines()) == 1


async def test_nothing_is_said_on_stderr_while_all_is_well(stdio: Connect, tmp_path: Path) -> None:
    async with stdio(new_python=True) as client:
        await client.call_tool("list_debates", {})
    assert (tmp_path / "stderr.txt").read_text() == ""
