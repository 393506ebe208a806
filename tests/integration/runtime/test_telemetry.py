import asyncio
import os
import sys

import grpc
import pytest
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2

from tests.integration.runtime.wire import make_service

PROGRAM = """
import sys
from parley.runtime.errors import ConfigurationError
from parley.runtime.telemetry import configure_telemetry, tracer
try:
    one, two = configure_telemetry("orchestrator"), configure_telemetry("gateway")
except ConfigurationError as error:
    sys.exit(str(error))
with tracer("test").start_as_current_span("first"):
    pass
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


async def test_a_collector_that_is_not_there_does_not_hold_up_the_end() -> None:
    started = asyncio.get_running_loop().time()
    code, out, _ = await run(OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:1")
    assert (code, out) == (0, "sdk\n")
    assert asyncio.get_running_loop().time() - started < 25


async def test_a_protocol_that_is_not_supported_is_named() -> None:
    code, _, err = await run(
        OTEL_EXPORTER_OTLP_ENDPOINT="http://127.0.0.1:1", OTEL_EXPORTER_OTLP_PROTOCOL="http/protobuf"
    )
    assert code == 1
    assert err == "OTEL_EXPORTER_OTLP_PROTOCOL: 'http/protobuf' is not supported; use grpc\n"
