"""A tool that refuses arguments it does not know, in a line that a model can act on."""

from typing import Any

from mcp.server.mcpserver import Context
from mcp.server.mcpserver.exceptions import ToolError, UnexpectedToolError
from mcp.server.mcpserver.tools.base import Tool
from pydantic import ValidationError

from parley.mcp.results import cut_line


class StrictTool(Tool):
    """A tool whose calls have no argument but its own.

    Otherwise a model that asks for something a debate does not offer here would get a debate without it, and pay for it.
    """

    @classmethod
    def from_function(cls, *args: Any, **kwargs: Any) -> Tool:
        """Create the tool from a function; its schema says that there are no other arguments."""
        tool = super().from_function(*args, **kwargs)
        tool.parameters["additionalProperties"] = False
        return tool

    async def run(
        self,
        arguments: dict[str, Any],
        context: Context[Any, Any],
        convert_result: bool = False,  # noqa: FBT001, FBT002
    ) -> Any:
        """Run the tool. Raise ToolError, also if an argument is unknown or not as the schema says."""
        known = self.parameters["properties"]
        if unknown := sorted(arguments.keys() - known.keys()):
            named = cut_line(", ".join(unknown))
            raise ToolError(f"{self.name} has no argument {named}; its arguments are {', '.join(known)}")
        try:
            return await super().run(arguments, context, convert_result)
        except UnexpectedToolError:
            raise  # a fault of ours, of which the caller is told no more
        except ToolError as error:
            if not isinstance(error.__cause__, ValidationError):
                raise
            raise ToolError(_describe(error.__cause__)) from None


def _describe(error: ValidationError) -> str:
    """Return `limit: Input should be greater than or equal to 1; status: …`, on one line of bounded length."""
    return cut_line("; ".join(f"{'.'.join(map(str, each['loc']))}: {each['msg']}" for each in error.errors()))
