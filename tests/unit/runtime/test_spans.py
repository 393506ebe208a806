from contextlib import suppress

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import NoOpTracer, StatusCode, get_current_span, use_span

from parley.runtime.telemetry import extract, open_span

TRACE_ID = "0af7651916cd43dd8448eb211c80319c"
CARRIER = {"traceparent": f"00-{TRACE_ID}-b7ad6b7169203331-01"}


@pytest.fixture
def spans() -> InMemorySpanExporter:
    return InMemorySpanExporter()


@pytest.fixture
def provider(spans: InMemorySpanExporter) -> TracerProvider:
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    return provider


def test_a_span_is_the_current_one_in_its_block_and_tells_of_the_error_that_leaves_it(
    provider: TracerProvider, spans: InMemorySpanExporter
) -> None:
    with suppress(ValueError), open_span(provider.get_tracer("test"), "work") as span:
        assert get_current_span() is span
        raise ValueError
    (ended,) = spans.get_finished_spans()
    assert ended.events
    assert ended.status.status_code is StatusCode.ERROR


def test_a_callers_span_is_passed_on_where_nobody_records_spans() -> None:
    with open_span(NoOpTracer(), "work", context=extract(CARRIER)):
        assert f"{get_current_span().get_span_context().trace_id:032x}" == TRACE_ID


def test_a_block_has_no_span_where_nobody_records_spans_and_no_caller_named_one() -> None:
    before = get_current_span()
    with open_span(NoOpTracer(), "work", context=extract({})) as span:
        assert not span.is_recording()
        assert not span.get_span_context().is_valid
        assert get_current_span() is before


def test_a_span_that_is_passed_on_is_that_of_the_block_around() -> None:
    around = get_current_span(extract(CARRIER))
    with use_span(around), open_span(NoOpTracer(), "work") as span:
        assert span is around
