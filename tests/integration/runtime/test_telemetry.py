import asyncio
import os
import sys

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

from tests.integration.runtime.wire import make_service
from tests.support.trace_collector import run_collector, run_http_collector

PROGRAM = """
import sys
from parley.runtime.errors import ConfigurationError
from parley.runtime.telemetry import configure_telemetry, meter, tracer
try:
    one, two = configure_telemetry("orchestrator"), configure_telemetry("gateway")
except ConfigurationError as error:
    sys.exit(str(error))
with tracer("test").start_as_current_span("first"):
    meter("test").create_counter("counted").add(1)
one()
one()
with tracer("test").start_as_current_span("second"):
    pass
two()
print("sdk" if "opentelemetry.sdk.trace" in sys.modules else "no sdk")
"""


async def run(**variables: str) -> tuple[int | None, str, str]:
    env = {key: value for key, value in os.environ.items() if not key.startswith("OTEL_")}
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-c",
        PROGRAM,
        env=env | variables,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(40):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    return process.returncode, out.decode(), err.decode()


async def test_spans_of_all_services_of_a_process_reach_the_collector_before_it_ends() -> None:
    received: list[trace_service_pb2.ExportTraceServiceRequest] = []

    async def export(request: bytes, _context: object) -> bytes:
        received.append(trace_service_pb2.ExportTraceServiceRequest.FromString(request))
        return b""

    collector = grpc.aio.server()
    make_service("opentelemetry.proto.collector.trace.v1.TraceService", Export=export).register(collector)
    port = collector.add_insecure_port("127.0.0.1:0")
    await collector.start()
    try:
        code, _, err = await run(
            OTEL_EXPORTER_OTLP_TRACES_ENDPOINT=f"http://127.0.0.1:{port}", OTEL_METRICS_EXPORTER="none"
        )
    finally:
        await collector.stop(None)
    assert code == 0, err
    resources = [each for request in received for each in request.resource_spans]
    names = {span.name for each in resources for scope in each.scope_spans for span in scope.spans}
    services = {
        pair.value.string_value
        for each in resources
        for pair in each.resource.attributes
        if pair.key == "service.name"
    }
    assert names == {"first", "second"}
    assert services == {"orchestrator"}


async def test_without_an_endpoint_the_sdk_is_not_even_loaded() -> None:
    assert await run() == (0, "no sdk\n", "")


@pytest.mark.parametrize("variable", ["OTEL_SDK_DISABLED", "OTEL_TRACES_EXPORTER"])
async def test_the_standard_off_switches_switch_it_off(variable: str) -> None:
    value = "true" if variable == "OTEL_SDK_DISABLED" else "none"
    code, out, _ = await run(OTEL_EXPORTER_OTLP_TRACES_ENDPOINT="http://127.0.0.1:1", **{variable: value})
    assert (code, out) == (0, "no sdk\n")


@pytest.mark.parametrize("protocol", ["grpc", "http/protobuf"])
async def test_a_collector_that_is_not_there_does_not_hold_up_the_end(protocol: str) -> None:
    started = asyncio.get_running_loop().time()
    code, out, _ = await run(
        OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:1", OTEL_EXPORTER_OTLP_PROTOCOL=protocol
    )
    assert (code, out) == (0, "sdk\n")
    assert asyncio.get_running_loop().time() - started < 25


@pytest.mark.parametrize("variable", ["OTEL_EXPORTER_OTLP_PROTOCOL", "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL"])
async def test_a_protocol_that_is_not_known_is_named(variable: str) -> None:
    code, _, err = await run(OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:1", **{variable: "http/json"})
    assert code == 1
    assert err == f"{variable}: 'http/json' is not one of grpc, http/protobuf\n"


HTTP = "http/protobuf"


@pytest.mark.parametrize(
    "variables",
    [
        {"OTEL_EXPORTER_OTLP_ENDPOINT": "{}", "OTEL_EXPORTER_OTLP_PROTOCOL": HTTP},
        {
            "OTEL_EXPORTER_OTLP_ENDPOINT": "{}/",
            "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc",
            "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL": HTTP,
            "OTEL_EXPORTER_OTLP_METRICS_PROTOCOL": HTTP,
        },
        {
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT": "{}/v1/traces",
            "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "{}/v1/metrics",
            "OTEL_EXPORTER_OTLP_PROTOCOL": HTTP,
        },
    ],
    ids=["for all", "for each signal", "with an endpoint for each signal"],
)
async def test_spans_and_metrics_reach_a_collector_over_http(variables: dict[str, str]) -> None:
    with run_http_collector() as collector:
        given = {name: value.format(collector.endpoint) for name, value in variables.items()}
        code, _, err = await run(**given, OTEL_EXPORTER_OTLP_HEADERS="x-team=blue")
        assert code == 0, err
        assert {span.name for span in collector.spans} == {"first", "second"}
        assert {span.service for span in collector.spans} == {"orchestrator"}
        assert collector.metrics == {"counted"}
        assert {headers["x-team"] for headers in collector.headers} == {"blue"}


async def test_each_signal_may_go_its_own_way() -> None:
    with run_http_collector() as http, run_collector() as grpc_collector:
        code, _, err = await run(
            OTEL_EXPORTER_OTLP_ENDPOINT=grpc_collector.endpoint,
            OTEL_EXPORTER_OTLP_METRICS_ENDPOINT=f"{http.endpoint}/v1/metrics",
            OTEL_EXPORTER_OTLP_METRICS_PROTOCOL=HTTP,
        )
        assert code == 0, err
        assert {span.name for span in grpc_collector.spans} == {"first", "second"}
        assert (http.metrics, http.spans) == ({"counted"}, [])
