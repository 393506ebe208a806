"""An answer, as it is told and stored."""

from dataclasses import dataclass

from parley.gateway.prompt.tools import ToolUse

__all__ = ["Answer"]


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a route, and the tools that were used for it, in order."""

    text: str
    route: str
    model: str
    truncated: bool
    characters_left_out: int
    reasks: int
    tool_calls: tuple[ToolUse, ...] = ()
