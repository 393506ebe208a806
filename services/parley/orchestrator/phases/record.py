"""What follows from an answer: the match is rated and the debate remembered. The answer never waits for it."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

from google.protobuf.message import Message

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.tasks import Activity
from parley.orchestrator.model.times import timestamp
from parley.orchestrator.peers.services import truncate_conclusion
from parley.orchestrator.phases.match import match_of
from parley.v1.debate_pb2 import Outcome
from parley.v1.event_pb2 import StepFailed, Warned
from parley.v1.memory_pb2 import RecordDebateRequest
from parley.v1.ratings_pb2 import RecordMatchRequest

__all__ = ["MEMORY", "RATINGS", "record"]

RATINGS = Activity("ratings", "recording the ratings")
MEMORY = Activity("memory", "remembering the debate")


async def record(debate: Debate, outcome: Outcome, concluded_at: datetime) -> None:
    """Record the outcome with ratings and memory, each once; a service that is away is waited for.

    A debate in which fewer than two agents were scored is no match. A demonstration is neither rated nor remembered.
    """
    spec, services = debate.spec, debate.services
    if spec.demonstration:
        return
    async with asyncio.TaskGroup() as tasks:
        if len(outcome.scores) > 1:
            match = match_of(debate.id, spec.domain, outcome, debate.replies)
            # The rest follows from these and from the log; debates that began before it was told end with the same step.
            asked = RecordMatchRequest(debate_id=debate.id, domain=spec.domain, results=match.results)
            tasks.create_task(_recorded(debate, RATINGS, asked, lambda: services.ratings.record_match(match)))
        past = RecordDebateRequest(
            debate_id=debate.id,
            question=spec.question,
            conclusion=truncate_conclusion(outcome.description),
            domain=spec.domain,
            concluded_at=timestamp(concluded_at),
        )
        tasks.create_task(_recorded(debate, MEMORY, past, lambda: services.memory.record_debate(past)))


async def _recorded(
    debate: Debate, activity: Activity, request: Message, call: Callable[[], Awaitable[Message]]
) -> None:
    key = f"after/{activity.name}"
    outcome = await debate.call_service(key, activity.create_work(), request, call)
    if isinstance(outcome, StepFailed):
        message = f"the outcome was not recorded: {outcome.message}"
        debate.record_event(f"{key}/warning", Warned(message=message))
