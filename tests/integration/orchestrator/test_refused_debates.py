"""Requests for debates that cannot be held: every bad field is named."""

from typing import Any

import grpc
import pytest
from google.protobuf.duration_pb2 import Duration

from parley.v1 import debate_pb2, orchestrator_pb2
from parley.v1.panel_pb2 import PanelSettings
from tests.integration.orchestrator.described_agents import inline
from tests.support.orchestration import Orchestrator, failure_of


@pytest.mark.parametrize(
    ("count", "field", "told"),
    [(2001, "spec.context", "has 2001 documents, at most 2000"), (60_000, "context", "above 5000 entries")],
)
async def test_very_many_documents_are_refused_before_each_is_looked_at(
    orchestrator: Orchestrator, count: int, field: str, told: str
) -> None:
    documents = [debate_pb2.ContextDocument(path="/etc") for _ in range(count)]
    spec = debate_pb2.DebateSpec(question="Which?", context=documents)
    request = orchestrator_pb2.CreateDebateRequest(request_id="a", spec=spec)
    failure = await failure_of(orchestrator.stub.CreateDebate(request, timeout=10))
    (violation,) = failure.violations
    assert violation.field == field
    assert told in violation.description


async def test_every_bad_field_is_listed_at_once_and_known_names_are_told(orchestrator: Orchestrator) -> None:
    spec = debate_pb2.DebateSpec(
        question="  ",
        panel=PanelSettings(rounds=101),
        format="duel",
        agents=[
            debate_pb2.Participant(agent_id="nobody"),
            inline("Bad Id", role="wizard", routes=["p/none"], temperature=3),
            debate_pb2.Participant(),
        ],
        judge=debate_pb2.Participant(agent_id="no-judge"),
        context=[debate_pb2.ContextDocument(path="../x", text="")],
        domain="d" * 65,
        limits=debate_pb2.DebateLimits(),
    )
    spec.limits.call.FromSeconds(0)
    request = orchestrator_pb2.CreateDebateRequest(request_id="a b", spec=spec)
    failure = await failure_of(orchestrator.stub.CreateDebate(request, timeout=10))
    assert (failure.code, failure.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT")
    told = {each.field: each.description for each in failure.violations}
    assert told.keys() >= {
        "request_id", "spec.question", "spec.panel.rounds", "spec.format", "spec.agents[0].agent_id",
        "spec.agents[1].agent.id", "spec.agents[1].agent.role", "spec.agents[1].agent.routes[0]",
        "spec.agents[1].agent.temperature", "spec.agents[2]", "spec.judge.agent_id", "spec.context[0].path",
        "spec.domain", "spec.limits.call",
    }  # fmt: skip
    assert "known agents: ada, bo, cy, judge" in told["spec.agents[0].agent_id"]
    assert "known roles: architect, " in told["spec.agents[1].agent.role"]
    assert "known routes: p/m, open/MODEL" in told["spec.agents[1].agent.routes[0]"]
    assert "known formats: arena, evaluation, moderated, panel" in told["spec.format"]


async def test_a_request_id_that_no_store_can_hold_is_refused_by_its_name(orchestrator: Orchestrator) -> None:
    spec = debate_pb2.DebateSpec(question="Which?")
    request = orchestrator_pb2.CreateDebateRequest(request_id="a\0b", spec=spec)
    failure = await failure_of(orchestrator.stub.CreateDebate(request, timeout=10))
    assert [each.field for each in failure.violations] == ["request_id"]


async def test_a_duration_that_is_none_is_refused_by_its_name(orchestrator: Orchestrator) -> None:
    spec = debate_pb2.DebateSpec(question="Which?", limits=debate_pb2.DebateLimits())
    spec.limits.round.seconds = 2**63 - 1
    request = orchestrator_pb2.CreateDebateRequest(request_id="r-1", spec=spec)
    failure = await failure_of(orchestrator.stub.CreateDebate(request, timeout=10))
    assert [each.field for each in failure.violations] == ["spec.limits.round"]


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"question": "wet\0?"}, "spec.question"),
        ({"question": "x" * (256 * 1024 + 1)}, "spec.question"),
        ({"agents": [inline("ada"), inline("ada")]}, "spec.agents"),
        ({"agents": [inline("ada", role="judge")]}, "spec.agents[0]"),
        ({"panel": PanelSettings(rounds=-1)}, "spec.panel.rounds"),
        ({"limits": debate_pb2.DebateLimits(round=Duration(nanos=1))}, "spec.limits.round"),
        ({"limits": debate_pb2.DebateLimits(total=Duration(seconds=700_000))}, "spec.limits.total"),
        ({"limits": debate_pb2.DebateLimits(checkpoint=Duration())}, "spec.limits.checkpoint"),
        ({"limits": debate_pb2.DebateLimits(waiting=Duration(seconds=-1))}, "spec.limits.waiting"),
        ({"limits": debate_pb2.DebateLimits(max_tokens=-1)}, "spec.limits.max_tokens"),
        ({"limits": debate_pb2.DebateLimits(max_cost_micros=-1)}, "spec.limits.max_cost_micros"),
        ({"concurrency": {"refinements": 1025}}, "spec.concurrency.refinements"),
    ],
)
async def test_what_cannot_be_run_is_refused(
    orchestrator: Orchestrator, spec: dict[str, Any], field: str
) -> None:
    given = debate_pb2.DebateSpec(**{"question": "Is water wet?", **spec})
    request = orchestrator_pb2.CreateDebateRequest(request_id="r", spec=given)
    failure = await failure_of(orchestrator.stub.CreateDebate(request, timeout=10))
    assert failure.code == grpc.StatusCode.INVALID_ARGUMENT
    assert field in {each.field for each in failure.violations}
