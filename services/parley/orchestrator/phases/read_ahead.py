"""Positions of a round that are read before its agreement is assessed, as they come, so that less is left to wait for then."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from functools import partial

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.peers.services import truncate_text
from parley.v1.convergence_pb2 import AgentPosition, AssessRequest

PreparePositions = Callable[[Sequence[Contribution]], None]
"""Takes those of a round's stands that are known to stay as they are."""


@asynccontextmanager
async def prepare_assessment(
    debate: Debate, step: str, before: Sequence[Contribution]
) -> AsyncIterator[PreparePositions]:
    """Have positions that are passed in the block read, for the `step` in it that assesses them against those of `before`.

    The convergence service keeps what it has read, and answers from it later. So nothing follows from reading ahead, nothing
    of it is recorded, and what is left of it at the end of the block is dropped.
    """
    begun: list[asyncio.Task[None]] = []
    async with asyncio.TaskGroup() as tasks:

        def prepare(work: Sequence[Contribution]) -> None:
            request = AssessRequest(
                question=truncate_text(debate.spec.question),
                positions=_positions(work),
                previous=_positions(before),
            )
            if len(request.positions) > 1:
                read = partial(debate.services.convergence.assess_ahead, request)
                begun.append(tasks.create_task(debate.call_ahead(step, read)))

        try:
            yield prepare
        finally:
            for each in begun:
                each.cancel()


def _positions(work: Sequence[Contribution]) -> list[AgentPosition]:
    return [AgentPosition(agent_id=each.agent, position=each.position) for each in work if each.position]
