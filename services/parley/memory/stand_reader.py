"""Whether two stands are the same answer, from the convergence service: the same means as for the agreement of a round."""

from typing import Final

import grpc

from parley.memory.embedding import map_convergence_errors
from parley.v1 import convergence_pb2 as pb
from parley.v1.convergence_pb2_grpc import ConvergenceServiceStub

MAX_CHARACTERS: Final = 2_000
"""The longest stand that the convergence service reads."""
_AGENTS: Final = ("earlier", "later")


class StandReader:
    """Reads two stands together."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub = ConvergenceServiceStub(channel)

    async def read(self, question: str, one: str, other: str) -> bool | None:
        """Return whether two stands are the same answer to a question; None if it cannot be told.

        A stand has at most 2,000 characters. Raise ParleyError: UNAVAILABLE `CONVERGENCE_UNAVAILABLE`, or what the service answered.
        """
        request = pb.GroupPositionsRequest(
            question=question,
            positions=[
                pb.AgentPosition(agent_id=agent, position=text)
                for agent, text in zip(_AGENTS, (one, other), strict=True)
            ],
        )
        with map_convergence_errors():
            found = await self._stub.GroupPositions(request)
        return None if found.unsure else not found.contradictions
