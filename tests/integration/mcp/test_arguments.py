"""What a tool says to arguments that it does not have, over each transport."""

from tests.integration.mcp.conftest import Connect, text_of


async def test_an_argument_that_a_tool_does_not_have_is_refused_in_a_line_and_not_left_out(
    connect: Connect,
) -> None:
    async with connect() as client:
        refused = await client.call_tool("start_debate", {"question": "Which?", "effort": "quick"})
        tools = (await client.list_tools()).tools
    assert refused.is_error
    (line,) = text_of(refused).splitlines()
    assert line.startswith("start_debate has no argument effort; its arguments are question, ")
    assert not any(each.input_schema["additionalProperties"] for each in tools)
