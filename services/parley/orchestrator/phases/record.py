"""What follows from an answer: the match is rated and the debate remembered. The answer never waits for it."""

import asyncio
from datetime import datetime

from parley.orchestrator.debate import Debate
from parley.orchestrator.events import Concluded, Work, to_json

__all__ = ["record"]


async def record(debate: Debate, concluded: Concluded, at: datetime) -> None:
    """Record the outcome with ratings and memory, each once; a service that is away is waited for."""
    solution, spec = concluded.solution, debate.spec
    if solution is None:
        return
    request = to_json(solution)
    async with asyncio.TaskGroup() as tasks:
        if len(solution.scores) > 1:
            tasks.create_task(
                debate.step(
                    "after/ratings",
                    Work("ratings"),
                    request,
                    lambda: debate.services.ratings.record(debate.id, spec, solution),
                )
            )
        tasks.create_task(
            debate.step(
                "after/memory",
                Work("memory"),
                request,
                lambda: debate.services.memory.record(debate.id, spec, solution, at),
            )
        )
