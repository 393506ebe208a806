"""One trace a debate, over services that are away, return, and an orchestrator that starts again."""

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode

from parley.v1.debate_pb2 import DebateSpec
from parley.v1.orchestrator_pb2 import CreateDebateRequest, WatchDebateRequest
from parley.v1.panel_pb2 import TERMINATION_RULE_CONVERGENCE, PanelSettings, Termination
from tests.support.orchestration import WITHIN, Orchestrator, kind_of, orchestrating
from tests.support.real_services import convergence_at, free_address, memory_at, ratings_at
from tests.support.scripted_gateway import ScriptedGateway
from tests.support.spans import forget_spans, list_ended_spans, spans_when

ASSESS, EMBED = "parley.v1.ConvergenceService/Assess", "parley.v1.ConvergenceService/Embed"
RECALL, REMEMBER = "parley.v1.MemoryService/Recall", "parley.v1.MemoryService/RecordDebate"
RATE = "parley.v1.RatingsService/RecordMatch"
CREATE = "parley.v1.OrchestratorService/CreateDebate"
WORKFLOW = "invoke_workflow panel@1"


def named(spans: Sequence[ReadableSpan], name: str, kind: SpanKind) -> list[ReadableSpan]:
    return [span for span in spans if span.name == name and span.kind is kind]


def is_child(child: ReadableSpan, parent: ReadableSpan) -> bool:
    if child.parent is None:
        return False
    assert parent.context is not None
    same = bool(child.parent.trace_id == parent.context.trace_id)
    return same and bool(child.parent.span_id == parent.context.span_id)


async def create(orchestrator: Orchestrator) -> str:
    termination = Termination(rule=TERMINATION_RULE_CONVERGENCE)
    spec = DebateSpec(question="Kafka or RabbitMQ?", panel=PanelSettings(rounds=2, termination=termination))
    request = CreateDebateRequest(request_id="one", spec=spec)
    with trace.get_tracer("test").start_as_current_span("the caller"):
        return (await orchestrator.stub.CreateDebate(request, timeout=WITHIN)).debate_id


async def follow(orchestrator: Orchestrator, debate: str, until: str) -> None:
    request = WatchDebateRequest(debate_id=debate)
    async for each in orchestrator.stub.WatchDebate(request, timeout=WITHIN):
        if kind_of(each.event) == until:
            return


async def workflows(count: int) -> list[ReadableSpan]:
    spans = await spans_when(lambda all_: len(named(all_, WORKFLOW, SpanKind.INTERNAL)) == count)
    return named(spans, WORKFLOW, SpanKind.INTERNAL)


async def test_what_a_debate_asks_of_convergence_and_memory_hangs_under_it(tmp_path: Path) -> None:
    convergence, memory, ratings = free_address(), free_address(), free_address()
    forget_spans()
    async with (
        ScriptedGateway().served() as gateway,
        convergence_at(convergence),
        memory_at(memory, tmp_path / "memory", convergence),
        ratings_at(ratings, tmp_path / "ratings"),
        orchestrating(
            tmp_path / "own", gateway, convergence=convergence, memory=memory, ratings=ratings
        ) as orchestrator,
    ):
        await follow(orchestrator, await create(orchestrator), "closed")
        (workflow,) = await workflows(1)
        spans = list_ended_spans()
    (created,) = named(spans, CREATE, SpanKind.SERVER)
    assert is_child(workflow, created)
    for method in (ASSESS, RECALL, REMEMBER, RATE):
        (call,) = named(spans, method, SpanKind.CLIENT)
        (served,) = named(spans, method, SpanKind.SERVER)
        assert is_child(call, workflow), method
        assert is_child(served, call), method
    # A recall from a memory that holds nothing embeds nothing.
    (served,) = named(spans, REMEMBER, SpanKind.SERVER)
    embeds = [each for each in named(spans, EMBED, SpanKind.CLIENT) if is_child(each, served)]
    assert embeds
    for embed in embeds:
        assert [each for each in named(spans, EMBED, SpanKind.SERVER) if is_child(each, embed)]


async def test_calls_that_fail_and_those_after_a_restart_are_in_the_trace_of_the_request(
    tmp_path: Path,
) -> None:
    away, ratings = free_address(), free_address()
    forget_spans()
    async with ScriptedGateway().served() as gateway:
        addresses: dict[str, Any] = {"convergence": away, "memory": gateway.address, "ratings": ratings}
        async with orchestrating(tmp_path / "own", gateway, **addresses) as orchestrator:
            debate = await create(orchestrator)
            await follow(orchestrator, debate, "concluded")
            async with asyncio.timeout(WITHIN):
                while not named(list_ended_spans(), RATE, SpanKind.CLIENT):  # noqa: ASYNC110 (spans end without an event)
                    await asyncio.sleep(0.01)
        async with (
            ratings_at(ratings, tmp_path / "ratings"),
            orchestrating(tmp_path / "own", gateway, **addresses) as orchestrator,
        ):
            await follow(orchestrator, debate, "closed")
            first, second = await workflows(2)
            spans = list_ended_spans()
    (created,) = named(spans, CREATE, SpanKind.SERVER)
    assert is_child(first, created)
    assert is_child(second, created)
    *failed, told = named(spans, RATE, SpanKind.CLIENT)
    assert all(each.status.status_code is StatusCode.ERROR and is_child(each, first) for each in failed)
    assert told.status.status_code is StatusCode.UNSET
    assert is_child(told, second)
    asked = named(spans, ASSESS, SpanKind.CLIENT)
    assert asked
    assert all(each.status.status_code is StatusCode.ERROR and is_child(each, first) for each in asked)
    assert {first.status.status_code, second.status.status_code} == {StatusCode.UNSET}
