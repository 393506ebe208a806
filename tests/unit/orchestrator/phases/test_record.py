"""What follows from an answer, and what does not."""

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any, cast

from google.protobuf.message import Message

from parley.orchestrator.phases.record import record
from parley.v1.debate_pb2 import AgentScore, Outcome
from parley.v1.ratings_pb2 import MatchResult, RecordMatchRequest
from tests.unit.orchestrator.made_logs import SPEC

SCORED = Outcome(
    description="Yes.", scores=[AgentScore(agent_id="ada", score=7), AgentScore(agent_id="bo", score=8)]
)


class _Debate:
    """As much of a debate as a follow-up uses; `recorded` are the keys of its steps."""

    id, services, replies = "deb-1", None, ()

    def __init__(self, *, demonstration: bool) -> None:
        self.spec = replace(SPEC, demonstration=demonstration)
        self.recorded: list[str] = []
        self.asked: dict[str, Message] = {}

    async def call_service(self, key: str, _work: object, request: Message, _call: object) -> object:
        self.recorded.append(key)
        self.asked[key] = request
        return object()


async def recorded(debate: _Debate, outcome: Outcome = SCORED) -> list[str]:
    await record(cast(Any, debate), outcome, datetime(2026, 11, 22, tzinfo=UTC))
    return sorted(debate.recorded)


async def test_a_debate_is_rated_and_remembered() -> None:
    assert await recorded(_Debate(demonstration=False)) == ["after/memory", "after/ratings"]


async def test_a_debate_of_one_scored_agent_is_no_match() -> None:
    alone = Outcome(description="Yes.", scores=[AgentScore(agent_id="ada", score=7)])
    assert await recorded(_Debate(demonstration=False), alone) == ["after/memory"]


async def test_the_step_is_that_of_debates_which_told_scores_alone() -> None:
    debate = _Debate(demonstration=False)
    await recorded(debate)
    results = [MatchResult(agent_id="ada", score=7), MatchResult(agent_id="bo", score=8)]
    assert debate.asked["after/ratings"] == RecordMatchRequest(
        debate_id="deb-1", domain=SPEC.domain, results=results
    )


async def test_a_demonstration_is_neither_rated_nor_remembered() -> None:
    assert await recorded(_Debate(demonstration=True)) == []
