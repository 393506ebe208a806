"""What follows from an answer: the match is rated and the debate remembered. The answer never waits for it."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from functools import partial

from parley.orchestrator.debate import Debate
from parley.orchestrator.events import Concluded, Json, Solution, StepFailed, Warned, Work, to_json

__all__ = ["record"]


async def record(debate: Debate, concluded: Concluded, at: datetime) -> None:
    """Record the outcome with ratings and memory, each once; a service that is away is waited for.

    A debate in which fewer than two agents were scored is no match.
    """
    solution, spec = concluded.solution, debate.spec
    if solution is None:
        return
    services = debate.services
    async with asyncio.TaskGroup() as tasks:
        if len(solution.scores) > 1:
            rate = partial(services.ratings.record, debate.id, spec, solution)
            tasks.create_task(_recorded(debate, "ratings", solution, rate))
        remember = partial(services.memory.record, debate.id, spec, solution, at)
        tasks.create_task(_recorded(debate, "memory", solution, remember))


async def _recorded(
    debate: Debate, service: str, solution: Solution, call: Callable[[], Awaitable[Json]]
) -> None:
    key = f"after/{service}"
    outcome = await debate.step(key, Work(service), to_json(solution), call)
    if isinstance(outcome, StepFailed):
        debate.note(f"{key}/warning", Warned(f"the outcome was not recorded: {outcome.message}"))
