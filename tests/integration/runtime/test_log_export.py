"""Log lines go to a collector when that is asked for, with the trace they were written in, and to stderr in any case."""

import os
import subprocess
import sys
from typing import Any

from tests.support.trace_collector import HttpCollector, run_http_collector

PROGRAM = """
import logging
from parley.runtime.labels import label_scope
from parley.runtime.logs import configure_logging, get_logger
from parley.runtime.telemetry import configure_telemetry, tracer

configure_logging()
stop = configure_telemetry("gateway")
with tracer("test").start_as_current_span("work"), label_scope(tenant="research"):
    get_logger("here").warning("route needs attention", route="openai/m")
try:
    raise ValueError("odd")
except ValueError:
    get_logger("here").exception("call failed")
get_logger("here").debug("not said")
logging.getLogger("a.library").warning("of a library")
logging.getLogger("opentelemetry.exporter").warning("of the exporter")
stop()
"""


def run(collector: HttpCollector, **variables: str) -> str:
    kept = {key: value for key, value in os.environ.items() if not key.startswith("OTEL_")}
    given = {
        "OTEL_EXPORTER_OTLP_ENDPOINT": collector.endpoint,
        "OTEL_EXPORTER_OTLP_PROTOCOL": "http/protobuf",
        "OTEL_METRICS_EXPORTER": "none",
    }
    command = [sys.executable, "-c", PROGRAM]
    ended = subprocess.run(
        command, env=kept | given | variables, capture_output=True, text=True, check=True, timeout=60
    )
    return ended.stderr


def attributes(record: Any) -> dict[str, str]:
    return {each.key: each.value.string_value for each in record.attributes}


def test_lines_reach_the_collector_with_their_trace_and_labels() -> None:
    with run_http_collector() as collector:
        said = run(collector, OTEL_LOGS_EXPORTER="otlp")
    told = {each.body.string_value: each for each in collector.logs}
    assert told.keys() == {"route needs attention", "call failed", "of a library"}
    warned = told["route needs attention"]
    (span,) = collector.spans
    assert warned.trace_id.hex() == span.trace
    assert warned.severity_text == "warning"
    assert attributes(warned).items() >= {"tenant": "research", "route": "openai/m"}.items()
    assert "ValueError: odd" in attributes(told["call failed"])["exception.stacktrace"]
    assert "route needs attention" in said
    assert "of the exporter" in said


def test_no_line_leaves_unless_that_is_asked_for() -> None:
    with run_http_collector() as collector:
        said = run(collector)
    assert collector.logs == []
    assert "route needs attention" in said
