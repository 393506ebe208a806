"""The warnings about unknown context sizes."""

from collections.abc import Mapping

from parley.orchestrator.model.tokens import ASSUMED_CONTEXT_TOKENS
from parley.orchestrator.peers.roster import KnownRoute, Roster, routes_of
from parley.v1.debate_pb2 import DebateSpec

__all__ = ["context_warnings"]


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
    return (f"{what}; set its context_tokens",)
