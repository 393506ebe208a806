"""Moderated debates over the API: what is refused, and who debates as others are told it."""

import uuid
from typing import Any

import grpc
import pytest

from parley.v1 import debate_pb2, orchestrator_pb2
from parley.v1.moderated_pb2 import CONFIDENCE_HIGH, ModeratedSettings, Perspective
from tests.support.moderated_debates import QUESTION, ModeratedScript
from tests.support.orchestration import Orchestrator, failure_of, until
from tests.support.scripted_gateway import ScriptedGateway


@pytest.fixture
def gateway() -> ScriptedGateway:
    return ModeratedScript(decisions=("agreement",)).gateway()


async def create(orchestrator: Orchestrator, **settings: Any) -> str:
    spec = debate_pb2.DebateSpec(question=QUESTION, moderated=ModeratedSettings(**settings), history_limit=0)
    request = orchestrator_pb2.CreateDebateRequest(request_id=uuid.uuid4().hex, spec=spec)
    return (await orchestrator.stub.CreateDebate(request, timeout=10)).debate_id


async def test_a_moderated_debate_is_asked_for_by_its_settings_and_told_with_those_who_joined(
    orchestrator: Orchestrator,
) -> None:
    debate = await create(orchestrator, checkpoints=False)
    told = await orchestrator.status(debate, debate_pb2.DEBATE_STATUS_COMPLETED)
    assert told.spec.format == "moderated@1"
    assert told.only_joined_debate
    assert [each.id for each in told.joined] == [
        "simplicity-advocate",
        "security-advocate",
        "user-experience",
    ]
    assert told.outcome.moderated.confidence == CONFIDENCE_HIGH
    limits = told.spec.limits
    assert (limits.round.seconds, limits.total.seconds, limits.checkpoint.seconds) == (120, 1800, 1800)


async def test_the_checkpoint_says_where_the_debate_stands_and_takes_an_end(
    orchestrator: Orchestrator,
) -> None:
    debate = await create(orchestrator)
    told = await orchestrator.status(debate, debate_pb2.DEBATE_STATUS_WAITING)
    assert told.waiting.checkpoint == "round/1/checkpoint"
    assert told.phase == "checkpoint"
    refused = await failure_of(orchestrator.intervene(debate, mute=debate_pb2.Mute(agent_id="ada")))
    assert "agents of this debate: simplicity-advocate, security-advocate, user-experience" in str(
        refused.violations[0].description
    )
    await orchestrator.intervene(debate, checkpoint="round/1/checkpoint", end=debate_pb2.EndRounds())

    async def asks_for_approval() -> bool:
        return (await orchestrator.get(debate)).waiting.checkpoint == "synthesis/approval"

    await until(asks_for_approval, "a person is asked to approve the decision")
    await orchestrator.intervene(debate, approve=debate_pb2.Approve(approved=True))
    told = await orchestrator.status(debate, debate_pb2.DEBATE_STATUS_COMPLETED)
    assert told.outcome.moderated.approved


async def test_perspectives_that_all_agree_are_refused_with_the_request(orchestrator: Orchestrator) -> None:
    quiet = Perspective(name="Nature", priorities=["birdsong"], trade_offs="Will walk.")
    refused = await failure_of(create(orchestrator, perspectives=2, custom_perspectives=[quiet]))
    assert refused.code == grpc.StatusCode.INVALID_ARGUMENT
    assert [each.field for each in refused.violations] == ["spec.moderated.custom_perspectives"]
