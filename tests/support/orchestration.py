"""Orchestrators for tests: replicas that are started, drained and crashed, on one store, before a scripted gateway."""

import asyncio
import uuid
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self

import grpc

from parley.orchestrator import roles
from parley.orchestrator.__main__ import build
from parley.orchestrator.accepting import Accepting
from parley.orchestrator.agents import Agents
from parley.orchestrator.canonical import digest
from parley.orchestrator.deltas import Deltas
from parley.orchestrator.envelope import Envelope
from parley.orchestrator.events import (
    Closed,
    Concluded,
    DebateFailed,
    Intervened,
    Paused,
    Resumed,
    StepFailed,
    to_json,
)
from parley.orchestrator.events import StepSucceeded as Succeeded
from parley.orchestrator.inbox import INBOX, Inbox
from parley.orchestrator.journal import log_name, read_events
from parley.orchestrator.ownership import Workshop
from parley.orchestrator.rows import DEBATES, Row, Rows
from parley.orchestrator.runner import Runner, RunnerSettings
from parley.orchestrator.services import Convergence, Memory, Ratings, Services
from parley.orchestrator.settings import OrchestratorSettings
from parley.orchestrator.spec import AgentSpec, DebateSpec
from parley.runtime.channel import channel
from parley.runtime.clock import Clock, SystemClock
from parley.runtime.draining import Draining
from parley.runtime.errors import ParleyError, from_rpc_error
from parley.runtime.server import RunningServer, ServerSettings, serving
from parley.storage.opening import Store, open_store
from parley.storage.ports import Log, Record
from parley.v1 import orchestrator_pb2, orchestrator_pb2_grpc
from tests.support.passing_log import PassingLog
from tests.support.scripted_gateway import ScriptedGateway

__all__ = [
    "Backstage",
    "Orchestrator",
    "Replica",
    "StoppingLog",
    "agent",
    "backstage",
    "check_log",
    "failure_of",
    "make_spec",
    "orchestrating",
    "outcomes",
    "until",
]

TENANT = "default"
WITHIN = 10.0
"""Seconds after which a wait for something that should come is given up."""


def agent(name: str, role: str = "architect", **fields: Any) -> AgentSpec:
    return AgentSpec(name, name.title(), role, instructions=dict(roles.get(role).prompts), **fields)


def make_spec(count: int = 2, rounds: int = 2, **fields: Any) -> DebateSpec:
    """A panel of so many agents, named ada, bo, cy, and so on."""
    names = ("ada", "bo", "cy", "dee", "eve", "fay")[:count]
    given: dict[str, Any] = {
        "agents": tuple(agent(name) for name in names),
        "judge": agent("judge", "judge"),
        "history_limit": 0,
        **fields,
    }
    return DebateSpec(question="Is water wet?", format="panel@1", rounds=rounds, **given)


async def until(condition: Callable[[], Awaitable[Any]], what: str, within: float = WITHIN) -> Any:
    """Wait until a condition gives something true, and return it."""
    found = None
    try:
        async with asyncio.timeout(within):
            while not (found := await condition()):  # noqa: ASYNC110 (a store tells of nothing)
                await asyncio.sleep(0.005)
    except TimeoutError:
        raise AssertionError(f"it never came to this: {what}") from None
    return found


class StoppingLog(PassingLog):
    """A log whose writer dies, so to speak: at an event's append, before or after it is durable, nothing goes on."""

    def __init__(self, log: Log, at: int, *, durable: bool) -> None:
        self.stopped = asyncio.Event()
        super().__init__(log)
        self._at = at
        self._durable = durable

    async def append(self, log: str, record: Record) -> None:
        here = record.first <= self._at <= record.last
        if self.stopped.is_set() or (here and not self._durable):
            await self._stop()
        await self._log.append(log, record)
        if here:
            await self._stop()

    async def _stop(self) -> None:
        self.stopped.set()
        await asyncio.Event().wait()


class Replica:
    """An orchestrator's inside without its server. `crash` ends it as a kill would: nothing is given up."""

    def __init__(self, workshop: Workshop, settings: RunnerSettings, deltas: Deltas) -> None:
        self.shop = workshop
        self.deltas = deltas
        self.runner = Runner(workshop, settings)
        self.accepting = Accepting(workshop.log, workshop.rows, workshop.inbox, self.runner, workshop.clock)
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

    async def create(self, spec: DebateSpec, request_id: str = "") -> str:
        debate, _ = await self.accepting.debate(
            TENANT, request_id or uuid.uuid4().hex, digest(to_json(spec)), spec
        )
        return debate

    async def wish(self, debate: str, wish: str, request_id: str = "", **fields: Any) -> int:
        made = Intervened(request_id or uuid.uuid4().hex, wish, **fields)
        async with asyncio.timeout(WITHIN):
            return await self.accepting.wish(TENANT, debate, made)

    async def _ready(self) -> bool:
        return self.runner.has_room


@dataclass(frozen=True, slots=True)
class Backstage:
    """A store and a gateway, and what replicas on them are made of."""

    store: Store
    channel: grpc.aio.Channel
    gateway: ScriptedGateway

    def replica(
        self,
        owner: str = "",
        *,
        log: Log | None = None,
        clock: Clock | None = None,
        lease_seconds: float = 60.0,
        exclusive: bool = True,
        adopt: bool = True,
        most_debates: int = 64,
    ) -> Replica:
        deltas = Deltas()
        workshop = Workshop(
            log=log or self.store.log,
            rows=Rows(self.store.documents),
            inbox=Inbox(self.store.documents),
            agents=Agents(self.channel, deltas),
            services=Services(Convergence(self.channel), Ratings(self.channel), Memory(self.channel)),
            clock=clock or SystemClock(),
            owner=owner or uuid.uuid4().hex[:8],
            beat_seconds=lease_seconds / 3,
        )
        settings = RunnerSettings(lease_seconds, 0.02, most_debates, exclusive, adopt)
        return Replica(workshop, settings, deltas)

    async def events(self, debate: str) -> list[Envelope]:
        return await read_events(self.store.log, TENANT, debate)

    async def kinds(self, debate: str) -> list[str]:
        return [event.kind for event in await self.events(debate)]

    async def row(self, debate: str) -> Row:
        row = await Rows(self.store.documents).get(TENANT, debate)
        assert row is not None
        return row

    async def comes_to(self, debate: str, status: str) -> list[Envelope]:
        """Wait until the debate's row rests with a status, and return the events then."""

        async def there() -> bool:
            row = await self.row(debate)
            return row.status == status and not row.open

        await until(there, f"{debate} {status}")
        return await self.events(debate)

    async def has(self, debate: str, kind: str, count: int = 1) -> list[Envelope]:
        """Wait until the log has that many events of a kind, and return all events then."""

        async def there() -> bool:
            return (await self.kinds(debate)).count(kind) >= count

        await until(there, f"{count} {kind} in {debate}")
        return await self.events(debate)


@asynccontextmanager
async def backstage(folder: Path, gateway: ScriptedGateway | None = None) -> AsyncIterator[Backstage]:
    """A gateway and a store for replicas made in the block."""
    scripted = gateway or ScriptedGateway()
    async with (
        scripted.served() as server,
        open_store(f"sqlite:///{folder}", "orchestrator", poll_interval=0.02) as store,
        channel(server.address) as connection,
    ):
        await store.documents.prepare(DEBATES, INBOX)
        yield Backstage(store, connection, scripted)


@dataclass(frozen=True, slots=True)
class Orchestrator:
    """A served orchestrator and a client of it."""

    stub: orchestrator_pb2_grpc.OrchestratorServiceStub
    server: RunningServer
    connection: grpc.aio.Channel

    async def create(self, rounds: int = 1, request_id: str = "", **fields: Any) -> str:
        spec = orchestrator_pb2.DebateSpec(question="Is water wet?", rounds=rounds, history_limit=0, **fields)
        request = orchestrator_pb2.CreateDebateRequest(request_id=request_id or uuid.uuid4().hex, spec=spec)
        return (await self.stub.CreateDebate(request, timeout=WITHIN)).debate_id

    async def get(self, debate: str) -> orchestrator_pb2.Debate:
        request = orchestrator_pb2.GetDebateRequest(debate_id=debate)
        return (await self.stub.GetDebate(request, timeout=WITHIN)).debate

    async def watch(
        self, debate: str, after: int = 0, **fields: Any
    ) -> list[orchestrator_pb2.WatchDebateResponse]:
        """All messages until the stream ends."""
        request = orchestrator_pb2.WatchDebateRequest(debate_id=debate, after_sequence=after, **fields)
        return [message async for message in self.stub.WatchDebate(request, timeout=WITHIN)]

    async def intervene(self, debate: str, request_id: str = "", **wish: Any) -> int:
        request = orchestrator_pb2.InterveneRequest(
            request_id=request_id or uuid.uuid4().hex, debate_id=debate, **wish
        )
        return (await self.stub.Intervene(request, timeout=WITHIN)).sequence

    async def status(self, debate: str, wanted: int) -> orchestrator_pb2.Debate:
        """Wait until the debate has a status."""

        async def there() -> bool:
            return (await self.get(debate)).status == wanted

        await until(there, f"status {wanted}")
        return await self.get(debate)


@asynccontextmanager
async def orchestrating(folder: Path, gateway: RunningServer, **settings: Any) -> AsyncIterator[Orchestrator]:
    """An orchestrator over real gRPC, wired as the process is; it drains when the block is left."""
    draining, at = Draining(), gateway.address
    values: dict[str, Any] = {
        "store": f"sqlite:///{folder}",
        **dict.fromkeys(("gateway", "convergence", "ratings", "memory"), at),
        "poll_seconds": 0.02,
        **settings,
    }
    async with (
        build(OrchestratorSettings(**values), draining=draining) as service,
        serving([service], ServerSettings(grace_seconds=5.0), draining=draining) as server,
        channel(server.address) as connection,
    ):
        yield Orchestrator(orchestrator_pb2_grpc.OrchestratorServiceStub(connection), server, connection)


async def failure_of(call: Awaitable[Any]) -> ParleyError:
    """What a call fails with."""
    try:
        answer = await call
    except grpc.aio.AioRpcError as error:
        return from_rpc_error(error)
    raise AssertionError(f"it was answered: {answer}")


def outcomes(events: Sequence[Envelope]) -> dict[tuple[str, int], str]:
    """What each attempt at each step came to, in a word or two."""
    found: dict[tuple[str, int], str] = {}
    for event in events:
        match event.payload:
            case Succeeded(reply=reply, value=value):
                found[event.key, event.attempt] = reply.text if reply else repr(value)
            case StepFailed(reason=reason):
                found[event.key, event.attempt] = f"failed: {reason}"
            case _:
                pass
    return found


def check_log(events: Sequence[Envelope]) -> None:
    """What holds for every log of a debate that is closed. (That it is dense and chained was checked by reading it.)"""
    assert [event.sequence for event in events] == list(range(1, len(events) + 1))
    assert [event.time for event in events] == sorted(event.time for event in events)
    epochs = [event.epoch for event in events]
    assert epochs == sorted(epochs)
    claims = [event.epoch for event in events if event.kind == "claimed"]
    assert claims == list(range(1, len(claims) + 1))
    names = [(event.kind, event.key, event.attempt) for event in events]
    assert len(set(names)) == len(names), "a key, kind and attempt stand once"
    payloads = [event.payload for event in events]
    assert sum(isinstance(each, Concluded) for each in payloads) == 1
    assert sum(isinstance(each, Closed) for each in payloads) == 1
    assert isinstance(payloads[-1], Closed)
    assert not any(isinstance(each, DebateFailed | Paused | Resumed) for each in payloads[-2:])
    assert log_name(events[0].tenant, events[0].debate) == f"{TENANT}/{events[0].debate}"
