"""One trace a debate: from the caller's request to each model call."""

from collections.abc import Sequence

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode

from tests.support.orchestration import Orchestrator
from tests.support.scripted_faults import refusal
from tests.support.scripted_gateway import ScriptedGateway
from tests.support.spans import forget_spans, spans_when

GENERATE = "parley.v1.GatewayService/Generate"


def is_over(spans: Sequence[ReadableSpan]) -> bool:
    return any(span.name.startswith("invoke_workflow") for span in spans)


def parent_of(span: ReadableSpan) -> int:
    assert span.parent is not None
    return int(span.parent.span_id)


def id_of(span: ReadableSpan) -> int:
    assert span.context is not None
    return int(span.context.span_id)


async def test_a_debate_is_one_trace_from_its_request_to_its_calls(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    forget_spans()
    gateway.fail("round/1/critique/ada/of/bo", refusal("PROVIDER_QUOTA", "no money"))
    with trace.get_tracer("test").start_as_current_span("the caller") as caller:
        debate = await orchestrator.create()
    await orchestrator.watch(debate)
    spans = await spans_when(is_over)
    (workflow,) = [span for span in spans if span.name == "invoke_workflow panel@1"]
    agents = [span for span in spans if span.name.startswith("invoke_agent")]
    calls = [span for span in spans if span.name == GENERATE and span.kind is SpanKind.CLIENT]
    served = [span for span in spans if span.name == GENERATE and span.kind is SpanKind.SERVER]
    assert len(agents) == len(calls) == len(served) == 15
    for span in (workflow, *agents, *calls, *served):
        assert span.context is not None
        assert span.context.trace_id == caller.get_span_context().trace_id
    assert {parent_of(span) for span in agents} == {id_of(workflow)}
    assert {parent_of(span) for span in calls} == {id_of(span) for span in agents}
    assert {parent_of(span) for span in served} == {id_of(span) for span in calls}
    (ada,) = [span for span in agents if (span.attributes or {})["parley.step"] == "round/1/propose/ada"]
    assert dict(ada.attributes or {}) | {
        "gen_ai.operation.name": "invoke_agent",
        "gen_ai.agent.id": "ada",
        "gen_ai.agent.name": "Ada",
        "gen_ai.conversation.id": debate,
    } == dict(ada.attributes or {})
    failed = [span for span in (*agents, *calls) if span.status.status_code is StatusCode.ERROR]
    assert sorted(span.name for span in failed) == ["invoke_agent ada", GENERATE], (
        "what went well is no error"
    )
    assert workflow.status.status_code is StatusCode.UNSET


async def test_a_failed_debate_shows_in_its_trace(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    forget_spans()
    gateway.fail("round/1/propose/*", refusal("PROVIDER_AUTH", "401"))
    await orchestrator.watch(await orchestrator.create())
    spans = await spans_when(is_over)
    (workflow,) = [span for span in spans if span.name == "invoke_workflow panel@1"]
    assert workflow.status.status_code is StatusCode.ERROR
    assert "PROVIDER_AUTH" in (workflow.status.description or "")
