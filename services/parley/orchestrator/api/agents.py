"""The RPCs about agents, how they have done and how they get along: protobuf in and out."""

from collections.abc import Collection, Iterator
from itertools import chain

from parley.orchestrator.peers.for_clients import SECONDS, pass_on_errors
from parley.orchestrator.peers.roster import MAX_NAMES
from parley.runtime.identity.identity import current_identity
from parley.runtime.identity.roles import allows
from parley.v1 import orchestrator_pb2, orchestrator_pb2_grpc, ratings_pb2
from parley.v1.access_pb2 import ACCESS_ROLE_SERVICE
from parley.v1.agent_pb2 import Agent, PromptText
from parley.v1.gateway_pb2 import ListAgentsRequest, ListRoutesRequest, ListRoutesResponse, RouteStatus
from parley.v1.gateway_pb2_grpc import GatewayServiceStub
from parley.v1.ratings_pb2_grpc import RatingsServiceStub


class AgentServicer(orchestrator_pb2_grpc.OrchestratorServiceServicer):
    """Answers for the agents that debates can name, and for their record in the caller's tenant."""

    __slots__ = ()

    agents: GatewayServiceStub
    ratings: RatingsServiceStub

    async def ListAvailableAgents(  # noqa: N802
        self, _request: orchestrator_pb2.ListAvailableAgentsRequest, _context: object
    ) -> orchestrator_pb2.ListAvailableAgentsResponse:
        """Return the configured agents and their routes."""
        with pass_on_errors("gateway"):
            listed = await self.agents.ListAgents(ListAgentsRequest(), timeout=SECONDS)
            named = [*dict.fromkeys(chain.from_iterable(each.routes for each in listed.agents))]
            asked = ListRoutesRequest(names=named[:MAX_NAMES])
            routes = await self.agents.ListRoutes(asked, timeout=SECONDS)
        if not allows(current_identity().roles, ACCESS_ROLE_SERVICE):
            shown = [*_hide_from_clients(routes, {*named, *routes.default_routes})]
        else:
            shown = [*routes.routes]
        return orchestrator_pb2.ListAvailableAgentsResponse(
            agents=map(_without_prompts, listed.agents),
            default_team=listed.default_team,
            default_judge=listed.default_judge,
            routes=shown,
            default_routes=routes.default_routes,
            open_providers=routes.open_providers,
        )

    async def ListAgentRatings(  # noqa: N802
        self, request: ratings_pb2.ListRatingsRequest, _context: object
    ) -> ratings_pb2.ListRatingsResponse:
        """Return a page of ratings."""
        with pass_on_errors("ratings"):
            return await self.ratings.ListRatings(request, timeout=SECONDS)

    async def ListAgentMatches(  # noqa: N802
        self, request: ratings_pb2.ListMatchesRequest, _context: object
    ) -> ratings_pb2.ListMatchesResponse:
        """Return a page of matches."""
        with pass_on_errors("ratings"):
            return await self.ratings.ListMatches(request, timeout=SECONDS)

    async def GetAgentPersona(  # noqa: N802
        self, request: ratings_pb2.GetPersonaRequest, _context: object
    ) -> ratings_pb2.GetPersonaResponse:
        """Return an agent's strengths."""
        with pass_on_errors("ratings"):
            return await self.ratings.GetPersona(request, timeout=SECONDS)

    async def ListAgentRelationships(  # noqa: N802
        self, request: ratings_pb2.ListRelationshipsRequest, _context: object
    ) -> ratings_pb2.ListRelationshipsResponse:
        """Return a page of an agent's relationships."""
        with pass_on_errors("ratings"):
            return await self.ratings.ListRelationships(request, timeout=SECONDS)


def _without_prompts(agent: Agent) -> Agent:
    """Return the agent without the texts of its prompts, which together may be larger than a message."""
    bare = Agent()
    bare.CopyFrom(agent)
    if bare.HasField("own_role"):
        bare.own_role.ClearField("sections")
    for field, value in bare.ListFields():
        if field.message_type is PromptText.DESCRIPTOR:
            value.ClearField("text")
    return bare


def _hide_from_clients(routes: ListRoutesResponse, named: Collection[str]) -> Iterator[RouteStatus]:
    """Yield the routes without where they are, and what only calls of some tenant show: what failed there, how busy they are, and which models were named."""
    for each in routes.routes:
        is_open = each.provider in routes.open_providers and each.name == f"{each.provider}/{each.model}"
        if is_open and each.name not in named:
            continue
        for field in ("host", "last_failure", "in_flight", "queued"):
            each.ClearField(field)
        yield each
