"""The agents and routes that the gateway knows, as a new debate is checked against them."""

from collections.abc import Mapping
from dataclasses import dataclass

import grpc

from parley.orchestrator.agent_translation import agent_from_proto
from parley.orchestrator.spec import AgentSpec
from parley.runtime.errors import is_transport, unavailable
from parley.v1 import gateway_pb2, gateway_pb2_grpc

__all__ = ["Roster", "ask_roster"]

_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class Roster:
    """What the gateway knows.

    Attributes:
        open_providers: Providers of which any model can be named as a route.
    """

    agents: Mapping[str, AgentSpec]
    default_team: tuple[str, ...]
    default_judge: str
    routes: frozenset[str]
    open_providers: frozenset[str]

    def has_route(self, name: str) -> bool:
        """Whether a route of this name serves."""
        provider, _, model = name.partition("/")
        return name in self.routes or (provider in self.open_providers and bool(model))

    def routes_in_words(self) -> str:
        """Return what may be named, for a person."""
        names = [*sorted(self.routes), *(f"{each}/MODEL" for each in sorted(self.open_providers))]
        return f"known routes: {', '.join(names)}"


async def ask_roster(channel: grpc.aio.Channel) -> Roster:
    """Return what the gateway knows now.

    Raises:
        ParleyError: UNAVAILABLE `GATEWAY_UNAVAILABLE`.
    """
    gateway = gateway_pb2_grpc.GatewayServiceStub(channel)
    try:
        agents = await gateway.ListAgents(gateway_pb2.ListAgentsRequest(), timeout=_SECONDS)
        routes = await gateway.ListRoutes(gateway_pb2.ListRoutesRequest(), timeout=_SECONDS)
    except grpc.aio.AioRpcError as error:
        if is_transport(error) or error.code() == grpc.StatusCode.DEADLINE_EXCEEDED:
            message = "the gateway is away; try again"
            raise unavailable("GATEWAY_UNAVAILABLE", message, retry_after=1.0) from error
        raise
    return Roster(
        agents={each.id: agent_from_proto(each) for each in agents.agents},
        default_team=tuple(agents.default_team),
        default_judge=agents.default_judge,
        routes=frozenset(each.name for each in routes.routes),
        open_providers=frozenset(routes.open_providers),
    )
