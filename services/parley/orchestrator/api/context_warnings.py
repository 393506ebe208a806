"""What a client is told of contexts that nobody knows before the first call."""

from collections.abc import Mapping

from parley.orchestrator.model.tokens import ASSUMED_CONTEXT_TOKENS
from parley.orchestrator.peers.roster import KnownRoute, Roster, routes_of
from parley.v1.debate_pb2 import DebateSpec

__all__ = ["context_warnings"]


def context_warnings(spec: DebateSpec, known: Roster, routes: Mapping[str, KnownRoute]) -> tuple[str, ...]:
    """Name the routes whose context nothing tells, and say what is assumed.

    `routes` is empty where the gateway could not be asked.
    """
    unknown = [name for name in routes_of(spec, known) if name in routes and not routes[name].context_tokens]
    if not unknown:
        return ()
    told = f"nothing tells the context of {', '.join(unknown)}: {ASSUMED_CONTEXT_TOKENS:,} tokens are assumed"
    return (f"{told}; give it its context_tokens",)
