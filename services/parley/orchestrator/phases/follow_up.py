"""What follows an answer, at the same time: other services get what they keep, and it is found out what the answer rests on."""

import asyncio
from datetime import datetime

from parley.orchestrator.engine.debate import Debate
from parley.v1.debate_pb2 import Outcome


async def follow_up(debate: Debate, outcome: Outcome, concluded_at: datetime) -> None:
    """Do all that follows an answer."""
    # Imported now: no debate needs it before, and a first call to a model would wait for it.
    from parley.orchestrator.phases.analysis.analyse import analyse_answer
    from parley.orchestrator.phases.record import record

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(record(debate, outcome, concluded_at))
        tasks.create_task(analyse_answer(debate, outcome))
