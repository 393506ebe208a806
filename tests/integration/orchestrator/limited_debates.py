"""Debates with limits, and how these end them."""

from typing import Any

from parley.orchestrator.log.envelope import Envelope
from parley.v1.debate_pb2 import DebateFailure
from parley.v1.event_pb2 import Concluded, DebateCreated, DebateFailed
from tests.support.orchestration import make_debate, make_limits

__all__ = ["concluded", "failure", "limited"]


def limited(count: int = 3, rounds: int = 1, **limits: Any) -> DebateCreated:
    return make_debate(count, rounds, limits=make_limits(**limits))


def concluded(events: list[Envelope]) -> Concluded:
    return next(event.payload for event in events if isinstance(event.payload, Concluded))


def failure(events: list[Envelope]) -> DebateFailure:
    (failed,) = [event.payload.failure for event in events if isinstance(event.payload, DebateFailed)]
    return failed
