"""The edge as a process."""

import asyncio
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from parley.edge.app import IsReady, create_app, create_health_app
from parley.edge.calls import ORCHESTRATOR, OrchestratorCalls
from parley.edge.mcp import McpEndpoint
from parley.edge.server import serve_http
from parley.edge.settings import EdgeSettings
from parley.runtime import entry
from parley.runtime.channel import Connect, channel
from parley.runtime.logs import configure_logging, get_logger
from parley.runtime.peers import watch_peers
from parley.runtime.telemetry import configure_telemetry

_READY_SECONDS = 3.0
_logger = get_logger(__name__)


@asynccontextmanager
async def run_edge(settings: EdgeSettings, *, connect: Connect = channel) -> AsyncIterator[str]:
    """Run the edge while the block runs; yield its address. The orchestrator need not answer yet.

    `connect` opens the channel to it.

    Raises:
        ConfigurationError: the address cannot be listened on, or credentials could be read on their way to the orchestrator.
    """
    async with connect(settings.orchestrator, settings.orchestrator_channel()) as connection:
        calls = OrchestratorCalls(connection, settings.edge_streams_per_caller)

        async def is_ready() -> bool:
            return await _is_serving(connection)

        mcp = McpEndpoint(connection, calls)
        app = create_app(settings, calls, mcp, is_ready)
        async with (
            _serve_health(settings, is_ready),
            mcp.serve(),
            serve_http(app, settings) as address,
        ):
            try:
                yield address
            finally:
                mcp.stop()


@asynccontextmanager
async def _serve_health(settings: EdgeSettings, is_ready: IsReady) -> AsyncIterator[None]:
    """Answer probes at the health port, if one is set: in plaintext, since they have no certificate."""
    if settings.health_port is None:
        yield
        return
    plain = settings.model_copy(
        update={"port": settings.health_port, "tls_certificate": None, "tls_key": None}
    )
    async with serve_http(create_health_app(is_ready), plain, "PARLEY_HEALTH_PORT"):
        yield


async def _is_serving(connection: grpc.aio.Channel) -> bool:
    """Return whether the orchestrator answers and serves."""
    try:
        answer = await health_pb2_grpc.HealthStub(connection).Check(  # type: ignore[attr-defined]
            health_pb2.HealthCheckRequest(service=ORCHESTRATOR), timeout=_READY_SECONDS
        )
    except grpc.aio.AioRpcError:
        return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)


async def main() -> None:
    """Serve until stopped."""
    settings = EdgeSettings.load()
    configure_logging(settings.log_level)
    stop_telemetry = configure_telemetry("parley-edge")
    stop, loop = asyncio.Event(), asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, stop.set)
    try:
        async with (
            watch_peers({"PARLEY_ORCHESTRATOR": settings.orchestrator}, settings.orchestrator_channel()),
            run_edge(settings) as address,
        ):
            _logger.info("serving", address=address)
            await stop.wait()
    finally:
        stop_telemetry()


if __name__ == "__main__":
    sys.exit(entry.run(main))
