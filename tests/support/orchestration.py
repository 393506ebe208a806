"""Orchestrators for tests: replicas that are started, drained and crashed, on one store, before a scripted gateway."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self, TypeVar

import grpc
from google.protobuf.message import Message

from parley.orchestrator.__main__ import build
from parley.orchestrator.engine.document_limits import DocumentLimits
from parley.orchestrator.engine.execution import FollowUp
from parley.orchestrator.engine.format import Formats
from parley.orchestrator.engine.inbox import INBOX, Inbox
from parley.orchestrator.engine.intake import Intake
from parley.orchestrator.engine.owner import OwnerDependencies
from parley.orchestrator.engine.runner import Runner, RunnerSettings
from parley.orchestrator.formats.panel.settings import SETTINGS
from parley.orchestrator.formats.shipped import all_formats
from parley.orchestrator.log.debate_record import DebateRecord
from parley.orchestrator.log.deletions import DELETIONS, DeletionStore
from parley.orchestrator.log.envelope import GENESIS, Envelope
from parley.orchestrator.log.index import DEBATES, DebateIndex
from parley.orchestrator.log.reading import log_name, open_records, read_events
from parley.orchestrator.model.digest import digest
from parley.orchestrator.model.spec import (
    DEFAULT_LIMITS,
    agents_of,
    resolve_agent,
    set_format_settings,
    with_default_limits,
)
from parley.orchestrator.model.times import duration
from parley.orchestrator.peers.agents import Agents
from parley.orchestrator.peers.issue_tracker import IssueTracker
from parley.orchestrator.peers.services import Convergence, Memory, Ratings, Services
from parley.orchestrator.phases.follow_up import follow_up
from parley.orchestrator.research.sources import WebSources
from parley.orchestrator.roles.catalogue import Roles, load_shipped_roles
from parley.orchestrator.settings import OrchestratorSettings
from parley.orchestrator.watch.deltas import DeltaBroker
from parley.runtime.channel import ChannelSettings, Connect, channel
from parley.runtime.clock import Clock, SystemClock
from parley.runtime.contract_settings import with_defaults
from parley.runtime.direct.channel import direct_channel, identify_service
from parley.runtime.draining import Draining
from parley.runtime.errors import ParleyError, from_rpc_error
from parley.runtime.server import RunningServer, start_server
from parley.storage.opening import Store, open_store
from parley.storage.ports import Log
from parley.v1 import debate_pb2, event_pb2, orchestrator_pb2, orchestrator_pb2_grpc
from parley.v1.agent_pb2 import Agent
from parley.v1.event_pb2 import (
    DebateCreated,
    RolePrompts,
)
from parley.v1.panel_pb2 import PanelSettings
from tests.support.interventions import intervention
from tests.support.scripted_gateway import ScriptedGateway

MessageType = TypeVar("MessageType", bound=Message)


TENANT = "default"


NO_LIMITS = DEFAULT_LIMITS


WITHIN = 30.0
"""Seconds after which a wait for something that should come is given up."""


_POLL_SECONDS = 0.1
"""Between two scans of a replica. A replica that scans twice as often takes 1.6 % of a core in place of 0.8 while nothing happens."""


def agent(name: str, role: str = "architect", **fields: Any) -> Agent:
    return Agent(id=name, name=name.title(), role=role, **fields)


def with_fields(message: MessageType, **fields: Any) -> MessageType:
    """A copy of a message with these fields in place of its own; None clears one."""
    changed = type(message)()
    changed.CopyFrom(message)
    for name in fields:
        changed.ClearField(name)
    changed.MergeFrom(type(message)(**fields))
    return changed


def make_limits(
    *, max_tokens: int = 0, max_cost_micros: int = 0, **seconds: float
) -> debate_pb2.DebateLimits:
    """The usual limits, with these seconds in place of theirs."""
    given: dict[str, Any] = {name: duration(each) for name, each in seconds.items()}
    said = debate_pb2.DebateLimits(max_tokens=max_tokens, max_cost_micros=max_cost_micros, **given)
    return with_default_limits(said, DEFAULT_LIMITS)


def with_spec(created: DebateCreated, **fields: Any) -> DebateCreated:
    """A copy of a debate's first event with these fields of its specification; agents are told what Parley ships for their roles."""
    changed = DebateCreated()
    changed.CopyFrom(created)
    if "demonstration" in fields:
        changed.demonstration = fields.pop("demonstration")
    spec = changed.spec
    if "agents" in fields:
        del spec.agents[:]
        spec.agents.extend(debate_pb2.Participant(agent=resolve_agent(each)) for each in fields.pop("agents"))
    if "judge" in fields:
        spec.judge.agent.CopyFrom(resolve_agent(fields.pop("judge")))
    if "clarifications" in fields:
        spec.clarifications.CopyFrom(with_defaults(fields.pop("clarifications")))
    if "settings" in fields:
        settings = fields.pop("settings")
        spec.ClearField(spec.WhichOneof("format_settings") or "panel")
        if settings is not None:
            set_format_settings(spec, settings)
    spec.CopyFrom(with_fields(spec, **fields))
    roles = {each.role for each in (*agents_of(spec), spec.judge.agent)}
    shipped = {each: load_shipped_roles().find(each) for each in sorted(roles)}
    del changed.roles[:]
    changed.roles.extend(
        RolePrompts(role=name, sections=role.prompts) for name, role in shipped.items() if role is not None
    )
    return changed


def panel_settings(**fields: Any) -> PanelSettings:
    """The panel's defaults, with these fields in place of them."""
    settings = SETTINGS.with_defaults(PanelSettings(**fields))
    assert isinstance(settings, PanelSettings)
    return settings


def make_debate(count: int = 2, rounds: int = 2, **fields: Any) -> DebateCreated:
    """The first event of a panel of so many agents, named ada, bo, cy, and so on; fields of its settings may stand among the others."""
    names = ("ada", "bo", "cy", "dee", "eve", "fay", "gil")[:count]
    own = {each.name for each in PanelSettings.DESCRIPTOR.fields}
    settings = {name: value for name, value in fields.items() if name in own}
    given: dict[str, Any] = {
        "format": "panel@1",
        "agents": tuple(agent(name) for name in names),
        "judge": agent("judge", "judge"),
        "history_limit": 0,
        "domain": "general",
        "limits": DEFAULT_LIMITS,
        "settings": panel_settings(rounds=rounds, **settings),
        **{name: value for name, value in fields.items() if name not in own},
    }
    return with_spec(DebateCreated(), **{"question": "Is water wet?", **given})


async def until(condition: Callable[[], Awaitable[Any]], what: str, within: float = WITHIN) -> Any:
    """Wait until a condition gives something true, and return it."""
    found = None
    try:
        async with asyncio.timeout(within):
            seconds = 0.005
            while not (found := await condition()):
                await asyncio.sleep(seconds)
                seconds = min(seconds * 1.3, 0.02)  # what takes longer is asked for less often
    except TimeoutError:
        raise AssertionError(f"it never came to this: {what}") from None
    return found


async def until_at_rest(store: Store, tenant: str, debate: str) -> None:
    """Wait until a debate that has ended can be deleted: what follows its answer is done."""

    async def is_at_rest() -> bool:
        record = await DebateIndex(store.documents, "").get(tenant, debate)
        return record is not None and record.is_resting

    await until(is_at_rest, "the debate is at rest")


class Replica:
    """An orchestrator's inside without its server. `crash` ends it as a kill would: nothing is given up."""

    def __init__(
        self,
        dependencies: OwnerDependencies,
        deletions: DeletionStore,
        settings: RunnerSettings,
        deltas: DeltaBroker,
    ) -> None:
        self.dependencies = dependencies
        self.deltas = deltas
        self.runner = Runner(dependencies, settings)
        self.intake = Intake(
            dependencies.log,
            dependencies.index,
            dependencies.inbox,
            deletions,
            self.runner,
            dependencies.clock,
        )
        self._running: asyncio.Task[None] | None = None

    async def __aenter__(self) -> Self:
        self._running = asyncio.create_task(self.runner.run())
        await until(self._ready, "the runner runs")
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.crash()

    async def crash(self) -> None:
        if self._running is not None:
            self._running.cancel()
            await asyncio.gather(self._running, return_exceptions=True)

    async def create(self, created: DebateCreated, request_id: str = "") -> str:
        first = with_fields(created, request_id=request_id or uuid.uuid4().hex)
        debate, _ = await self.intake.create_debate(TENANT, first, digest(created.spec))
        return debate

    async def intervene(self, debate: str, act: str, request_id: str = "", **fields: Any) -> int:
        async with asyncio.timeout(WITHIN):
            return await self.intake.intervene(TENANT, debate, intervention(act, request_id, **fields))

    async def _ready(self) -> bool:
        return self.runner.has_slot(TENANT)


@dataclass(frozen=True, slots=True)
class Backstage:
    """A store and a gateway, and what replicas on them are made of; `models` is another gateway that asks the agents, `ratings` are others.

    `issues` is where decisions become issues.
    """

    store: Store
    channel: grpc.aio.Channel
    gateway: ScriptedGateway
    formats: Formats = field(default_factory=all_formats)
    models: grpc.aio.Channel | None = None
    ratings: grpc.aio.Channel | None = None
    issues: IssueTracker | None = None
    web: WebSources | None = None

    def replica(
        self,
        owner: str = "",
        *,
        log: Log | None = None,
        clock: Clock | None = None,
        lease_seconds: float = 60.0,
        exclusive: bool = True,
        adopt: bool = True,
        max_debates: int = 64,
        formats: Formats | None = None,
        follow_up: FollowUp = follow_up,
        follow_up_limits: debate_pb2.DebateLimits = NO_LIMITS,
        documents: DocumentLimits | None = None,
        poll_seconds: float = _POLL_SECONDS,
    ) -> Replica:
        deltas = DeltaBroker()
        dependencies = OwnerDependencies(
            log=log or self.store.log,
            index=DebateIndex(self.store.documents),
            inbox=Inbox(self.store.documents),
            agents=Agents(self.models or self.channel, deltas.publish),
            services=Services(
                Convergence(self.channel),
                Ratings(self.ratings or self.channel),
                Memory(self.channel),
                self.issues,
                self.web,
            ),
            formats=formats or self.formats,
            follow_up=follow_up,
            follow_up_limits=follow_up_limits,
            clock=clock or SystemClock(),
            publish=lambda _events: None,
            end_publishing=lambda _tenant, _debate: None,
            owner=owner or uuid.uuid4().hex[:8],
            lease_heartbeat_seconds=lease_seconds / 3,
        )
        limits = documents or DocumentLimits()
        settings = RunnerSettings(lease_seconds, poll_seconds, max_debates, exclusive, adopt, limits)
        return Replica(dependencies, DeletionStore(self.store.documents), settings, deltas)

    async def events(self, debate: str) -> list[Envelope]:
        return await read_events(self.store.log, TENANT, debate)

    async def kinds(self, debate: str) -> list[str]:
        return [event.kind for event in await self.events(debate)]

    async def record(self, debate: str) -> DebateRecord:
        record = await DebateIndex(self.store.documents).get(TENANT, debate)
        assert record is not None
        return record

    async def comes_to(self, debate: str, status: str, within: float = WITHIN) -> list[Envelope]:
        """Wait until the debate's record rests with a status, and return the events then."""

        async def there() -> bool:
            record = await self.record(debate)
            return record.status == status and not record.open

        await until(there, f"{debate} {status}", within)
        return await self.events(debate)

    async def has(self, debate: str, kind: str, count: int = 1) -> list[Envelope]:
        """Wait until the log has that many events of a kind, and return all events then."""

        name, kinds = log_name(TENANT, debate), list[str]()
        after, before = 0, GENESIS

        async def there() -> bool:
            nonlocal after, before
            for event in open_records(await self.store.log.read(name, after), after, before):
                kinds.append(event.kind)
                after, before = event.sequence, event.hash
            return kinds.count(kind) >= count

        await until(there, f"{count} {kind} in {debate}")
        return await self.events(debate)


@asynccontextmanager
async def backstage(
    folder: Path, gateway: ScriptedGateway | None = None, formats: Formats | None = None
) -> AsyncIterator[Backstage]:
    """A gateway and a store for replicas made in the block, which call the gateway without a socket, as on one machine."""
    scripted = gateway or ScriptedGateway()
    async with (
        scripted.called_directly() as connection,
        open_store(f"sqlite:///{folder}", "orchestrator", poll_interval=0.02) as store,
    ):
        await store.documents.prepare(DEBATES, INBOX, DELETIONS)
        yield Backstage(store, connection, scripted, formats or all_formats())


@dataclass(frozen=True, slots=True)
class Orchestrator:
    """A served orchestrator and a client of it."""

    stub: orchestrator_pb2_grpc.OrchestratorServiceStub
    server: RunningServer
    connection: grpc.aio.Channel

    async def create(self, rounds: int = 1, request_id: str = "", **fields: Any) -> str:
        own = {each.name for each in PanelSettings.DESCRIPTOR.fields}
        settings = PanelSettings(rounds=rounds, **{name: fields.pop(name) for name in own & fields.keys()})
        spec = debate_pb2.DebateSpec(question="Is water wet?", panel=settings, history_limit=0, **fields)
        request = orchestrator_pb2.CreateDebateRequest(request_id=request_id or uuid.uuid4().hex, spec=spec)
        return (await self.stub.CreateDebate(request, timeout=WITHIN)).debate_id

    async def get(self, debate: str) -> debate_pb2.Debate:
        request = orchestrator_pb2.GetDebateRequest(debate_id=debate)
        return (await self.stub.GetDebate(request, timeout=WITHIN)).debate

    async def watch(
        self, debate: str, after: int = 0, **fields: Any
    ) -> list[orchestrator_pb2.WatchDebateResponse]:
        """All messages until the stream ends."""
        request = orchestrator_pb2.WatchDebateRequest(debate_id=debate, after_sequence=after, **fields)
        return [message async for message in self.stub.WatchDebate(request, timeout=WITHIN)]

    async def intervene(self, debate: str, request_id: str = "", checkpoint: str = "", **act: Any) -> int:
        request = orchestrator_pb2.InterveneRequest(
            request_id=request_id or uuid.uuid4().hex,
            debate_id=debate,
            intervention=debate_pb2.Intervention(checkpoint=checkpoint, **act),
        )
        return (await self.stub.Intervene(request, timeout=WITHIN)).sequence

    async def status(self, debate: str, wanted: int) -> debate_pb2.Debate:
        """Wait until the debate has a status."""

        async def there() -> bool:
            return (await self.get(debate)).status == wanted

        await until(there, f"status {wanted}")
        return await self.get(debate)


def call_directly(gateway: RunningServer) -> Connect:
    """Return what opens channels to the gateway without a socket, as on one machine, and to other services over gRPC."""

    def connect(target: str, settings: ChannelSettings) -> grpc.aio.Channel:
        if target == gateway.address:
            return direct_channel(gateway.direct, identify_service("orchestrator"))
        return channel(target, settings)

    return connect


@asynccontextmanager
async def orchestrating(
    folder: Path,
    gateway: RunningServer,
    *,
    formats: Formats | None = None,
    roles: Roles | None = None,
    over_sockets: bool = False,
    **settings: Any,
) -> AsyncIterator[Orchestrator]:
    """An orchestrator wired as the process is; it drains when the block is left.

    It calls the gateway and is called as on one machine, without a socket, which takes half of a debate's time; or `over_sockets`.
    """
    draining, at = Draining(), gateway.address
    values: dict[str, Any] = {
        "store": f"sqlite:///{folder}",
        **dict.fromkeys(("gateway", "convergence", "ratings", "memory"), at),
        "poll_seconds": _POLL_SECONDS,
        **settings,
    }
    chosen = OrchestratorSettings(port=0, grace_seconds=5.0, **values)
    connect = channel if over_sockets else call_directly(gateway)
    async with (
        build(chosen, draining=draining, formats=formats, roles=roles, connect=connect) as service,
        start_server([service], chosen.server(*service.authenticators), draining=draining) as server,
        channel(server.address) if over_sockets else direct_channel(server.direct) as connection,
    ):
        yield Orchestrator(orchestrator_pb2_grpc.OrchestratorServiceStub(connection), server, connection)


def events_of(messages: Iterable[orchestrator_pb2.WatchDebateResponse]) -> list[event_pb2.Event]:
    """The events among what a watcher was sent."""
    return [message.event for message in messages if message.HasField("event")]


def kind_of(event: event_pb2.Event) -> str:
    """The name of an event's kind, as the contract has it."""
    return event.WhichOneof("payload") or ""


async def failure_of(call: Awaitable[Any]) -> ParleyError:
    """What a call fails with."""
    try:
        answer = await call
    except grpc.aio.AioRpcError as error:
        return from_rpc_error(error)
    raise AssertionError(f"it was answered: {answer}")
