"""A gateway and ratings that have little to list, to stand beside a scripted orchestrator."""

from typing import Any

import grpc

from parley.v1 import gateway_pb2_grpc, ratings_pb2_grpc
from parley.v1.agent_pb2 import Agent
from parley.v1.gateway_pb2 import ListAgentsResponse, ListRoutesResponse, RouteStatus
from parley.v1.ratings_pb2 import ListRatingsResponse, Rating


class _Gateway:
    def ListAgents(self, _request: Any, _context: Any) -> ListAgentsResponse:  # noqa: N802
        return ListAgentsResponse(agents=[Agent(id="ada", role="architect")], default_team=["ada"])

    def ListRoutes(self, _request: Any, _context: Any) -> ListRoutesResponse:  # noqa: N802
        return ListRoutesResponse(
            routes=[RouteStatus(name="r/m", context_tokens=8192), RouteStatus(name="r/n")]
        )

    def __getattr__(self, name: str) -> Any:
        """Return None for what is not served."""
        return None


class _Ratings:
    def ListRatings(self, _request: Any, _context: Any) -> ListRatingsResponse:  # noqa: N802
        return ListRatingsResponse(ratings=[Rating(agent_id="ada", elo=1510, matches=3)])

    def __getattr__(self, name: str) -> Any:
        """Return None for what is not served."""
        return None


def add_listings(server: grpc.Server) -> None:
    """Serve them on this server, from its threads."""
    # The generated types know only asynchronous servicers; what they generate serves threads as well.
    gateway: Any = gateway_pb2_grpc.add_GatewayServiceServicer_to_server
    ratings: Any = ratings_pb2_grpc.add_RatingsServiceServicer_to_server
    gateway(_Gateway(), server)
    ratings(_Ratings(), server)
