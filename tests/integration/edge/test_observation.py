"""What an edge measures of its requests, and how they appear in a trace."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.trace import SpanKind, StatusCode

from parley.edge import observation
from tests.integration.edge.conftest import SERVICE, Edge
from tests.support.orchestration import until
from tests.support.scripted_gateway import ScriptedGateway
from tests.support.spans import forget_spans, list_ended_spans, spans_when

TRACE = "0af7651916cd43dd8448eb211c80319c"
PARENT = "b7ad6b7169203331"
NAME = SERVICE.removeprefix("/")

Points = Callable[[str], list[tuple[dict[str, Any], Any]]]


@pytest.fixture
def points(monkeypatch: pytest.MonkeyPatch) -> Points:
    """What was measured since, by metric: labels and value, or of a histogram the count."""
    reader = InMemoryMetricReader()
    meter = MeterProvider([reader]).get_meter("edge")
    monkeypatch.setattr(observation, "_requests", meter.create_counter("requests"))
    monkeypatch.setattr(observation, "_calls", meter.create_histogram("calls"))
    monkeypatch.setattr(observation, "_streams", meter.create_up_down_counter("streams"))

    def read(name: str) -> list[tuple[dict[str, Any], Any]]:
        data = reader.get_metrics_data()
        return [
            (dict(point.attributes or {}), getattr(point, "value", getattr(point, "count", None)))
            for resource in (data.resource_metrics if data else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]

    return read


@pytest.fixture(autouse=True)
def _recording(points: Points) -> None:  # instruments are there before the edge starts
    forget_spans()


def call(method: str, code: str, kind: str = "unary") -> dict[str, str]:
    return {"rpc.method": f"{NAME}/{method}", "rpc.response.status_code": code, "parley.kind": kind}


def request(route: str, status: int) -> dict[str, Any]:
    return {"http.route": route, "http.response.status_code": status}


async def test_calls_are_measured_by_method_and_code_and_requests_by_route_and_status(
    edge: Edge, points: Points
) -> None:
    assert points("streams") == [({}, 0)], "an edge that does nothing says so"
    await edge.post("ListDebates", {})
    for name in ("a", "b"):
        await edge.post("GetDebate", {"debateId": f"deb-20260101-000000-aaaaaaa{name}"})
    assert (call("ListDebates", "OK"), 1) in points("calls")
    assert (call("GetDebate", "NOT_FOUND"), 2) in points("calls")
    assert (request(f"{SERVICE}/GetDebate", 404), 2) in points("requests")


async def test_an_open_stream_is_counted_until_its_client_hangs_up(
    edge: Edge, gateway: ScriptedGateway, points: Points
) -> None:
    gateway.hold("*")
    debate = await edge.create()
    async with edge.session.get(f"{edge.url}/v1/debates/{debate}/events") as answer:
        await answer.content.readline()
        assert points("streams") == [({}, 1)]

    async def is_counted() -> bool:
        return (request("/v1/debates/{debate_id}/events", 200), 1) in points("requests")

    await until(is_counted, "the request has ended")
    assert points("streams") == [({}, 0)]
    assert (call("WatchDebate", "CANCELLED", "stream"), 1) in points("calls")


async def test_what_callers_choose_makes_no_label(edge: Edge, points: Points) -> None:
    for method, path, host in (
        ("GET", "/no/such/path", "localhost"),
        ("GET", "/healthy", "evil.example"),
        ("BREW", "/no/such/other", "localhost"),
    ):
        async with edge.session.request(method, f"{edge.url}{path}", headers={"Host": host}):
            pass
    assert sorted(points("requests"), key=str) == [(request("other", 400), 1), (request("other", 404), 2)]
    spans = await spans_when(lambda spans: len(spans) == 3)
    assert sorted(each.name for each in spans) == ["GET other", "GET other", "other other"]


async def test_probes_are_neither_counted_nor_traced(edge: Edge, points: Points) -> None:
    for path in ("/healthz", "/readyz"):
        async with edge.session.get(f"{edge.url}{path}") as answer:
            assert answer.status == 200
    assert points("requests") == []
    assert [each for each in list_ended_spans() if each.kind is SpanKind.SERVER] == []


@pytest.mark.parametrize("given", [{}, {"traceparent": f"00-{TRACE}-{PARENT}-01", "tracestate": "a=b"}])
async def test_a_request_is_one_trace_from_its_caller_to_the_orchestrator(
    edge: Edge, given: dict[str, str]
) -> None:
    await edge.post("ListDebates", {}, **given)
    outer, client, server = chain(await spans_when(lambda spans: len(spans) == 3))
    assert outer.name == f"POST {SERVICE}/ListDebates"
    assert (outer.attributes or {})["http.response.status_code"] == 200
    assert parent(client) == span_id(outer)
    assert parent(server) == span_id(client)
    if given:
        assert f"{outer.context.trace_id:032x}" == TRACE
        assert f"{parent(outer):016x}" == PARENT
        assert server.context.trace_state.get("a") == "b"
    else:
        assert parent(outer) == 0


async def test_two_requests_of_one_connection_are_two_traces(edge: Edge) -> None:
    for _ in range(2):
        await edge.post("ListDebates", {})
    spans = await spans_when(lambda spans: len(spans) == 6)
    assert len({each.context.trace_id for each in spans}) == 2


async def test_a_fault_is_an_error_of_the_span_and_a_refusal_is_none(edge: Edge) -> None:
    await edge.post("GetDebate", {"debateId": "deb-20260101-000000-aaaaaaaa"})
    await edge.orchestrator.server.drain()
    await asyncio.wait_for(edge.post("ListDebates", {}), 20)
    spans = await spans_when(lambda spans: len(find_outer(spans)) == 2)
    refused, failed = find_outer(spans)
    assert refused.status.status_code is StatusCode.UNSET
    assert failed.status.status_code is StatusCode.ERROR
    assert (failed.attributes or {})["error.type"] == "503"


def find_outer(spans: Sequence[ReadableSpan]) -> list[ReadableSpan]:
    return [each for each in spans if each.name.startswith("POST ")]


def chain(spans: Sequence[ReadableSpan]) -> tuple[ReadableSpan, ReadableSpan, ReadableSpan]:
    (first,) = find_outer(spans)
    (client,) = [each for each in spans if each.kind is SpanKind.CLIENT]
    (server,) = [each for each in spans if each.kind is SpanKind.SERVER and each is not first]
    return first, client, server


def span_id(span: ReadableSpan) -> int:
    return int(span.context.span_id)


def parent(span: ReadableSpan) -> int:
    return int(span.parent.span_id) if span.parent else 0
