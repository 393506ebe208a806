"""Several orchestrators over one store: a debate is watched at any of them, whichever runs it."""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import grpc
import pytest
from msgspec.structs import replace

from parley.orchestrator.watch.watcher import DebateWatcher, WatchItem
from parley.runtime.server import RunningServer
from parley.runtime.watching import TextPiece, WatchStream, watch_events
from parley.storage.opening import Store, open_store
from parley.v1 import debate_pb2, orchestrator_pb2
from parley.v1.event_pb2 import Event
from tests.support.command import Command
from tests.support.orchestration import (
    Orchestrator,
    backstage,
    failure_of,
    kind_of,
    make_debate,
    orchestrating,
    until,
)
from tests.support.scripted_answers import answer_text
from tests.support.scripted_gateway import ScriptedGateway

PATIENCE = 10.0


@dataclass
class Relays:
    """The streams of text between replicas: how many were opened of each debate, and how many run."""

    opened: Counter[str] = field(default_factory=Counter)
    running: Counter[str] = field(default_factory=Counter)

    async def one_of(self, debate: str) -> bool:
        return self.running[debate] == 1

    async def none_of(self, debate: str) -> bool:
        return self.running[debate] == 0


@pytest.fixture(autouse=True)
def shared_store(monkeypatch: pytest.MonkeyPatch) -> None:
    """The embedded store as a server would be: other processes may own debates in it."""

    @asynccontextmanager
    async def share_store(url: str, database: str, **options: Any) -> AsyncIterator[Store]:
        async with open_store(url, database, poll_interval=0.02, **options) as store:
            yield replace(store, exclusive=False)

    monkeypatch.setattr("parley.orchestrator.__main__.open_store", share_store)


@pytest.fixture
def relays(monkeypatch: pytest.MonkeyPatch) -> Relays:
    found, text_of = Relays(), DebateWatcher.stream_text

    async def count_watchers(
        self: DebateWatcher, tenant: str, debate: str
    ) -> AsyncGenerator[WatchItem, None]:
        found.opened[debate] += 1
        found.running[debate] += 1
        try:
            async for each in text_of(self, tenant, debate):
                yield each
        finally:
            found.running[debate] -= 1

    monkeypatch.setattr(DebateWatcher, "stream_text", count_watchers)
    return found


def opener(replica: Orchestrator, debate: str, **fields: Any) -> Any:
    def open_watch(after: int) -> WatchStream:
        request = orchestrator_pb2.WatchDebateRequest(
            debate_id=debate, after_sequence=after, text_deltas=True, **fields
        )
        return replica.stub.WatchDebate(request)

    return open_watch


@dataclass
class Heard:
    """What a client that watches at a replica, with text, has heard so far."""

    events: list[Event] = field(default_factory=list)
    texts: dict[str, str] = field(default_factory=dict)

    async def follow(self, replica: Orchestrator, debate: str) -> None:
        async with asyncio.timeout(20):
            async for each in watch_events(opener(replica, debate), 0, PATIENCE):
                if isinstance(each, TextPiece):
                    if each.offset == len(self.texts.get(each.key, "")):
                        self.texts[each.key] = self.texts.get(each.key, "") + each.text
                else:
                    self.events.append(each)

    def check(self) -> None:
        assert [event.sequence for event in self.events] == list(range(1, len(self.events) + 1))
        assert kind_of(self.events[-1]) == "closed"

    def check_text(self, step: str, agent: str) -> None:
        """Check the text of a step: the event with all of it may overtake the last pieces."""
        assert self.texts[step]
        assert answer_text(step, agent).startswith(self.texts[step])


@asynccontextmanager
async def replicas(
    folder: Path, gateway: RunningServer, count: int = 2, **settings: Any
) -> AsyncIterator[list[Orchestrator]]:
    """So many of them; the first runs what is created, for the others take nothing on."""
    if not count:
        yield []
        return
    async with (
        replicas(folder, gateway, count - 1, **settings) as others,
        orchestrating(folder, gateway, over_sockets=True, **{"adopt": count == 1, **settings}) as last,
    ):
        yield [*others, last]


async def test_every_event_and_the_text_reach_watchers_of_another_replica_over_one_stream(
    gateway: ScriptedGateway, gateway_server: RunningServer, tmp_path: Path, relays: Relays
) -> None:
    gateway.deltas = 4
    hold = gateway.hold("round/1/propose/*")
    async with replicas(tmp_path, gateway_server) as (owner, other):
        debate = await owner.create()
        heard = [Heard() for _ in range(5)]
        async with asyncio.TaskGroup() as tasks:
            for each in heard:
                tasks.create_task(each.follow(other, debate))
            await until(lambda: relays.one_of(debate), "text is asked for")
            hold.release()
        for each in heard:
            each.check()
            each.check_text("round/1/refine/bo", "bo")
            assert each.texts["round/1/critique/ada/of/bo"]
        assert relays.opened == {debate: 1}
        await until(lambda: relays.none_of(debate), "the stream of text ended with its last watcher")


async def test_the_watch_command_shows_at_one_replica_what_happens_at_another(
    gateway: ScriptedGateway, gateway_server: RunningServer, tmp_path: Path
) -> None:
    hold = gateway.hold("round/1/refine/*")
    async with replicas(tmp_path, gateway_server) as (owner, other):
        debate = await owner.create()
        command = Command(["watch", debate, "--server", other.server.address], tmp_path)
        await asyncio.to_thread(command.wait_for, "ada")  # it watches before there is an answer
        hold.release()
        ended = await asyncio.to_thread(command.end)
        events = await owner.get(debate)
    assert (ended.code, ended.err) == (0, [])
    lines = ended.out.splitlines()
    numbers = [int(line.split()[0]) for line in lines if line[:1].isdigit()]
    assert set(numbers) <= set(range(1, events.last_sequence + 1))
    assert numbers == sorted(set(numbers))
    assert answer_text("round/1/refine/bo", "bo").splitlines()[0] in ended.out


async def test_watchers_at_the_owner_and_those_without_text_open_no_stream_between_replicas(
    gateway: ScriptedGateway, gateway_server: RunningServer, tmp_path: Path, relays: Relays
) -> None:
    async with replicas(tmp_path, gateway_server) as (owner, other):
        debate = await owner.create()
        await asyncio.gather(owner.watch(debate, text_deltas=True), other.watch(debate))
        assert not relays.opened


async def test_text_follows_the_debate_to_its_next_owner(
    gateway: ScriptedGateway, gateway_server: RunningServer, tmp_path: Path, relays: Relays
) -> None:
    gateway.deltas = 4
    hold = gateway.hold("round/1/propose/*")
    heard = Heard()
    async with replicas(tmp_path, gateway_server) as (owner, other):
        debate = await owner.create()
        watching = asyncio.create_task(heard.follow(other, debate))
        await until(lambda: relays.one_of(debate), "text is asked for")
        await owner.server.drain()
        async with orchestrating(tmp_path, gateway_server, over_sockets=True) as third:
            await until(lambda: _epoch(third, debate, 2), "it was taken over")
            await until(lambda: relays.one_of(debate), "text is asked for again")
            hold.release()
            await watching
    heard.check()
    assert relays.opened == {debate: 2}
    heard.check_text("round/1/refine/bo", "bo")


async def test_who_watches_where_a_debate_rested_hears_at_once_that_it_goes_on_elsewhere(
    gateway: ScriptedGateway, gateway_server: RunningServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parley.orchestrator.watch.feed._OFFERS_SECONDS", 3600)
    hold = gateway.hold("round/1/propose/*")
    heard = Heard()
    async with orchestrating(
        tmp_path, gateway_server, over_sockets=True, adopt=False, poll_seconds=60
    ) as first:
        debate = await first.create()
        watching = asyncio.create_task(heard.follow(first, debate))
        await hold.reached.wait()
        await first.intervene(debate, pause=debate_pb2.Pause(stop_calls=True))
        await first.status(debate, debate_pb2.DEBATE_STATUS_PAUSED)
        hold.release()
        async with orchestrating(tmp_path, gateway_server, over_sockets=True) as second:
            await second.intervene(debate, resume=debate_pb2.Resume())
            await watching
    heard.check()


async def test_an_owner_that_cannot_be_reached_costs_its_watchers_elsewhere_the_text_and_nothing_else(
    gateway: ScriptedGateway, gateway_server: RunningServer, tmp_path: Path
) -> None:
    gateway.deltas = 4
    async with replicas(tmp_path, gateway_server, advertise="127.0.0.1:9") as (owner, other):
        debate = await owner.create(rounds=2)
        heard = Heard()
        await heard.follow(other, debate)
    heard.check()
    assert not heard.texts


async def test_text_is_asked_of_the_owner_alone_and_nobody_passes_on_what_was_passed_on(
    gateway: ScriptedGateway, gateway_server: RunningServer, tmp_path: Path, relays: Relays
) -> None:
    hold = gateway.hold("round/1/propose/*")
    async with replicas(tmp_path, gateway_server, 3) as (owner, other, third):
        debate = await owner.create()
        request = orchestrator_pb2.WatchDebateRequest(debate_id=debate, text_deltas=True)
        for replica in (owner, other):
            stream = replica.stub.WatchDebate(request, metadata=(("parley-owner", "someone-else"),))
            failure = await failure_of(anext(aiter(stream)))
            assert (failure.code, failure.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "NOT_OWNER")
        async with asyncio.TaskGroup() as tasks:
            for replica in (owner, other, third):
                tasks.create_task(Heard().follow(replica, debate))
            await until(lambda: _count(relays, debate, 2), "both others ask")
            hold.release()
        assert relays.opened == {debate: 2}


async def test_a_watch_goes_on_with_signs_of_life_while_nobody_runs_its_debate_and_after_that(
    gateway: ScriptedGateway, gateway_server: RunningServer, tmp_path: Path
) -> None:
    hold = gateway.hold("round/1/propose/*")
    async with backstage(tmp_path, gateway) as stage:
        async with stage.replica("gone", exclusive=False) as gone:
            debate = await gone.create(make_debate(2, 1))
            await gateway.wait_for("round/1/propose/*", 2)
        async with orchestrating(
            tmp_path, gateway_server, lease_seconds=0.5, heartbeat_seconds=0.05
        ) as served:
            events: list[int] = []
            heartbeats = 0
            async with asyncio.timeout(20):
                async for message in opener(served, debate)(0):
                    if message.HasField("heartbeat"):
                        assert message.heartbeat.last_sequence == events[-1]
                        heartbeats += not hold.released.is_set()
                    elif message.HasField("event"):
                        events.append(message.event.sequence)
                        if message.event.epoch == 2:
                            hold.release()
    assert events == list(range(1, len(events) + 1))
    assert heartbeats >= 3


async def _epoch(replica: Orchestrator, debate: str, epoch: int) -> bool:
    stream = replica.stub.WatchDebate(orchestrator_pb2.WatchDebateRequest(debate_id=debate))
    async for message in stream:
        if message.event.epoch == epoch:
            return True
    return False


async def _count(relays: Relays, debate: str, count: int) -> bool:
    return relays.running[debate] == count
