"""A call as it is asked, and as it goes."""

from dataclasses import dataclass
from typing import Final, Protocol

from parley.gateway.prompt.parts import PromptPart
from parley.gateway.prompt.structured_answers import AnswerShape
from parley.gateway.prompt.tools import DEFAULT_CALL_LIMIT
from parley.gateway.routing.route import LiveRoute, Route
from parley.gateway.tracing import TraceLabels

__all__ = ["Call", "Progress", "Timeouts"]

_NO_LABELS: Final = TraceLabels()


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long a route attempt may take: seconds at most, and shares of what is left of the call's time.

    `first_pause_seconds` is the longest first pause before the routes are gone round again. `hedge_seconds` is how long
    a call stays silent before its next route is asked beside the first; None: never. `call_seconds` is the time of a call that
    names none.
    """

    route_attempt_seconds: float = 60.0
    first_pause_seconds: float = 0.5
    share_before_another_route: float = 0.5
    share_alone: float = 0.75
    hedge_seconds: float | None = None
    call_seconds: float = 90.0

    @property
    def full_attempt_seconds(self) -> float:
        """What the first of several routes gets of a call with the usual time, less a tenth, since calls come to their routes a little late."""
        return 0.9 * min(self.route_attempt_seconds, self.call_seconds * self.share_before_another_route)


@dataclass(frozen=True, slots=True)
class Call:
    """One question of an agent.

    `seconds` is the time for all of it; `tools` are names of tools, in any order; `answer_start` is how the answer begins at
    routes that can go on from there. `affordable_output_tokens` bounds an answer beside `max_output_tokens`; 0: not at all.
    """

    routes: tuple[LiveRoute, ...]
    prompt: tuple[PromptPart, ...]
    seconds: float
    shape: AnswerShape | None = None
    max_output_tokens: int = 0
    temperature: float | None = None
    labels: TraceLabels = _NO_LABELS
    tools: tuple[str, ...] = ()
    tool_call_limit: int = DEFAULT_CALL_LIMIT
    answer_start: str = ""
    affordable_output_tokens: int = 0

    def output_tokens_at(self, route: Route) -> int:
        """Return the upper bound on tokens of an answer of a route; 0: the endpoint's own."""
        wanted = self.max_output_tokens or route.max_output_tokens
        return min(wanted or self.affordable_output_tokens, self.affordable_output_tokens or wanted)


class Progress(Protocol):
    """Who hears how a call is doing."""

    def route_attempt_started(self, route: str) -> None:
        """Hear that a route attempt begins; text of earlier ones is void."""
        ...

    def alive(self) -> None:
        """Hear that the model is at work in the present route attempt: it writes, thinks or asks for a tool."""
        ...

    def text(self, piece: str) -> None:
        """Hear more text of the present route attempt."""
        ...
