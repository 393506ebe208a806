"""What a caller of a tool is told of wrong arguments, and of a fault that is not its own."""

from typing import Any

import pytest
from mcp.server.mcpserver.exceptions import ToolError
from pydantic import TypeAdapter

from parley.mcp.strict_tool import StrictTool


async def refusal(tool: Any, arguments: dict[str, Any]) -> str:
    """What a call that fails is told."""
    context: Any = None  # these tools take none
    with pytest.raises(ToolError) as raised:
        await StrictTool.from_function(tool).run(arguments, context)
    return str(raised.value)


async def test_wrong_arguments_are_told_in_one_line_however_many_they_are() -> None:
    def add(numbers: list[int], names: dict[str, int]) -> int:
        return sum(numbers) + sum(names.values())

    assert (await refusal(add, {"numbers": ["a"], "names": {}})).startswith("numbers.0: Input should be ")
    line = await refusal(add, {"numbers": ["a"] * 1000, "names": {"a\nb": "c"}})
    assert len(line) <= 300
    (said,) = (await refusal(add, {"numbers": [], "names": {"a\nb": "c"}})).splitlines()
    assert said.startswith("names.a b: ")


async def test_a_fault_in_a_tool_is_not_told_as_a_wrong_argument() -> None:
    def count(text: str) -> int:
        return TypeAdapter(int).validate_python(text)

    assert await refusal(count, {"text": "a"}) == "Error executing tool count"
