"""Whether stands are the same answer, from the convergence service: the same means as for the agreement of a round."""

from collections.abc import Sequence
from typing import Final

import grpc

from parley.memory.embedding import map_convergence_errors
from parley.v1 import convergence_pb2 as pb
from parley.v1.convergence_pb2_grpc import ConvergenceServiceStub

MAX_CHARACTERS: Final = 2_000
"""The longest stand that the convergence service reads."""
_AT_ONCE: Final = 512
"""Pairs of a request."""


class StandReader:
    """Reads two stands together."""

    def __init__(self, channel: grpc.aio.Channel) -> None:
        self._stub = ConvergenceServiceStub(channel)

    async def read(self, pairs: Sequence[tuple[str, str]]) -> list[bool | None]:
        """Return whether each two stands are the same answer; None if it cannot be told. No pair takes no call.

        A stand has at most 2,000 characters. Raise ParleyError: UNAVAILABLE `CONVERGENCE_UNAVAILABLE`, or what the service answered.
        """
        found: list[bool | None] = []
        for start in range(0, len(pairs), _AT_ONCE):
            request = pb.ComparePositionsRequest(
                pairs=[
                    pb.PositionPair(position=one, other_position=other)
                    for one, other in pairs[start : start + _AT_ONCE]
                ]
            )
            with map_convergence_errors():
                compared = await self._stub.ComparePositions(request)
            found += [each.same if each.HasField("same") else None for each in compared.pairs]
        return found
