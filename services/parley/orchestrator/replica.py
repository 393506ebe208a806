"""The parts of a replica, each made of those before it: what it keeps, what watchers read, what runs debates, what callers meet."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path

import grpc
from msgspec import Struct
from msgspec.structs import replace

from parley.orchestrator.allowance.allowance import Allowance
from parley.orchestrator.allowance.usage import MeteredLog, TenantUsage
from parley.orchestrator.api.answer_for_hooks import write_answer
from parley.orchestrator.api.folded_debates import FoldedDebates
from parley.orchestrator.api.servicer import OrchestratorServicer
from parley.orchestrator.audit.parts import AuditLogs
from parley.orchestrator.audit.writer import AuditWriter
from parley.orchestrator.delivery.channels.channels import Channels
from parley.orchestrator.delivery.deliveries import DeliveryStore
from parley.orchestrator.delivery.links import LinkRules
from parley.orchestrator.delivery.service import DeliveryService, create_service
from parley.orchestrator.engine.debate_deleter import DebateDeleter
from parley.orchestrator.engine.debate_importer import DebateImporter
from parley.orchestrator.engine.feedback_reporter import FeedbackReporter
from parley.orchestrator.engine.format import Formats
from parley.orchestrator.engine.inbox import Inbox
from parley.orchestrator.engine.intake import Intake
from parley.orchestrator.engine.owner import OwnerDependencies
from parley.orchestrator.engine.runner import Runner
from parley.orchestrator.keys.store import KeyStore
from parley.orchestrator.keys.tenant_keys import TenantKeys
from parley.orchestrator.keys.uses import KeyUses
from parley.orchestrator.links.uses import LinkUses
from parley.orchestrator.log.deletions import DeletionStore
from parley.orchestrator.log.feedback import FeedbackStore
from parley.orchestrator.log.imported_receipts import ImportedReceiptStore
from parley.orchestrator.log.index import DebateIndex
from parley.orchestrator.model.times import duration
from parley.orchestrator.peers.agents import Agents
from parley.orchestrator.peers.services import Convergence, Memory, Ratings, Services
from parley.orchestrator.phases.follow_up import follow_up
from parley.orchestrator.roles.catalogue import Roles
from parley.orchestrator.settings import OrchestratorSettings
from parley.orchestrator.watch.deltas import DeltaBroker, DeltaForwarder
from parley.orchestrator.watch.feed import Feeds
from parley.orchestrator.watch.slow_readers import SlowReaders
from parley.orchestrator.watch.watcher import DebateWatcher
from parley.runtime.byte_budget import ByteBudget
from parley.runtime.channel import Connect, channel
from parley.runtime.clock import Clock
from parley.runtime.draining import Draining
from parley.storage.opening import Store
from parley.storage.ports import Log
from parley.v1.debate_pb2 import DebateLimits
from parley.v1.gateway_pb2_grpc import GatewayServiceStub
from parley.v1.memory_pb2_grpc import MemoryServiceStub
from parley.v1.ratings_pb2_grpc import RatingsServiceStub


class Replica(Struct, frozen=True):
    """What all parts of a replica share.

    Attributes:
        name: It claims debates under this name, new for every process.
    """

    name: str
    settings: OrchestratorSettings
    formats: Formats
    roles: Roles
    clock: Clock
    draining: Draining


class Peers(Struct, frozen=True):
    """Channels to the services that the orchestrator calls."""

    gateway: grpc.aio.Channel
    convergence: grpc.aio.Channel
    ratings: grpc.aio.Channel
    memory: grpc.aio.Channel


class Records(Struct, frozen=True):
    """What is kept in the store.

    Attributes:
        log: Of debates, for those who read it.
        metered_log: The same log for those who write it: what they write counts as use of the tenant.
    """

    log: Log
    metered_log: MeteredLog
    index: DebateIndex
    usage: TenantUsage
    inbox: Inbox
    feedback: FeedbackStore
    deletions: DeletionStore
    deliveries: DeliveryStore
    imported_receipts: ImportedReceiptStore
    keys: KeyStore
    link_uses: LinkUses
    audit_logs: AuditLogs


class Watching(Struct, frozen=True):
    """What those who follow debates read."""

    deltas: DeltaBroker
    feeds: Feeds
    watcher: DebateWatcher
    debates: FoldedDebates


class Engine(Struct, frozen=True):
    """What runs debates, and brings them in and out; `services` are those that it calls."""

    services: Services
    runner: Runner
    intake: Intake
    importer: DebateImporter
    deleter: DebateDeleter
    reporter: FeedbackReporter


class Access(Struct, frozen=True):
    """What tells who calls, how much of what they may use, and what they did."""

    allowance: Allowance
    key_uses: KeyUses
    links: LinkRules
    acts: AuditWriter


class Parts(Struct, frozen=True):
    """All parts of a replica; `channels` and `delivery` are those of hooks."""

    records: Records
    watching: Watching
    engine: Engine
    access: Access
    channels: Channels
    delivery: DeliveryService


@asynccontextmanager
async def open_peers(settings: OrchestratorSettings, connect: Connect) -> AsyncGenerator[Peers, None]:
    """Open the channels while the block runs. No service need answer yet."""
    rules = settings.channels()
    async with (
        connect(settings.gateway, rules) as gateway,
        connect(settings.convergence, rules) as convergence,
        connect(settings.ratings, rules) as ratings,
        connect(settings.memory, rules) as memory,
    ):
        yield Peers(gateway, convergence, ratings, memory)


def create_parts(replica: Replica, store: Store, peers: Peers) -> Parts:
    """Return the parts of a replica. None of them runs yet."""
    records = _create_records(replica, store)
    watching = _create_watching(replica, records)
    engine = _create_engine(replica, records, watching, peers, exclusive=store.exclusive)
    access = _create_access(replica, records)
    channels = replica.settings.create_channels(replica.clock)
    delivery = create_service(
        store.documents,
        store.log,
        records.index,
        replica.clock,
        create_channel=channels.create,
        write_answer=partial(write_answer, watching.debates, replica.formats),
        links=access.links,
        kept_for=timedelta(days=replica.settings.delivery_days),
    )
    return Parts(records, watching, engine, access, channels, delivery)


def _create_records(replica: Replica, store: Store) -> Records:
    documents = store.documents
    usage = TenantUsage(documents, replica.clock, replica.name)
    return Records(
        log=store.log,
        metered_log=MeteredLog(store.log, usage),
        index=DebateIndex(documents, replica.settings.resolve_address()),
        usage=usage,
        inbox=Inbox(documents),
        feedback=FeedbackStore(documents),
        deletions=DeletionStore(documents),
        deliveries=DeliveryStore(documents),
        imported_receipts=ImportedReceiptStore(documents),
        keys=KeyStore(documents),
        link_uses=LinkUses(documents),
        audit_logs=AuditLogs(store.log, documents),
    )


def _create_watching(replica: Replica, records: Records) -> Watching:
    settings, log, index = replica.settings, records.log, records.index
    deltas = DeltaBroker()
    feeds = Feeds(log, heartbeat_seconds=settings.heartbeat_seconds, wake_queues=deltas.wake_queues)
    to_replicas = partial(channel, settings=replace(settings.channels(), tls_name=settings.advertise_name))
    forwarder = DeltaForwarder(index, feeds, deltas, replica.name, to_replicas)
    return Watching(deltas, feeds, DebateWatcher(log, feeds, deltas, forwarder), FoldedDebates(log, index))


def _create_engine(
    replica: Replica, records: Records, watching: Watching, peers: Peers, *, exclusive: bool
) -> Engine:
    """Return what runs debates; `exclusive`: no other process can use the store."""
    settings, clock, log, index = replica.settings, replica.clock, records.metered_log, records.index
    dependencies = _create_owner_dependencies(replica, records, watching, peers)
    services = dependencies.services
    runner = Runner(dependencies, settings.runner_settings(exclusive=exclusive))
    return Engine(
        services=services,
        runner=runner,
        intake=Intake(log, index, records.inbox, records.deletions, runner, clock),
        importer=DebateImporter(log, index, records.imported_receipts, records.deletions, clock),
        deleter=DebateDeleter(
            log=log,
            index=index,
            inbox=records.inbox,
            feedback=records.feedback,
            deliveries=records.deliveries,
            imported_receipts=records.imported_receipts,
            store=records.deletions,
            services=services,
            clock=clock,
            retention=settings.retention(),
        ),
        reporter=FeedbackReporter(records.feedback, services.ratings, services.memory, clock),
    )


def _create_owner_dependencies(
    replica: Replica, records: Records, watching: Watching, peers: Peers
) -> OwnerDependencies:
    settings, clock = replica.settings, replica.clock
    return OwnerDependencies(
        log=records.metered_log,
        index=records.index,
        inbox=records.inbox,
        agents=Agents(peers.gateway, watching.deltas.publish),
        services=Services(
            Convergence(peers.convergence, clock),
            Ratings(peers.ratings, clock),
            Memory(peers.memory, clock),
            settings.create_issue_tracker(clock),
            settings.create_web_sources(clock.now),
        ),
        formats=replica.formats,
        follow_up=follow_up,
        follow_up_limits=DebateLimits(total=duration(settings.follow_up_seconds)),
        clock=clock,
        publish=watching.feeds.offer,
        end_publishing=watching.feeds.end_offers,
        owner=replica.name,
        lease_heartbeat_seconds=settings.lease_seconds / 3,
    )


def _create_access(replica: Replica, records: Records) -> Access:
    settings, clock = replica.settings, replica.clock
    large_requests = ByteBudget(settings.request_bytes)
    return Access(
        Allowance(settings.tenant_limits(), records.usage, records.index, clock, large_requests),
        KeyUses(records.keys, clock),
        settings.link_rules(),
        AuditWriter(records.audit_logs, clock),
    )


def create_servicer(
    replica: Replica, parts: Parts, peers: Peers, own_folder: Path | None
) -> OrchestratorServicer:
    """Return what answers calls. `own_folder`: where the key of receipts is made, if the settings name none."""
    settings, records, engine, access = replica.settings, parts.records, parts.engine, parts.access
    return OrchestratorServicer(
        log=records.log,
        index=records.index,
        debates=parts.watching.debates,
        formats=replica.formats,
        roles=replica.roles,
        intake=engine.intake,
        gateway=peers.gateway,
        watcher=parts.watching.watcher,
        draining=replica.draining,
        owner=replica.name,
        feedback=records.feedback,
        reporter=engine.reporter,
        deletions=engine.deleter,
        allowance=access.allowance,
        audit_logs=records.audit_logs,
        keys=TenantKeys(records.keys, replica.clock, is_enabled="key" in settings.auth_methods),
        hooks=parts.delivery.hooks,
        channels=parts.channels,
        links=access.links.tokens,
        link_uses=records.link_uses,
        agents=GatewayServiceStub(peers.gateway),
        memory=MemoryServiceStub(peers.memory),
        ratings=RatingsServiceStub(peers.ratings),
        receipt_keys=settings.receipt_key_source(own_folder),
        importer=engine.importer,
        slow_readers=SlowReaders(settings.reader_seconds),
        web=engine.services.web,
    )
