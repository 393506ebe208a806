"""Stops calls of agents, and counts what each run of a call had used once."""

import asyncio

from parley.orchestrator.log.journal import Journal
from parley.orchestrator.peers.agents import Agents, Call, CancelResult
from parley.v1.event_pb2 import StoppedCall


async def stop_call(journal: Journal, agents: Agents, step: str, attempt: int) -> CancelResult:
    """Stop the call of a step's attempt. A run that a pause stopped and counted is returned as one that used nothing."""
    stopped = await agents.cancel(Call(journal.tenant, journal.debate, step, attempt))
    is_counted = stopped.run in journal.recorded.stopped_runs
    return CancelResult(was_running=False) if is_counted else stopped


async def stop_calls(journal: Journal, agents: Agents, *, for_good: bool = False) -> list[StoppedCall]:
    """Stop all calls of a debate that have started and have no outcome. Return those whose usage counts, by step.

    `for_good`: they are not made again. Else the usage of those that were just answered counts once their answers are read.
    """
    recorded = journal.recorded
    unfinished = sorted(
        (step, attempt)
        for step, attempt in recorded.steps_without_outcome()
        if recorded.started[step, attempt].work.agent_id
    )
    async with asyncio.TaskGroup() as tasks:
        stopping = [tasks.create_task(stop_call(journal, agents, *each)) for each in unfinished]
    results = [(*call, task.result()) for call, task in zip(unfinished, stopping, strict=True)]
    return [
        StoppedCall(step=step, attempt=attempt, run=each.run, usage=each.usage)
        for step, attempt, each in results
        if each.counts and (for_good or not each.is_answered)
    ]
