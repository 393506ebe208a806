"""The warnings to a client about the routes of its debate, before the first call: unknown prices and context sizes."""

from collections.abc import Mapping

from parley.orchestrator.model.tokens import ASSUMED_CONTEXT_TOKENS
from parley.orchestrator.peers.roster import KnownRoute, Roster, routes_of, unknown_routes
from parley.v1.debate_pb2 import DebateSpec


def budget_warnings(spec: DebateSpec, known: Roster, routes: Mapping[str, KnownRoute]) -> tuple[str, ...]:
    """Return a warning if a budget of money cannot be kept, since the prices of some routes are unknown.

    `routes` is empty if the gateway could not be asked.
    """
    if not spec.limits.max_cost_micros:
        return ()
    priced = {name for name, route in routes.items() if route.priced}
    unpriced = [name for name in routes_of(spec, known) if routes and name not in priced]
    unpriced += unknown_routes(spec, known)
    if not unpriced:
        return ()
    what = f"the budget of money cannot be kept: the price of {', '.join(unpriced)} is unknown"
    return (f"{what}, and calls there count as free; set its input_price and output_price",)


def context_warnings(spec: DebateSpec, known: Roster, routes: Mapping[str, KnownRoute]) -> tuple[str, ...]:
    """Return a warning that names the routes with an unknown context size, and the assumed size.

    `routes` is empty if the gateway could not be asked.
    """
    unknown = [name for name in routes_of(spec, known) if name in routes and not routes[name].context_tokens]
    if not unknown:
        return ()
    what = (
        f"the context size of {', '.join(unknown)} is unknown: {ASSUMED_CONTEXT_TOKENS:,} tokens are assumed"
    )
    return (f"{what}; set its context_tokens, or PARLEY_CONTEXT_TOKENS at the gateway",)
