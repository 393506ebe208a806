"""What a tool says to arguments that it does not have, over each transport."""

import pytest

from parley.v1.panel_pb2 import EFFORT_QUICK
from tests.integration.mcp.conftest import Connect, find_debate, structured, text_of
from tests.support.orchestration import Orchestrator


async def test_an_argument_that_a_tool_does_not_have_is_refused_in_a_line_and_not_left_out(
    connect: Connect,
) -> None:
    async with connect() as client:
        refused = await client.call_tool("start_debate", {"question": "Which?", "rounds": 1})
        tools = (await client.list_tools()).tools
    assert refused.is_error
    (line,) = text_of(refused).splitlines()
    assert line.startswith("start_debate has no argument rounds; its arguments are question, ")
    assert not any(each.input_schema["additionalProperties"] for each in tools)


@pytest.mark.parametrize("tool", ["debate", "start_debate"])
async def test_a_quick_debate_can_be_asked_for(
    tool: str, connect: Connect, orchestrator: Orchestrator
) -> None:
    async with connect() as client:
        structured(await client.call_tool(tool, {"question": "Which?", "effort": "quick"}))
    debate = await orchestrator.get(await find_debate(orchestrator))
    assert debate.spec.panel.effort == EFFORT_QUICK


async def test_an_effort_in_another_format_is_refused_before_a_debate_begins(connect: Connect) -> None:
    async with connect() as client:
        wrong = {"question": "Which?", "format": "arena", "effort": "quick"}
        refused = await client.call_tool("debate", wrong)
        listed = structured(await client.call_tool("list_debates", {}))
    assert text_of(refused).endswith(": effort is for the format panel alone: leave one of them out")
    assert listed["debates"] == []
