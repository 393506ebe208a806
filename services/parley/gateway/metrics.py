"""What the gateway measures, through the OpenTelemetry meter."""

from typing import Final

from parley.gateway.breaker import BreakerState
from parley.gateway.endpoint import Spent
from parley.runtime import telemetry

__all__ = ["attempt_ended", "breaker_state", "queued"]

_meter: Final = telemetry.meter(__name__)
_attempts: Final = _meter.create_counter(
    "parley.gateway.attempts",
    "{attempt}",
    "Tries at a route by outcome: answered, or a row of the error table.",
)
_tokens: Final = _meter.create_counter("parley.gateway.tokens", "{token}", "Tokens read and written.")
_cost: Final = _meter.create_counter(
    "parley.gateway.cost", "u$", "Millionths of a US dollar, where prices are known."
)
_breakers: Final = _meter.create_gauge(
    "parley.gateway.breaker.state", "1", "0 closed, 1 half-open, 2 open, of a route at this replica."
)
_queue: Final = _meter.create_histogram("parley.gateway.queue.duration", "s", "Wait for a place at a route.")
_STATES: Final = {BreakerState.CLOSED: 0, BreakerState.HALF_OPEN: 1, BreakerState.OPEN: 2}


def attempt_ended(route: str, outcome: str, spent: Spent, cost_micros: int | None) -> None:
    """A try at a route came to an end, and took this."""
    _attempts.add(1, {"route": route, "outcome": outcome})
    if spent.input_tokens:
        _tokens.add(spent.input_tokens, {"route": route, "gen_ai.token.type": "input"})
    if spent.output_tokens:
        _tokens.add(spent.output_tokens, {"route": route, "gen_ai.token.type": "output"})
    if cost_micros:
        _cost.add(cost_micros, {"route": route})


def breaker_state(route: str, state: BreakerState) -> None:
    """The state of a route's breaker."""
    _breakers.set(_STATES[state], {"route": route})


def queued(route: str, seconds: float) -> None:
    """A call had to wait this long for its place."""
    _queue.record(seconds, {"route": route})
