"""Panels that are held to their end."""

from collections.abc import Sequence

from parley.orchestrator.log.envelope import Envelope
from parley.v1.debate_pb2 import Outcome
from parley.v1.event_pb2 import (
    Concluded,
    DebateCreated,
)
from tests.support.debate_logs import check_log
from tests.support.orchestration import Backstage, Replica


async def hold_debate(stage: Backstage, replica: Replica, given: DebateCreated) -> Outcome:
    """Hold a debate to its end and return its answer."""
    events = await stage.comes_to(await replica.create(given), "COMPLETED")
    check_log(events)
    return find_outcome(events)


def find_outcome(events: Sequence[Envelope]) -> Outcome:
    (concluded,) = [event.payload for event in events if isinstance(event.payload, Concluded)]
    assert concluded.HasField("outcome")
    return concluded.outcome
