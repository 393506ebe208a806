"""A call as it is asked, as it goes, and as it ends."""

from dataclasses import dataclass, field
from typing import Final, Protocol

from parley.gateway.endpoint import Spent, TraceLabels
from parley.gateway.fitting import PromptPart
from parley.gateway.routes import LiveRoute
from parley.gateway.structured import AnswerShape
from parley.gateway.tools import DEFAULT_CALL_LIMIT, ToolUse

__all__ = ["Answer", "Call", "Progress", "Tally", "Timeouts", "Usage"]

_NO_LABELS: Final = TraceLabels()


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long a try at a route may take: seconds at most, and shares of what is left of the call's time.

    `first_pause_seconds` is the longest first pause before the routes are gone round again. `hedge_seconds` is how long
    a call stays silent before its next route is asked beside the first; None: never.
    """

    attempt_seconds: float = 60.0
    first_pause_seconds: float = 0.5
    share_before_another_route: float = 0.5
    share_alone: float = 0.75
    hedge_seconds: float | None = None


@dataclass(frozen=True, slots=True)
class Call:
    """One question of an agent. `seconds` is the time for all of it; `tools` are names of tools, in any order."""

    routes: tuple[LiveRoute, ...]
    prompt: tuple[PromptPart, ...]
    seconds: float
    shape: AnswerShape | None = None
    max_output_tokens: int = 0
    temperature: float | None = None
    labels: TraceLabels = _NO_LABELS
    tools: tuple[str, ...] = ()
    tool_call_limit: int = DEFAULT_CALL_LIMIT


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


class Progress(Protocol):
    """Who hears how a call is doing."""

    def attempt_started(self, route: str) -> None:
        """A try at a route begins; text of earlier ones is void."""
        ...

    def text(self, piece: str) -> None:
        """More text of the present try."""
        ...


@dataclass(frozen=True, slots=True)
class Usage:
    """What a call has used. `cost_micros` is in millionths of a US dollar, None where a price is unknown."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_micros: int | None = 0
    queued_seconds: float = 0.0


@dataclass(slots=True)
class Tally:
    """What a call has used so far, route by route, and how long it waited in queues."""

    by_route: dict[str, tuple[LiveRoute, Spent]] = field(default_factory=dict)
    queued_seconds: float = 0.0
    reasks: int = 0

    def of(self, live: LiveRoute) -> Spent:
        """The account of one route."""
        return self.by_route.setdefault(live.route.name, (live, Spent()))[1]

    def usage(self) -> Usage:
        """The sum over all routes."""
        spent = [each for _, each in self.by_route.values()]
        costs = [live.route.cost_micros(each) for live, each in self.by_route.values()]
        known = [cost for cost in costs if cost is not None]
        return Usage(
            sum(each.requests for each in spent),
            sum(each.input_tokens for each in spent),
            sum(each.output_tokens for each in spent),
            sum(known) if len(known) == len(costs) else None,
            self.queued_seconds,
        )
