"""The observer: rhetorical patterns and fallacies of a contribution, marked for those who follow it."""

import asyncio

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.rhetoric import fallacies_in, patterns_in
from parley.v1.debate_pb2 import Work
from parley.v1.event_pb2 import ContributionObserved
from parley.v1.rhetoric_pb2 import RhetoricalMark


async def observe(debate: Debate, made: Contribution) -> None:
    """Record what is marked in a contribution. It follows from the text alone, and is found off the event loop."""
    patterns, fallacies = await asyncio.to_thread(_find_marks, made.text)
    key = f"round/{made.round}/observed/{made.activity}/{made.agent}"
    observed = ContributionObserved(
        work=Work(activity=made.activity, agent_id=made.agent, target_agent_id=made.target, round=made.round),
        patterns=patterns,
        fallacies=fallacies,
    )
    debate.record_event(f"{key}/of/{made.target}" if made.target else key, observed)


def _find_marks(text: str) -> tuple[list[RhetoricalMark], list[RhetoricalMark]]:
    return patterns_in(text), fallacies_in(text)
