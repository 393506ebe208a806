"""Who answers where nobody said who is to, in one line."""

from collections.abc import Iterable, Iterator

from parley.v1.debate_pb2 import DebateSpec
from parley.v1.gateway_pb2 import FoundServer, ListRoutesResponse

__all__ = ["models_line"]


def models_line(spec: DebateSpec, listed: ListRoutesResponse, *, own: bool) -> str | None:
    """Return what is said of the models that answer; None where somebody chose them.

    `own` says whether the keys that count are those set here.
    """
    used = set(_routes(spec, listed))
    small = [route.model for route in listed.routes if route.demonstration and route.name in used]
    if small:
        unset = "No key and no base URL is set" if own else "The Parley that runs was started without a key"
        return (
            f"{unset}: the small model {small[0]} answers on this machine. This is a demonstration: a debate takes it about a "
            "minute, and what it says is often nonsense."
        )
    found = [each for each in listed.found_servers if any(_is_route_of(route, each) for route in used)]
    return _found_servers_line(found, listed.default_routes) if found else None


def _routes(spec: DebateSpec, listed: ListRoutesResponse) -> Iterator[str]:
    named = [each.agent for each in spec.agents] + ([spec.judge.agent] if spec.HasField("judge") else [])
    for agent in named:
        yield from agent.routes or listed.default_routes
    if not spec.agents or not spec.HasField("judge"):
        yield from listed.default_routes


def _is_route_of(route: str, server: FoundServer) -> bool:
    return route.partition("/")[0] == server.provider


def _found_servers_line(found: Iterable[FoundServer], default_routes: Iterable[str]) -> str:
    servers = list(found)
    where = " and ".join(f"{each.title} ({each.base_url})" for each in servers)
    count = sum(len(each.models) for each in servers)
    others = f"; PARLEY_MODEL=… takes another of the {count} models there" if count > 1 else ""
    return (
        f"No key and no base URL is set, and this machine runs {where}: {', then '.join(default_routes)} answers{others}; "
        "PARLEY_LOCAL_SERVERS=off leaves it alone."
    )
