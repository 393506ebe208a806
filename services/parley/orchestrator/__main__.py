"""The orchestrator process: reads settings, creates the parts and serves them."""

import asyncio
import importlib
import os
import secrets
import socket
import sys
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager, nullcontext, suppress
from datetime import timedelta
from functools import partial
from pathlib import Path

from msgspec.structs import replace

from parley.orchestrator import metrics
from parley.orchestrator.allowance.allowance import Allowance
from parley.orchestrator.allowance.usage import TENANT_USE, MeteredLog, TenantUsage
from parley.orchestrator.api.answer_for_hooks import write_answer
from parley.orchestrator.api.folded_debates import FoldedDebates
from parley.orchestrator.api.servicer import OrchestratorServicer
from parley.orchestrator.audit.parts import AUDIT_LOGS, AuditLogs
from parley.orchestrator.audit.retention import remove_old_parts
from parley.orchestrator.audit.trail import AuditTrail
from parley.orchestrator.audit.writer import AuditWriter
from parley.orchestrator.delivery.deliveries import DELIVERIES, DeliveryStore
from parley.orchestrator.delivery.hooks import HOOKS
from parley.orchestrator.delivery.service import create_service
from parley.orchestrator.engine.debate_deleter import DebateDeleter
from parley.orchestrator.engine.debate_importer import DebateImporter
from parley.orchestrator.engine.execution import leaf_exceptions
from parley.orchestrator.engine.feedback_reporter import FeedbackReporter
from parley.orchestrator.engine.format import Formats
from parley.orchestrator.engine.inbox import INBOX, Inbox
from parley.orchestrator.engine.intake import Intake
from parley.orchestrator.engine.owner import OwnerDependencies
from parley.orchestrator.engine.runner import Runner
from parley.orchestrator.formats.shipped import all_formats
from parley.orchestrator.keys.authenticator import ApiKeyAuthenticator
from parley.orchestrator.keys.store import KEYS, KeyStore
from parley.orchestrator.keys.tenant_keys import TenantKeys
from parley.orchestrator.keys.uses import KeyUses
from parley.orchestrator.links.authenticator import LinkAuthenticator
from parley.orchestrator.links.tokens import LinkTokens
from parley.orchestrator.links.uses import LINK_USES, LinkUses
from parley.orchestrator.log.deletions import DELETIONS, DeletionStore
from parley.orchestrator.log.feedback import FEEDBACK, FeedbackStore
from parley.orchestrator.log.imported_receipts import IMPORTED_RECEIPTS, ImportedReceiptStore
from parley.orchestrator.log.index import DEBATES, DebateIndex
from parley.orchestrator.model.times import duration
from parley.orchestrator.peers.agents import Agents
from parley.orchestrator.peers.services import Convergence, Memory, Ratings, Services
from parley.orchestrator.phases.follow_up import follow_up
from parley.orchestrator.roles.catalogue import RoleFileError, Roles, load_shipped_roles
from parley.orchestrator.settings import OrchestratorSettings
from parley.orchestrator.watch.deltas import DeltaBroker, DeltaForwarder
from parley.orchestrator.watch.feed import Feeds
from parley.orchestrator.watch.slow_readers import SlowReaders
from parley.orchestrator.watch.watcher import DebateWatcher
from parley.runtime.byte_budget import ByteBudget
from parley.runtime.channel import Connect, channel
from parley.runtime.clock import Clock, SystemClock
from parley.runtime.comma_lists import split_list
from parley.runtime.draining import Draining
from parley.runtime.entry import run
from parley.runtime.errors import ConfigurationError
from parley.runtime.identity.guard import Authenticator
from parley.runtime.logs import configure_logging
from parley.runtime.peers import watch_peers
from parley.runtime.server import Service, serve
from parley.runtime.tasks import background_task
from parley.runtime.telemetry import configure_telemetry
from parley.storage.opening import Store, lock_store, open_store, refuse_unusable_store
from parley.storage.ports import StorageError
from parley.v1 import orchestrator_pb2, orchestrator_pb2_grpc
from parley.v1.debate_pb2 import DebateLimits
from parley.v1.gateway_pb2_grpc import GatewayServiceStub
from parley.v1.memory_pb2_grpc import MemoryServiceStub
from parley.v1.ratings_pb2_grpc import RatingsServiceStub

NAME = "orchestrator"
_ALL_ADDRESSES = ("0.0.0.0", "[::]")  # noqa: S104 - compared with, not bound to
_IMPORTED_AT_START = (
    "cloudevents.core.formats.json",
    "cloudevents.core.v1.event",
    "parley.orchestrator.api.decision",
    "parley.orchestrator.api.report",
    "parley.orchestrator.delivery.channels.chat",
    "parley.orchestrator.delivery.channels.file",
    "parley.orchestrator.delivery.channels.mail",
    "parley.orchestrator.delivery.channels.webhook",
    "parley.orchestrator.outgoing.guard",
    "parley.orchestrator.phases.analysis.analyse",
    "parley.orchestrator.phases.record",
    "parley.receipts.envelope",
    "parley.receipts.verification",
)
"""What a command imports on use. In a server that would hold up all debates, once each, for up to a fifth of a second."""


@asynccontextmanager
async def build(
    settings: OrchestratorSettings,
    *,
    draining: Draining | None = None,
    formats: Formats | None = None,
    roles: Roles | None = None,
    reading: bool = False,
    own_folder: Path | None = None,
    connect: Connect = channel,
) -> AsyncGenerator[Service, None]:
    """Create an orchestrator and run its debates while the block runs. They are released once it drains.

    It uses `formats` and `roles`, by default those that Parley ships. `reading`: debates are only read, by this process alone.
    `own_folder`: where the system keeps the key of its receipts that it makes for itself, if the settings name none.
    `connect` opens the channels to the services that it calls.

    Raises:
        ConfigurationError: a setting cannot be used.
        PartFailedError: a part stopped, so that no debate is run any more; the block was cancelled.
    """
    metrics.initialize()
    formats = formats or all_formats()
    if not reading:
        formats.get(formats.default())  # imported now, so that the first debate does not wait for it
    roles = _check_roles(roles, formats) if roles is not None else load_shipped_roles()
    draining, deltas, clock = draining or Draining(), DeltaBroker(), SystemClock()
    channels = settings.channels()
    to_replicas = partial(channel, settings=replace(channels, tls_name=settings.advertise_name))
    async with (
        _open_store(settings, reading=reading) as store,
        connect(settings.gateway, channels) as gateway,
        connect(settings.convergence, channels) as convergence,
        connect(settings.ratings, channels) as ratings,
        connect(settings.memory, channels) as memory,
    ):
        index = DebateIndex(store.documents, settings.resolve_address())
        owner = f"{socket.gethostname()}-{os.getpid()}-{secrets.token_hex(4)}"
        usage = TenantUsage(store.documents, clock, owner)
        log = MeteredLog(store.log, usage)
        large_requests = ByteBudget(settings.request_bytes)
        allowance = Allowance(settings.tenant_limits(), usage, index, clock, large_requests)
        web = settings.create_web_sources(clock.now)
        feeds = Feeds(store.log, heartbeat_seconds=settings.heartbeat_seconds, wake_queues=deltas.wake_queues)
        dependencies = OwnerDependencies(
            log=log,
            index=index,
            inbox=Inbox(store.documents),
            agents=Agents(gateway, deltas.publish),
            services=Services(
                Convergence(convergence, clock),
                Ratings(ratings, clock),
                Memory(memory, clock),
                settings.create_issue_tracker(clock),
                web,
            ),
            formats=formats,
            follow_up=follow_up,
            follow_up_limits=DebateLimits(total=duration(settings.follow_up_seconds)),
            clock=clock,
            publish=feeds.offer,
            end_publishing=feeds.end_offers,
            owner=owner,
            lease_heartbeat_seconds=settings.lease_seconds / 3,
        )
        runner = Runner(dependencies, settings.runner_settings(exclusive=store.exclusive))
        feedback = FeedbackStore(store.documents)
        reporter = FeedbackReporter(
            feedback, dependencies.services.ratings, dependencies.services.memory, clock
        )
        deletion_store, deliveries = DeletionStore(store.documents), DeliveryStore(store.documents)
        imported_receipts = ImportedReceiptStore(store.documents)
        deletions = DebateDeleter(
            log=log,
            index=index,
            inbox=dependencies.inbox,
            feedback=feedback,
            deliveries=deliveries,
            imported_receipts=imported_receipts,
            store=deletion_store,
            services=dependencies.services,
            clock=clock,
            retention=settings.retention(),
        )
        keys = KeyStore(store.documents)
        uses = KeyUses(keys, clock)
        links = settings.link_rules()
        debates, channels_of_hooks = FoldedDebates(store.log, index), settings.create_channels(clock)
        delivery = create_service(
            store.documents,
            store.log,
            index,
            clock,
            create_channel=channels_of_hooks.create,
            write_answer=partial(write_answer, debates, formats),
            links=links,
            kept_for=timedelta(days=settings.delivery_days),
        )
        audit_logs = AuditLogs(store.log, store.documents)
        acts = AuditWriter(audit_logs, clock)
        forwarding = DeltaForwarder(index, feeds, deltas, dependencies.owner, to_replicas)
        servicer = OrchestratorServicer(
            log=store.log,
            index=index,
            debates=debates,
            formats=formats,
            roles=roles,
            intake=Intake(log, index, dependencies.inbox, deletion_store, runner, clock),
            gateway=gateway,
            watcher=DebateWatcher(store.log, feeds, deltas, forwarding),
            draining=draining,
            owner=dependencies.owner,
            feedback=feedback,
            reporter=reporter,
            deletions=deletions,
            allowance=allowance,
            audit_logs=audit_logs,
            keys=TenantKeys(keys, clock, is_enabled="key" in settings.auth_methods),
            hooks=delivery.hooks,
            channels=channels_of_hooks,
            links=links.tokens,
            link_uses=LinkUses(store.documents),
            agents=GatewayServiceStub(gateway),
            memory=MemoryServiceStub(memory),
            ratings=RatingsServiceStub(ratings),
            receipt_keys=settings.receipt_key_source(own_folder),
            importer=DebateImporter(log, index, imported_receipts, deletion_store, clock),
            slow_readers=SlowReaders(settings.reader_seconds),
            web=web,
        )
        service = Service(
            orchestrator_pb2.DESCRIPTOR.services_by_name["OrchestratorService"].full_name,
            lambda server: orchestrator_pb2_grpc.add_OrchestratorServiceServicer_to_server(servicer, server),
            lambda address: _set_own_address(index, address),
            authenticators=_create_authenticators(settings, uses, links.tokens, clock),
            admission=allowance.admit_call,
            # A process that only reads cannot write, and serves the user of its store alone.
            acts=None if reading else AuditTrail(acts).record_call,
            ready=store.ping,
        )
        async with (
            background_task("counting what tenants use", usage.run()) if not reading else nullcontext(),
            background_task("storing when keys are used", uses.run()) if not reading else nullcontext(),
            background_task("recording acts", acts.run()) if not reading else nullcontext(),
            background_task("running debates", _run(runner)),
            background_task("reporting feedback", reporter.run()),
            background_task("delivering to hooks", delivery.run()) if not reading else nullcontext(),
            # A process that only reads debates deletes none.
            background_task("deleting debates", deletions.run()) if settings.max_debates else nullcontext(),
            background_task(
                "removing old acts", remove_old_parts(audit_logs, clock, settings.audit_retention_days)
            )
            if settings.max_debates
            else nullcontext(),
            background_task("releasing debates", _drain_on_stop(draining, runner)),
        ):
            try:
                yield service
            finally:
                # With the store away this would wait for it: leases end by themselves.
                with suppress(TimeoutError, StorageError):
                    async with asyncio.timeout(draining.seconds_left(settings.grace_seconds)):
                        await runner.drain()
                        if not reading:
                            await delivery.finish()
                            await usage.publish()
                            await uses.store()
                            await acts.flush()


@asynccontextmanager
async def _open_store(settings: OrchestratorSettings, *, reading: bool) -> AsyncGenerator[Store, None]:
    async with AsyncExitStack() as stack:
        with refuse_unusable_store():
            store = await stack.enter_async_context(
                open_store(settings.store, NAME, wrapping=settings.wrapping_keys(), reading=reading)
            )
            await store.documents.prepare(
                DEBATES,
                INBOX,
                FEEDBACK,
                DELETIONS,
                KEYS,
                TENANT_USE,
                HOOKS,
                DELIVERIES,
                IMPORTED_RECEIPTS,
                AUDIT_LOGS,
                LINK_USES,
            )
        yield store


def _check_roles(roles: Roles, formats: Formats) -> Roles:
    """Raise ConfigurationError if no format can use a role file: better at the start than in a debate."""
    try:
        roles.check([duty for each in formats.all() for duty in (each.debater_sections, each.judge_sections)])
    except RoleFileError as error:
        raise ConfigurationError(str(error)) from None
    return roles


def _create_authenticators(
    settings: OrchestratorSettings, uses: KeyUses, links: LinkTokens | None, clock: Clock
) -> tuple[Authenticator, ...]:
    """Return the authenticators that the settings name, in addition to those of every service."""
    keys = [ApiKeyAuthenticator(uses.keys, clock, uses)] if "key" in settings.auth_methods else []
    return (
        *keys,
        *([LinkAuthenticator(links, clock)] if links is not None else []),
        *([_create_token_authenticator(settings, clock)] if "jwt" in settings.auth_methods else []),
    )


def _create_token_authenticator(settings: OrchestratorSettings, clock: Clock) -> Authenticator:
    # Imported late: it is large, and most deployments do not use it.
    from parley.runtime.identity.json_web_tokens import JsonWebTokens, TokenRules
    from parley.runtime.identity.signing_keys import SigningKeys, key_fetcher

    rules = TokenRules(
        issuer=settings.jwt_issuer,
        audience=settings.jwt_audience,
        algorithms=tuple(split_list(settings.jwt_algorithms)),
        tenant_claim=settings.jwt_tenant_claim,
        roles_claim=settings.jwt_roles_claim,
    )
    return JsonWebTokens(
        rules, SigningKeys(key_fetcher(settings.jwt_issuer, settings.jwt_keys_url or None), clock)
    )


def _set_own_address(index: DebateIndex, address: str) -> None:
    """Set the address by which other replicas reach this one, unless the settings name it."""
    host, _, port = address.rpartition(":")
    if not index.address:
        # A wildcard is no address. If host names do not resolve between machines, PARLEY_ADVERTISE must be set.
        index.address = f"{socket.gethostname()}:{port}" if host in _ALL_ADDRESSES else address


async def _run(runner: Runner) -> None:
    try:
        await runner.run()
    except ExceptionGroup as group:
        raise next(leaf_exceptions(group)) from group


async def _drain_on_stop(draining: Draining, runner: Runner) -> None:
    """Release debates as soon as the server starts to stop, not after its last stream."""
    await draining.wait()
    await runner.drain()


async def serve_orchestrator() -> None:
    """Serve until the process is asked to stop."""
    settings = OrchestratorSettings.load()
    configure_logging(settings.log_level)
    stop_telemetry = configure_telemetry("parley-orchestrator")
    draining, formats = Draining(), all_formats()
    formats.all()
    for each in _IMPORTED_AT_START:
        importlib.import_module(each)
    try:
        with lock_store(settings.require_store(), NAME, alone=True):
            async with (
                watch_peers(settings.peers(), settings.channels()),
                build(settings, draining=draining, formats=formats) as service,
            ):
                await serve([service], settings.server(*service.authenticators), draining=draining)
    finally:
        stop_telemetry()


def main() -> int:
    """Run the orchestrator; return its exit code."""
    return run(serve_orchestrator)


if __name__ == "__main__":
    sys.exit(main())
