"""What follows from an answer, as steps of the same debate within limits of its own."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.engine.execution import leaf_exceptions
from parley.orchestrator.log.envelope import Draft
from parley.orchestrator.log.journal import Journal
from parley.orchestrator.model.errors import ReplayError
from parley.orchestrator.model.spec import Limits
from parley.runtime.logs import get_logger
from parley.v1.debate_pb2 import Outcome
from parley.v1.event_pb2 import Warned

__all__ = ["FollowUp", "run_follow_up"]

_logger = get_logger(__name__)

FollowUp = Callable[[Debate, Outcome, datetime], Awaitable[None]]
"""What follows from an answer: it is told the outcome, and when the debate was concluded."""


async def run_follow_up(
    debate: Debate, journal: Journal, outcome: Outcome, follow_up: FollowUp, limits: Limits
) -> None:
    """Do what follows from the answer that the journal holds."""
    at = journal.recorded.concluded_at
    assert at is not None
    debate.start_follow_up(limits)
    try:
        async with asyncio.TaskGroup() as tasks:
            debate.limiter.use_task_group(tasks)
            timing = tasks.create_task(debate.limiter.enforce_total_limit())
            await follow_up(debate, outcome, at)
            timing.cancel()
    except ExceptionGroup as group:
        mismatches, others = group.split(ReplayError)
        if others is not None or mismatches is None:
            raise
        # Another version had begun it otherwise; the answer stands, and the debate is not to stay open for ever.
        mismatch = str(next(leaf_exceptions(mismatches)))
        _logger.error("what follows the answer was left undone", error=mismatch)  # noqa: TRY400 - it says it all
        warning = f"what follows the answer was left undone: {mismatch}"
        await journal.append(Draft("after/mismatch", Warned(message=warning)))
