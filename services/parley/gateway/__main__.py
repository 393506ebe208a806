"""Wire the gateway and serve it."""

import asyncio
import os
import secrets
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from importlib import import_module

from parley.config.file import ConfigFile
from parley.gateway.agents_file import AgentsFile, AgentsFileChange, list_key_files, read_file
from parley.gateway.calls.registry import CallRegistry
from parley.gateway.calls.store import CallStore
from parley.gateway.discovery import USUAL_SERVERS, UsualServer, find_servers, servers_on
from parley.gateway.file_watch import FileWatch
from parley.gateway.local_model.catalogue import MODELS
from parley.gateway.local_model.model import LocalModelError, local_model
from parley.gateway.plan import Offers, Plan, find_ignored_model, found_plan, local_plan, roster
from parley.gateway.prompt.document_cache import DocumentCache
from parley.gateway.providers import echo, local
from parley.gateway.providers.kind import ProviderKind
from parley.gateway.providers.kinds import KINDS
from parley.gateway.routing.breaker import DEFAULT_POLICY, BreakerPolicy
from parley.gateway.routing.breaker_sharing import BreakerSharing
from parley.gateway.routing.call import Timeouts
from parley.gateway.routing.fallback import Fallback
from parley.gateway.routing.table import RouteTable
from parley.gateway.servicer import GatewayServicer
from parley.gateway.settings import GatewaySettings
from parley.runtime import entry
from parley.runtime.clock import Clock, SystemClock
from parley.runtime.comma_lists import split_list
from parley.runtime.draining import Draining
from parley.runtime.errors import ConfigurationError
from parley.runtime.logs import configure_logging, get_logger
from parley.runtime.server import Service, serve
from parley.runtime.tasks import background_task
from parley.runtime.telemetry import configure_telemetry
from parley.storage.opening import Store, lock_store, open_store, refuse_unusable_store
from parley.v1 import gateway_pb2, gateway_pb2_grpc

_TRIAL_MARGIN = 5.0
"""Seconds that a trial of a silent replica is respected for beyond a route attempt's own time."""

_logger = get_logger(__name__)


@asynccontextmanager
async def build(  # noqa: PLR0913 (each stands in for one thing that the process would bring)
    settings: GatewaySettings,
    *,
    environment: Mapping[str, str] | None = None,
    draining: Draining | None = None,
    clock: Clock | None = None,
    policy: BreakerPolicy = DEFAULT_POLICY,
    timeouts: Timeouts | None = None,
    hangup: asyncio.Event | None = None,
    alone: bool = False,
    reading: bool = False,
    expects_debate: bool = False,
    kinds: Mapping[str, ProviderKind] = KINDS,
    evaluators: bool = False,
    read_config: Callable[[], ConfigFile] | None = None,
    usual_servers: Sequence[UsualServer] = USUAL_SERVERS,
) -> AsyncIterator[Service]:
    """Yield the gateway, wired and ready to be served; the local model runs as long as the block lasts.

    Args:
        settings: Of the process.
        environment: Holds the keys that the agents file names; None: the variables of this process.
        draining: Set when the process stops.
        clock: Tells the time.
        policy: When a provider that fails is left alone.
        timeouts: Of calls and of their attempts; None: those of the settings.
        hangup: Set when the agents file is to be read again; it is, too, when it changes.
        alone: No other process uses the store.
        reading: Nor does this one ask any model.
        expects_debate: A debate begins at once: what it will ask of the providers first is asked while other services start.
        kinds: The kinds of providers that the file may name.
        evaluators: The file may also list evaluators alone.
        read_config: Reads the file in place of what its path names.
        usual_servers: What is looked for where nothing is configured.

    Raises:
        ConfigurationError: The settings, the file or a missing key do not allow a start.
    """
    clock, draining = clock or SystemClock(), draining or Draining()
    read = read_config or partial(read_file, settings.agents_file, evaluators=evaluators)
    file = AgentsFile(settings, read, os.environ if environment is None else environment, kinds)
    config, chosen = await file.load()
    agents = roster(config)
    async with AsyncExitStack() as stack:
        chosen, found = await _complete_plan(chosen, settings, config, usual_servers, stack)
        offers = Offers(settings, {**kinds, **_list_own_kinds(settings)}, stack)
        table = RouteTable(await offers.create(chosen), clock, policy)
        if expects_debate:
            learning = table.learn_used(agents.agents.values())
            await stack.enter_async_context(background_task("learning about models", learning))
        store = await _open_store(settings, stack, reading=reading)
        await stack.enter_async_context(_share_breakers(settings, store, table, clock))
        calls = await stack.enter_async_context(_open_calls(settings, store, draining, clock, alone=alone))
        servicer = GatewayServicer(
            agents,
            table,
            Fallback(table, timeouts or _timeouts(settings)),
            calls,
            draining,
            settings.call_timeout_seconds,
            DocumentCache(settings.document_cache_bytes),
            found,
            find_ignored_model(settings, chosen),
        )
        if settings.agents_file is not None:
            change = AgentsFileChange(file, offers, servicer, list_key_files(config))
            watch = FileWatch(
                settings.agents_file, hangup or asyncio.Event(), change.apply, lambda: change.key_files
            )
            await stack.enter_async_context(background_task("following the agents file", watch.run()))
        register = partial(gateway_pb2_grpc.add_GatewayServiceServicer_to_server, servicer)
        yield Service("parley.v1.GatewayService", register, ready=store.ping)


async def _complete_plan(
    chosen: Plan,
    settings: GatewaySettings,
    config: ConfigFile,
    usual: Sequence[UsualServer],
    stack: AsyncExitStack,
) -> tuple[Plan, tuple[gateway_pb2.FoundServer, ...]]:
    """Return a plan that has a provider, and the servers that were found for it.

    A plan without one is replaced: by one of the servers that answer on this machine, or of the local model, which is started.
    """
    if chosen.providers:
        return chosen, ()
    found = await _find_servers(settings, config, usual)
    return found_plan(settings.model, found) if found else await _start_local_model(settings, stack), found


def _list_own_kinds(settings: GatewaySettings) -> dict[str, ProviderKind]:
    """Return the kinds of providers that no file names, by name."""
    own = (local.KIND, echo.KIND) if settings.echo else (local.KIND,)
    return {each.name: each for each in own}


def _timeouts(settings: GatewaySettings) -> Timeouts:
    return Timeouts(
        settings.route_attempt_timeout_seconds,
        hedge_seconds=settings.hedge_after_seconds,
        call_seconds=settings.call_timeout_seconds,
    )


async def _open_store(settings: GatewaySettings, stack: AsyncExitStack, *, reading: bool) -> Store:
    with refuse_unusable_store():
        return await stack.enter_async_context(
            open_store(settings.store, "gateway", wrapping=settings.wrapping_keys(), reading=reading)
        )


@asynccontextmanager
async def _open_calls(
    settings: GatewaySettings, store: Store, draining: Draining, clock: Clock, *, alone: bool
) -> AsyncIterator[CallRegistry]:
    """Yield the calls, kept while the block runs; those still running at its end have what is left of the grace."""
    kept = CallStore(store.documents, clock)
    with refuse_unusable_store():
        await kept.prepare()
    calls = CallRegistry(kept, settings.lease_seconds, alone=alone)
    loop = asyncio.get_running_loop()
    began: list[float] = []

    async def note_drain_start() -> None:
        await draining.wait()
        began.append(loop.time())

    async with (
        background_task("keeping the calls", calls.keep()),
        background_task("the stop", note_drain_start()),
    ):
        try:
            yield calls
        finally:
            since = began[0] if began else loop.time()
            await calls.close(max(since + settings.grace_seconds - loop.time(), 0.0))


@asynccontextmanager
async def _share_breakers(
    settings: GatewaySettings, store: Store, table: RouteTable, clock: Clock
) -> AsyncIterator[None]:
    """Share the breakers with other replicas while the block runs."""
    sharing = BreakerSharing(
        store.documents,
        table,
        clock,
        secrets.token_hex(8),
        trial_seconds=settings.route_attempt_timeout_seconds + _TRIAL_MARGIN,
    )
    with refuse_unusable_store():
        await sharing.prepare()
    table.share(sharing.may_send_trial)
    async with background_task("sharing the breakers", sharing.run()):
        yield


async def _find_servers(
    settings: GatewaySettings, config: ConfigFile, usual: Sequence[UsualServer]
) -> tuple[gateway_pb2.FoundServer, ...]:
    """Return the model servers of this machine, unless something says who is to answer."""
    wanted = settings.local_servers
    if wanted == "off" or settings.local_model in MODELS or any(each.declared for each in config.providers):
        return ()
    found = await find_servers(usual if wanted == "auto" else servers_on(map(int, split_list(wanted))))
    for each in found:
        _logger.info(
            "no key is set: a model server on this machine answers", server=each.title, url=each.base_url
        )
    return found


async def _start_local_model(settings: GatewaySettings, stack: AsyncExitStack) -> Plan:
    """Return the small model that runs in a process of ours, or a plan without routes if that is switched off."""
    if settings.local_model == "off":
        return Plan((), (), ())
    wanted = MODELS[settings.local_model] if settings.local_model in MODELS else next(iter(MODELS.values()))
    try:
        model = await stack.enter_async_context(local_model(wanted))
    except LocalModelError as error:
        raise ConfigurationError(str(error)) from None
    _logger.info("no key is set: a small model on this machine answers", model=model.model)
    return local_plan(model.base_url, model.model, model.context_tokens, model.slots)


async def main() -> None:
    """Serve until stopped."""
    settings = GatewaySettings.load()
    configure_logging(settings.log_level)
    stop_telemetry = configure_telemetry("parley-gateway")
    draining, hangup = Draining(), asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_signal_handler(signal.SIGHUP, hangup.set)
    try:
        with lock_store(settings.require_store(), "gateway"):
            async with build(settings, draining=draining, hangup=hangup) as service:
                import_module("parley.gateway.prompt.bounded_schema")  # so that no call waits for it
                await serve([service], settings.server(), draining=draining)
    finally:
        loop.remove_signal_handler(signal.SIGHUP)
        stop_telemetry()


if __name__ == "__main__":
    sys.exit(entry.run(main))
