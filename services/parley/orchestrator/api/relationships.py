"""The RPC about how agents get along: protobuf in and out."""

from parley.orchestrator.peers.for_clients import ClientRatings
from parley.v1 import orchestrator_pb2, orchestrator_pb2_grpc, ratings_pb2


class RelationshipServicer(orchestrator_pb2_grpc.OrchestratorServiceServicer):
    """Answers for the relationships of the caller's agents."""

    __slots__ = ()

    ratings: ClientRatings

    async def ListAgentRelationships(  # noqa: N802
        self, request: orchestrator_pb2.ListAgentRelationshipsRequest, _context: object
    ) -> orchestrator_pb2.ListAgentRelationshipsResponse:
        """Return a page of an agent's relationships."""
        page = await self.ratings.list_relationships(
            ratings_pb2.ListRelationshipsRequest(
                agent_id=request.agent_id, page_size=request.page_size, page_token=request.page_token
            )
        )
        return orchestrator_pb2.ListAgentRelationshipsResponse(
            relationships=page.relationships, next_page_token=page.next_page_token
        )
