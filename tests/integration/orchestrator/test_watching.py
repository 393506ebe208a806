"""A debate as it is watched over real gRPC, from any event on, with or without text."""

import asyncio
from pathlib import Path

import grpc
import pytest

from parley.orchestrator.engine.inbox import Inbox, InboxEntry
from parley.orchestrator.log.index import DebateIndex
from parley.runtime.server import RunningServer
from parley.v1 import debate_pb2, orchestrator_pb2
from tests.support.orchestration import Orchestrator, events_of, failure_of, kind_of, orchestrating
from tests.support.scripted_answers import answer_text
from tests.support.scripted_gateway import ScriptedGateway


@pytest.fixture
def over_sockets() -> bool:
    return True


async def test_a_watch_from_any_sequence_sees_all_that_comes_after_it_once_and_ends(
    orchestrator: Orchestrator,
) -> None:
    debate = await orchestrator.create()
    live = events_of(await orchestrator.watch(debate))
    assert [each.sequence for each in live] == list(range(1, len(live) + 1))
    assert kind_of(live[-1]) == "closed"
    for after in range(len(live) + 1):
        assert events_of(await orchestrator.watch(debate, after)) == live[after:]


async def test_a_watch_of_a_debate_that_runs_here_does_not_ask_the_store_for_its_record(
    orchestrator: Orchestrator, gateway: ScriptedGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    hold = gateway.hold("*")
    debate = await orchestrator.create()
    monkeypatch.setattr(DebateIndex, "get_by_key", _must_not_read)
    watching = asyncio.create_task(orchestrator.watch(debate))
    await gateway.wait_for("*", 2)
    hold.release()
    assert kind_of(events_of(await watching)[-1]) == "closed"


async def _must_not_read(_index: DebateIndex, key: str) -> None:
    pytest.fail(f"the record {key} was read")


async def test_a_watch_in_batches_brings_the_same_events_in_few_messages(orchestrator: Orchestrator) -> None:
    debate = await orchestrator.create()
    live = events_of(await orchestrator.watch(debate))
    for after in (0, 1, len(live) - 1):
        messages = await orchestrator.watch(debate, after, batches=True)
        batched = [event for each in messages for event in (*each.events.events, *events_of([each]))]
        assert batched == live[after:]
        assert len(messages) == 1, "it is far below what a batch may hold"


async def test_a_watch_of_a_failed_debate_ends_after_its_failure_from_wherever_it_began(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    gateway.fail("round/1/propose/*", attempt=1)
    debate = await orchestrator.create()
    live = events_of(await orchestrator.watch(debate))
    assert kind_of(live[-1]) == "debate_failed"
    assert not await orchestrator.watch(debate, len(live))
    await orchestrator.intervene(debate, guide=debate_pb2.Guide(text="try harder"))
    more = events_of(await orchestrator.watch(debate, len(live)))
    assert [kind_of(each) for each in more] == ["claimed", "intervened"]
    await orchestrator.intervene(debate, resume=debate_pb2.Resume())
    assert kind_of(events_of(await orchestrator.watch(debate))[-1]) == "closed"


async def test_an_intervention_that_arrives_after_the_inbox_was_read_is_recorded_with_one_claim(
    orchestrator: Orchestrator, gateway: ScriptedGateway, monkeypatch: pytest.MonkeyPatch
) -> None:
    gateway.fail("round/1/propose/*", attempt=1)
    debate = await orchestrator.create()
    live = events_of(await orchestrator.watch(debate))

    async def read_too_early(_inbox: Inbox) -> list[InboxEntry]:
        return []

    monkeypatch.setattr(Inbox, "list_waiting", read_too_early)
    await orchestrator.intervene(debate, guide=debate_pb2.Guide(text="try harder"))
    more = events_of(await orchestrator.watch(debate, len(live)))
    assert [kind_of(each) for each in more] == ["claimed", "intervened"]


async def test_text_comes_as_it_is_written_to_those_who_ask_for_it_only(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    gateway.deltas = 4
    hold = gateway.hold("round/1/propose/*")
    debate = await orchestrator.create()
    with_text = asyncio.create_task(orchestrator.watch(debate, text_deltas=True))
    without = asyncio.create_task(orchestrator.watch(debate))
    await gateway.wait_for("round/1/propose/*", 3)
    hold.release()
    heard = await with_text
    texts: dict[str, str] = {}
    begun: dict[str, int] = {}
    for message in heard:
        if message.HasField("delta"):
            delta = message.delta
            assert (delta.step_attempt, delta.route_attempt) == (1, 1)
            # What was written before the watch began is not sent; from there on nothing is missing.
            missed = begun.setdefault(delta.key, delta.offset)
            assert delta.offset == missed + len(texts.get(delta.key, ""))
            texts[delta.key] = texts.get(delta.key, "") + delta.text
    assert texts["round/1/refine/bo"] == answer_text("round/1/refine/bo", "bo")
    assert events_of(heard) == events_of(await without)
    assert not any(message.HasField("delta") for message in await without)


@pytest.mark.parametrize("batches", [False, True])
async def test_a_debate_in_which_nothing_ends_for_a_while_shows_that_it_lives_and_how_far_it_is(
    gateway: ScriptedGateway, gateway_server: RunningServer, tmp_path: Path, *, batches: bool
) -> None:
    hold = gateway.hold("*")
    async with orchestrating(tmp_path, gateway_server, over_sockets=True, heartbeat_seconds=0.05) as served:
        debate = await served.create()
        heartbeats = last = 0
        request = orchestrator_pb2.WatchDebateRequest(debate_id=debate, batches=batches)
        async for message in served.stub.WatchDebate(request, timeout=10):
            if message.HasField("heartbeat"):
                heartbeats += 1
                assert message.heartbeat.last_sequence == last
                if heartbeats == 3:
                    hold.release()
            for event in (*message.events.events, *events_of([message])):
                last = event.sequence
        assert heartbeats >= 3


@pytest.mark.parametrize(
    ("debate", "after", "code", "reason"),
    [
        ("deb-20300101-000000-aaaaaaaa", 0, grpc.StatusCode.NOT_FOUND, "DEBATE_NOT_FOUND"),
        ("x", 0, grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT"),
        (None, -1, grpc.StatusCode.INVALID_ARGUMENT, "INVALID_ARGUMENT"),
        (None, 10_000, grpc.StatusCode.OUT_OF_RANGE, "AFTER_END"),
    ],
)
async def test_a_watch_that_makes_no_sense_says_so(
    orchestrator: Orchestrator, debate: str | None, after: int, code: grpc.StatusCode, reason: str
) -> None:
    there = await orchestrator.create()
    failure = await failure_of(orchestrator.watch(debate or there, after))
    assert (failure.code, failure.reason) == (code, reason)
