"""The clients for programs without asyncio."""

import asyncio
import gc
import inspect
import signal
import threading
from collections.abc import AsyncGenerator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, assert_type

import grpc
import pytest

from parley.client import (
    Debate,
    DebateSpec,
    Event,
    GatewayClient,
    ParleyClient,
    ParleyError,
    RatingsClient,
    SyncGatewayClient,
    SyncParleyClient,
    SyncRatingsClient,
    event_kind,
)
from parley.client.blocking import SyncConnection, _blocking_call, _blocking_iterator
from parley.client.connection import Connection
from tests.support.scripted_listings import add_listings
from tests.support.scripted_orchestrator import DEBATE_ID, ScriptedOrchestrator, scripted
from tests.support.waiting import until
from tests.unit.client.test_watching import run_one_round


def methods(client: type) -> dict[str, Any]:
    return {
        name: each
        for name, each in inspect.getmembers(client, inspect.isfunction)
        if not name.startswith("_")
    }


@pytest.mark.parametrize(
    ("blocking", "client"),
    [
        (SyncParleyClient, ParleyClient),
        (SyncGatewayClient, GatewayClient),
        (SyncRatingsClient, RatingsClient),
    ],
)
def test_they_have_every_method_of_the_others_with_its_parameters_and_its_words(
    blocking: type, client: type
) -> None:
    mirrored = {name: each for name, each in methods(blocking).items() if name != "export"}
    without = sorted(mirrored.keys() ^ methods(client).keys())
    assert not without, f"of {client.__name__} or {blocking.__name__} alone: run `make protos`"
    for name, each in methods(client).items():
        assert inspect.signature(mirrored[name]) == inspect.signature(each), name
        assert inspect.getdoc(mirrored[name]) == inspect.getdoc(each), name
    assert inspect.signature(blocking) == inspect.signature(client)


def test_a_debate_is_held_watched_over_breaks_read_and_exported_without_asyncio(tmp_path: Path) -> None:
    orchestrator = ScriptedOrchestrator(script=run_one_round, stream_breaks=[0, 1, 0, 3, 2])
    with scripted(orchestrator), SyncParleyClient(orchestrator.address, "acme") as parley:
        debate_id = parley.create_debate(DebateSpec(question="Which?"))
        assert_type(debate_id, str)
        seen = [each for each in parley.watch(debate_id) if isinstance(each, Event)]
        assert [event.sequence for event in seen] == list(range(1, 11))
        assert event_kind(seen[-1]) == "closed"
        assert_type(parley.get(debate_id), Debate)
        assert parley.get_report(debate_id) == "# Report\n"
        assert DEBATE_ID in [each.id for each in parley.list(page_size=2)]
        assert parley.export(tmp_path / "out.zip", [debate_id]) == 1
    assert orchestrator.tenants == {"acme"}


def test_a_watch_that_is_left_ends_with_its_loop_or_with_the_client() -> None:
    orchestrator = ScriptedOrchestrator(script=lambda debate: debate.add(None))
    with scripted(orchestrator), SyncParleyClient(orchestrator.address) as parley:
        parley.create_debate(DebateSpec(question="Which?"))
        for each in parley.watch(DEBATE_ID):
            assert isinstance(each, Event)
            break
        left = parley.watch(DEBATE_ID)
        next(left)
    with pytest.raises(RuntimeError, match="not open"):
        next(left)
    assert "parley-client" not in [each.name for each in threading.enumerate()]


def test_what_waits_is_interrupted_and_the_client_goes_on() -> None:
    orchestrator = ScriptedOrchestrator(script=lambda debate: None)
    with scripted(orchestrator), SyncParleyClient(orchestrator.address) as parley:
        parley.create_debate(DebateSpec(question="Which?"))

        def interrupt() -> None:
            until(lambda: orchestrator.watched_after)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

        with ThreadPoolExecutor(1) as thread:
            interrupted = thread.submit(interrupt)
            with pytest.raises(KeyboardInterrupt):
                list(parley.watch(DEBATE_ID))
            interrupted.result()
        assert parley.get_summary(DEBATE_ID).id == DEBATE_ID


class Patient(Connection):
    """A client of nobody, whose calls come to no end, and end slowly where they are cancelled."""

    def __init__(self, *given: Any, **named: Any) -> None:
        super().__init__(*given, **named)
        self.waiting = threading.Event()
        self.ended = threading.Event()

    def _create_stub(self, connected: grpc.aio.Channel) -> None: ...

    async def one(self) -> None:
        await self._forever()

    async def many(self) -> AsyncGenerator[int, None]:
        try:
            yield 1
            await self._forever()
        finally:
            self.ended.set()

    async def _forever(self) -> None:
        self.waiting.set()
        try:
            await asyncio.Event().wait()
        finally:
            for _ in range(10):
                await asyncio.sleep(0)


class SyncPatient(SyncConnection[Patient]):
    _kind = Patient

    one = _blocking_call(Patient.one)
    many = _blocking_iterator(Patient.many)


def test_an_interruption_is_what_it_was_also_where_what_is_iterated_ends_slowly() -> None:
    with SyncPatient("localhost:1") as client:

        def interrupt() -> None:
            assert client._client.waiting.wait(10)
            signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

        with ThreadPoolExecutor(1) as thread:
            interrupted = thread.submit(interrupt)
            with pytest.raises(KeyboardInterrupt):
                list(client.many())
            interrupted.result()
        assert client._client.ended.is_set()


def test_an_interruption_before_the_wait_for_an_item_begins_ends_the_iteration_too() -> None:
    with SyncPatient("localhost:1") as client:
        left = client.many()
        assert next(left) == 1

        def wait(ask: Any) -> None:
            client._submit(ask)
            assert client._client.waiting.wait(10)
            raise KeyboardInterrupt

        client._wait = wait  # type: ignore[method-assign, assignment]
        with pytest.raises(KeyboardInterrupt):
            next(left)
        assert client._client.ended.is_set()


@pytest.mark.parametrize("call", [SyncPatient.one, lambda client: list(client.many())], ids=["one", "many"])
def test_a_call_of_another_thread_ends_with_the_client(call: Any) -> None:
    with ThreadPoolExecutor(1) as thread:
        with SyncPatient("localhost:1") as client:
            waiting = thread.submit(call, client)
            assert client._client.waiting.wait(10)
        with pytest.raises(RuntimeError, match="the client was closed"):
            waiting.result(10)


def test_an_iteration_that_is_collected_in_the_thread_of_the_client_holds_nothing_up() -> None:
    with SyncPatient("localhost:1") as client:
        left: Any = {"many": client.many()}
        left["itself"] = left
        assert next(left["many"]) == 1
        gc.disable()
        try:
            del left
            assert client._loop is not None
            client._loop.call_soon_threadsafe(gc.collect)
            assert client._client.ended.wait(10)
        finally:
            gc.enable()


def test_several_threads_use_one_client() -> None:
    orchestrator = ScriptedOrchestrator(script=run_one_round)
    with scripted(orchestrator), SyncParleyClient(orchestrator.address) as parley:
        parley.create_debate(DebateSpec(question="Which?"))

        def count_events(_: int) -> int:
            return len(list(parley.watch(DEBATE_ID)))

        with ThreadPoolExecutor(4) as threads:
            assert list(threads.map(count_events, range(8))) == [10] * 8


def test_failures_are_those_of_the_other_clients() -> None:
    orchestrator = ScriptedOrchestrator()
    with scripted(orchestrator), SyncParleyClient(orchestrator.address) as parley:
        with pytest.raises(ParleyError, match="not found"):
            parley.get("deb-20200101-000000-aaaaaaaa")
        with pytest.raises(ParleyError, match="not found"):
            next(parley.watch("deb-20200101-000000-aaaaaaaa"))
    with pytest.raises(RuntimeError, match="use it as `with`"):
        parley.get(DEBATE_ID)


def test_agents_and_ratings_are_listed() -> None:
    orchestrator = ScriptedOrchestrator()
    with scripted(orchestrator, add_listings):
        with SyncGatewayClient(orchestrator.address) as gateway:
            assert gateway.list_agents().agents
            assert gateway.list_routes().routes
        with SyncRatingsClient(orchestrator.address) as ratings:
            assert list(ratings.list(page_size=1))
