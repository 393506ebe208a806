"""Spans of this process as a test sees them. OpenTelemetry takes one provider a process, so all tests share it."""

import asyncio
from collections.abc import Callable, Sequence
from functools import cache

from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter


@cache
def _exporter() -> InMemorySpanExporter:
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    trace.set_tracer_provider(provider)
    return exporter


def forget_spans() -> None:
    """Starts recording if nothing did yet, and drops what was recorded."""
    _exporter().clear()


def list_ended_spans() -> Sequence[ReadableSpan]:
    """The spans that ended since, in the order they ended."""
    return _exporter().get_finished_spans()


async def spans_when(complete: Callable[[Sequence[ReadableSpan]], bool]) -> Sequence[ReadableSpan]:
    """The ended spans, once they satisfy `complete`; an AssertionError that lists them if they never do."""
    try:
        async with asyncio.timeout(30):
            while not complete(list_ended_spans()):  # noqa: ASYNC110 (spans end without an event)
                await asyncio.sleep(0.005)
    except TimeoutError:
        raise AssertionError(f"ended so far: {[span.name for span in list_ended_spans()]}") from None
    return list_ended_spans()
