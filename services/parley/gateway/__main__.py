"""Wires the gateway and serves it."""

import asyncio
import os
import secrets
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import grpc

from parley import config as configuration
from parley.config import ConfigFile
from parley.gateway.agents import roster
from parley.gateway.breaker import DEFAULT_POLICY, BreakerPolicy
from parley.gateway.call_store import CallStore
from parley.gateway.calling import Calling, Timeouts
from parley.gateway.calls import Calls
from parley.gateway.endpoint import Endpoint, EndpointLimits
from parley.gateway.local_model import LocalModelError, available, local_model
from parley.gateway.providers import Plan, local_plan, plan
from parley.gateway.routes import RouteTable
from parley.gateway.servicer import GatewayServicer
from parley.gateway.settings import GatewaySettings
from parley.gateway.sharing import BreakerSharing
from parley.runtime import entry
from parley.runtime.clock import Clock, SystemClock
from parley.runtime.draining import Draining
from parley.runtime.errors import ConfigurationError
from parley.runtime.logs import configure_logging, get_logger
from parley.runtime.server import Service, serve
from parley.runtime.telemetry import configure_telemetry
from parley.storage.opening import Store, open_store
from parley.storage.ports import StorageError
from parley.v1 import gateway_pb2_grpc

__all__ = ["build", "main"]

_TRIAL_MARGIN = 5.0
"""Seconds that a trial of a silent replica is respected for beyond an attempt's own time."""

_logger = get_logger(__name__)


@asynccontextmanager
async def build(
    settings: GatewaySettings,
    *,
    environment: Mapping[str, str] | None = None,
    draining: Draining | None = None,
    clock: Clock | None = None,
    policy: BreakerPolicy = DEFAULT_POLICY,
    timeouts: Timeouts | None = None,
) -> AsyncIterator[Service]:
    """The gateway, wired and ready to be served; the local model runs as long as the block lasts.

    `environment` holds the keys that the agents file names, by default this process's variables. Raises
    ConfigurationError where the settings, the file or a missing key do not allow a start.
    """
    config = await asyncio.to_thread(_config, settings.agents_file)
    chosen = plan(settings, config, os.environ if environment is None else environment)
    clock, draining = clock or SystemClock(), draining or Draining()
    async with AsyncExitStack() as stack:
        store = await _store(settings, stack)
        if not chosen.providers:
            chosen = await _local(settings, stack)
        limits = EndpointLimits(
            settings.connect_timeout_seconds,
            settings.idle_timeout_seconds,
            settings.max_connections,
            settings.trace_content,
        )
        endpoints: dict[str, Endpoint] = {}
        for provider in chosen.providers:
            endpoints[provider.name] = endpoint = Endpoint(provider, limits)
            stack.push_async_callback(endpoint.aclose)
        table = RouteTable(
            endpoints,
            clock,
            routes=chosen.routes,
            open_providers=chosen.open_providers,
            defaults=chosen.defaults,
            policy=policy,
        )
        await stack.enter_async_context(_shared(settings, store, table, clock))
        calls = await stack.enter_async_context(_calls(settings, store, draining, clock))
        servicer = GatewayServicer(
            roster(config),
            table,
            Calling(table, timeouts or Timeouts(settings.attempt_timeout_seconds)),
            calls,
            settings.call_timeout_seconds,
            draining,
        )

        def register(server: grpc.aio.Server) -> None:
            gateway_pb2_grpc.add_GatewayServiceServicer_to_server(servicer, server)

        yield Service("parley.v1.GatewayService", register)


def _config(path: Path | None) -> ConfigFile:
    return configuration.defaults() if path is None else configuration.load(path)


async def _store(settings: GatewaySettings, stack: AsyncExitStack) -> Store:
    try:
        return await stack.enter_async_context(open_store(settings.store, "gateway"))
    except (ValueError, StorageError) as error:
        raise ConfigurationError(f"PARLEY_STORE: {error}") from None


@asynccontextmanager
async def _calls(
    settings: GatewaySettings, store: Store, draining: Draining, clock: Clock
) -> AsyncIterator[Calls]:
    """The calls, kept while the block runs; those still running at its end have what is left of the grace."""
    kept = CallStore(store.documents, clock)
    try:
        await kept.prepare()
    except StorageError as error:
        raise ConfigurationError(f"PARLEY_STORE: {error}") from None
    calls = Calls(kept, settings.lease_seconds)
    loop = asyncio.get_running_loop()
    keeping = asyncio.create_task(calls.keep())
    began: list[float] = []
    stopping = asyncio.create_task(draining.wait())
    stopping.add_done_callback(lambda _: began.append(loop.time()))
    try:
        yield calls
    finally:
        since = began[0] if began else loop.time()
        await calls.close(max(since + settings.grace_seconds - loop.time(), 0.0))
        for task in (keeping, stopping):
            task.cancel()
        await asyncio.gather(keeping, stopping, return_exceptions=True)


@asynccontextmanager
async def _shared(
    settings: GatewaySettings, store: Store, table: RouteTable, clock: Clock
) -> AsyncIterator[None]:
    """Breakers are shared with other replicas while the block runs."""
    sharing = BreakerSharing(
        store.documents,
        table,
        clock,
        secrets.token_hex(8),
        trial_seconds=settings.attempt_timeout_seconds + _TRIAL_MARGIN,
        adopt_at_start=not store.exclusive,
    )
    try:
        await sharing.prepare()
    except StorageError as error:
        raise ConfigurationError(f"PARLEY_STORE: {error}") from None
    table.share(sharing.may_try)
    running = asyncio.create_task(sharing.run())
    try:
        yield
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def _local(settings: GatewaySettings, stack: AsyncExitStack) -> Plan:
    """The model on this machine, or a plan without routes where that is switched off."""
    if settings.local_model == "off":
        return Plan((), (), ())
    reason = available()
    if reason is not None:
        raise ConfigurationError(reason)
    try:
        model = await stack.enter_async_context(local_model())
    except LocalModelError as error:
        raise ConfigurationError(str(error)) from None
    _logger.info("no key is set: a small model on this machine answers", model=model.model)
    return local_plan(model.base_url, model.model, model.context_tokens, model.slots)


async def main() -> None:
    """Serves until stopped."""
    settings = GatewaySettings.load()
    configure_logging(settings.log_level)
    stop_telemetry = configure_telemetry("parley-gateway")
    draining = Draining()
    try:
        async with build(settings, draining=draining) as service:
            await serve([service], settings.server(), draining=draining)
    finally:
        stop_telemetry()


if __name__ == "__main__":
    sys.exit(entry.run(main))
