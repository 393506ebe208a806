"""The clients for programs without asyncio."""

import inspect
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, assert_type

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
    kind_of,
)
from tests.support.scripted_listings import add_listings
from tests.support.scripted_orchestrator import DEBATE_ID, ScriptedOrchestrator, scripted
from tests.support.waiting import until
from tests.unit.client.test_watching import one_round


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
    assert mirrored.keys() == methods(client).keys()
    for name, each in methods(client).items():
        assert inspect.signature(mirrored[name]) == inspect.signature(each)
        assert inspect.getdoc(mirrored[name]) == inspect.getdoc(each)
    assert inspect.signature(blocking) == inspect.signature(client)


def test_a_debate_is_held_watched_over_breaks_read_and_exported_without_asyncio(tmp_path: Path) -> None:
    orchestrator = ScriptedOrchestrator(script=one_round, stream_breaks=[0, 1, 0, 3, 2])
    with scripted(orchestrator), SyncParleyClient(orchestrator.address, "acme") as parley:
        debate_id = parley.create_debate(DebateSpec(question="Which?"))
        assert_type(debate_id, str)
        seen = [each for each in parley.watch(debate_id) if isinstance(each, Event)]
        assert [event.sequence for event in seen] == list(range(1, 11))
        assert kind_of(seen[-1]) == "closed"
        assert_type(parley.get(debate_id), Debate)
        assert parley.report(debate_id) == "# Report\n"
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
        assert parley.summary(DEBATE_ID).id == DEBATE_ID


def test_several_threads_use_one_client() -> None:
    orchestrator = ScriptedOrchestrator(script=one_round)
    with scripted(orchestrator), SyncParleyClient(orchestrator.address) as parley:
        parley.create_debate(DebateSpec(question="Which?"))

        def watched(_: int) -> int:
            return len(list(parley.watch(DEBATE_ID)))

        with ThreadPoolExecutor(4) as threads:
            assert list(threads.map(watched, range(8))) == [10] * 8


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
            assert gateway.agents().agents
            assert gateway.routes().routes
        with SyncRatingsClient(orchestrator.address) as ratings:
            assert list(ratings.list(page_size=1))
