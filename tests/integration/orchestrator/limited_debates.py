"""Debates with limits, and how these end them."""

from typing import Any

from parley.orchestrator.log.envelope import Envelope
from parley.v1.debate_pb2 import DebateFailure
from parley.v1.event_pb2 import DebateCreated, DebateFailed
from tests.support.orchestration import make_debate, make_limits


def make_limited_debate(count: int = 3, rounds: int = 1, **limits: Any) -> DebateCreated:
    return make_debate(count, rounds, limits=make_limits(**limits))


def failure(events: list[Envelope]) -> DebateFailure:
    (failed,) = [event.payload.failure for event in events if isinstance(event.payload, DebateFailed)]
    return failed
