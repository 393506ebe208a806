"""Wires the gateway and serves it."""

import asyncio
import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path

import grpc
import httpx2

from parley import config as configuration
from parley.config import ConfigFile
from parley.gateway.agents import roster
from parley.gateway.breaker import DEFAULT_POLICY, BreakerPolicy
from parley.gateway.call import Timeouts
from parley.gateway.call_store import CallStore
from parley.gateway.calling import Calling
from parley.gateway.calls import Calls
from parley.gateway.endpoint import Endpoint, EndpointLimits, Provider
from parley.gateway.local_model import LocalModelError, available, local_model
from parley.gateway.prices import load_prices
from parley.gateway.providers import Plan, local_plan, plan, priced_as
from parley.gateway.reloading import Reloading
from parley.gateway.routes import Offer, RouteTable
from parley.gateway.servicer import GatewayServicer
from parley.gateway.settings import GatewaySettings
from parley.gateway.sharing import BreakerSharing
from parley.runtime import entry
from parley.runtime.beside import beside
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
    hangup: asyncio.Event | None = None,
    alone: bool = False,
) -> AsyncIterator[Service]:
    """The gateway, wired and ready to be served; the local model runs as long as the block lasts.

    `environment` holds the keys that the agents file names, by default this process's variables; the file is read
    again when it changes, and whenever `hangup` is set. `alone`: no other process uses the store. Raises
    ConfigurationError where the settings, the file or a missing key do not allow a start.
    """
    known = os.environ if environment is None else environment
    config = await asyncio.to_thread(_config, settings.agents_file)
    chosen = plan(settings, config, known)
    clock, draining = clock or SystemClock(), draining or Draining()
    async with AsyncExitStack() as stack:
        store = await _store(settings, stack)
        if not chosen.providers:
            chosen = await _local(settings, stack)
        offers = _Offers(settings, stack)
        table = RouteTable(await offers.of(chosen), clock, policy)
        await stack.enter_async_context(_shared(settings, store, table, clock))
        calls = await stack.enter_async_context(_calls(settings, store, draining, clock, alone=alone))
        servicer = GatewayServicer(
            roster(config),
            table,
            Calling(table, timeouts or _timeouts(settings)),
            calls,
            settings.call_timeout_seconds,
            draining,
        )

        async def reload() -> None:
            config = await asyncio.to_thread(_config, settings.agents_file)
            chosen = plan(settings, config, known)
            if config.empty:  # as it is for a moment while it is written
                raise ConfigurationError(f"{settings.agents_file}: is empty")
            if not chosen.providers and table.open_providers:
                raise ConfigurationError(
                    f"{settings.agents_file}: leaves no provider; name one, or set the variable of its key"
                )
            agents = roster(config)
            if chosen.providers:
                table.replace(await offers.of(chosen))
            servicer.roster = agents

        if settings.agents_file is not None:
            reloading = Reloading(settings.agents_file, hangup or asyncio.Event(), reload)
            await stack.enter_async_context(beside("following the agents file", reloading.run()))

        def register(server: grpc.aio.Server) -> None:
            gateway_pb2_grpc.add_GatewayServiceServicer_to_server(servicer, server)

        yield Service("parley.v1.GatewayService", register)


class _Offers:
    """Makes offers of plans, with one endpoint for a provider as long as nothing about it changes."""

    def __init__(self, settings: GatewaySettings, stack: AsyncExitStack) -> None:
        self._prices_file = settings.prices_file
        self._stack = stack
        self._endpoints: dict[str, Endpoint] = {}
        self._limits = EndpointLimits(
            settings.connect_timeout_seconds,
            settings.first_token_timeout_seconds,
            settings.idle_timeout_seconds,
            settings.max_connections,
            settings.trace_content,
        )

    async def of(self, chosen: Plan) -> Offer:
        """The offer of a plan. Raises ConfigurationError for a file of prices or an endpoint that cannot be used."""
        prices = await asyncio.to_thread(
            load_prices, self._prices_file, {each.name: priced_as(each) for each in chosen.providers}
        )
        self._endpoints = {each.name: self._endpoint(each) for each in chosen.providers}
        return Offer(self._endpoints, chosen.routes, chosen.open_providers, chosen.defaults, prices)

    def _endpoint(self, provider: Provider) -> Endpoint:
        known = self._endpoints.get(provider.name)
        if known is not None and known.provider == provider:
            return known
        try:
            made = Endpoint(provider, self._limits)
        except (httpx2.InvalidURL, ValueError) as error:
            raise ConfigurationError(f"provider {provider.name}: cannot be asked: {error}") from None
        self._stack.push_async_callback(made.aclose)  # calls that run may still be on it until the end
        return made


def _timeouts(settings: GatewaySettings) -> Timeouts:
    return Timeouts(settings.attempt_timeout_seconds, hedge_seconds=settings.hedge_after_seconds)


def _config(path: Path | None) -> ConfigFile:
    return configuration.defaults() if path is None else configuration.load(path)


async def _store(settings: GatewaySettings, stack: AsyncExitStack) -> Store:
    try:
        return await stack.enter_async_context(open_store(settings.store, "gateway"))
    except ValueError as error:
        raise ConfigurationError(str(error)) from None
    except StorageError as error:
        raise ConfigurationError(f"PARLEY_STORE: {error}") from None


@asynccontextmanager
async def _calls(
    settings: GatewaySettings, store: Store, draining: Draining, clock: Clock, *, alone: bool
) -> AsyncIterator[Calls]:
    """The calls, kept while the block runs; those still running at its end have what is left of the grace."""
    kept = CallStore(store.documents, clock)
    try:
        await kept.prepare()
    except StorageError as error:
        raise ConfigurationError(f"PARLEY_STORE: {error}") from None
    calls = Calls(kept, settings.lease_seconds, alone=alone)
    loop = asyncio.get_running_loop()
    began: list[float] = []

    async def note_the_time() -> None:
        await draining.wait()
        began.append(loop.time())

    async with beside("keeping the calls", calls.keep()), beside("the stop", note_the_time()):
        try:
            yield calls
        finally:
            since = began[0] if began else loop.time()
            await calls.close(max(since + settings.grace_seconds - loop.time(), 0.0))


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
    )
    try:
        await sharing.prepare()
    except StorageError as error:
        raise ConfigurationError(f"PARLEY_STORE: {error}") from None
    table.share(sharing.may_try)
    async with beside("sharing the breakers", sharing.run()):
        yield


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
    draining, hangup = Draining(), asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, hangup.set)
    try:
        async with build(settings, draining=draining, hangup=hangup) as service:
            await serve([service], settings.server(), draining=draining)
    finally:
        loop.remove_signal_handler(signal.SIGHUP)
        stop_telemetry()


if __name__ == "__main__":
    sys.exit(entry.run(main))
