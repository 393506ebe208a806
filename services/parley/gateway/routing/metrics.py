"""What the gateway measures, through the OpenTelemetry meter."""

from typing import Final

from parley.gateway.routing.breaker import BreakerState
from parley.gateway.usage import RouteUsage
from parley.runtime import telemetry

_meter: Final = telemetry.meter(__name__)
# Of an open provider any model may be named.
_routes: Final = telemetry.BoundedNames()
_route_attempts: Final = _meter.create_counter(
    "parley.gateway.route_attempts",
    "{route_attempt}",
    "Route attempts by outcome: answered, cancelled, or a failure kind.",
)
_tokens: Final = _meter.create_counter("parley.gateway.tokens", "{token}", "Tokens read and written.")
_cost: Final = _meter.create_counter(
    "parley.gateway.cost", "{microdollar}", "Millionths of a US dollar, where prices are known."
)
_breakers: Final = _meter.create_gauge(
    "parley.gateway.breaker.state", "{state}", "0 closed, 1 half-open, 2 open, of a route at this replica."
)
_queue: Final = _meter.create_histogram(
    "parley.gateway.queue.duration",
    "s",
    "Wait for a slot at a route.",
    explicit_bucket_boundaries_advisory=(0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 20, 30, 60, 90),
)
_STATES: Final = {BreakerState.CLOSED: 0, BreakerState.HALF_OPEN: 1, BreakerState.OPEN: 2}


def record_route_attempt(route: str, outcome: str, used: RouteUsage, cost_micros: int | None) -> None:
    """Count a route attempt that came to an end, and took this."""
    _route_attempts.add(1, {"route": _routes.label(route), "outcome": outcome})
    if used.input_tokens:
        _tokens.add(used.input_tokens, {"route": _routes.label(route), "gen_ai.token.type": "input"})
    if used.output_tokens:
        _tokens.add(used.output_tokens, {"route": _routes.label(route), "gen_ai.token.type": "output"})
    if cost_micros:
        _cost.add(cost_micros, {"route": _routes.label(route)})


def record_breaker_state(route: str, state: BreakerState) -> None:
    """Note the state of a route's breaker."""
    _breakers.set(_STATES[state], {"route": _routes.label(route)})


def record_wait(route: str, seconds: float) -> None:
    """Note how long a call had to wait for its slot."""
    _queue.record(seconds, {"route": _routes.label(route)})
