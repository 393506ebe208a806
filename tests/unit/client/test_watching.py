"""The client against an orchestrator that breaks off, refuses and goes on."""

import asyncio
from collections.abc import AsyncIterator

import pytest

from parley.client import DebateSpec, Event, ParleyClient, ParleyError, event_kind, event_payload
from parley.runtime.watching import TextPiece, watch_events
from parley.v1 import debate_pb2
from parley.v1 import orchestrator_pb2 as pb
from parley.v1.event_pb2 import RoundStarted, StepSucceeded
from tests.support.scripted_orchestrator import DEBATE_ID, ScriptedDebate, ScriptedOrchestrator, scripted


def run_one_round(debate: ScriptedDebate) -> None:
    debate.add(RoundStarted(number=1, total=1))
    debate.add(None)
    debate.step("ada", "proposal", "Use one.")
    debate.step("bo", "proposal", "Use two.")
    debate.conclude()


async def test_a_watch_that_breaks_again_and_again_misses_nothing_and_sees_nothing_twice() -> None:
    orchestrator = ScriptedOrchestrator(script=run_one_round, stream_breaks=[0, 1, 0, 3, 2])
    with scripted(orchestrator):
        async with ParleyClient(orchestrator.address, tenant="acme") as parley:
            debate_id = await parley.create_debate(DebateSpec(question="Which?"))
            async with asyncio.timeout(20):
                seen = [each async for each in parley.watch(debate_id) if isinstance(each, Event)]
    assert [event.sequence for event in seen] == list(range(1, 11))
    assert event_kind(seen[-1]) == "closed"
    assert orchestrator.watched_after == [0, 0, 1, 1, 4, 6]
    assert orchestrator.tenants == {"acme"}


class BatchedStream:
    """A watch whose messages hold several events each, named by their sequences."""

    def __init__(self, *batches: list[int]) -> None:
        self._batches = batches

    async def __aiter__(self) -> AsyncIterator[pb.WatchDebateResponse]:
        for batch in self._batches:
            events = [Event(sequence=number) for number in batch]
            yield pb.WatchDebateResponse(events=pb.EventBatch(events=events))

    def cancel(self) -> bool:
        return True


async def test_events_that_come_in_batches_are_yielded_each_once_and_a_gap_in_a_batch_is_an_error() -> None:
    streams = watch_events(lambda _: BatchedStream([2, 3, 4], [4, 5]), 2, patience=0.1)
    seen = [each.sequence async for each in streams if isinstance(each, Event)]
    assert seen == [3, 4, 5]
    with pytest.raises(ParleyError) as caught:
        await anext(watch_events(lambda _: BatchedStream([4, 5]), 2, patience=0.1))
    assert caught.value.reason == "EVENT_GAP"


async def test_the_text_of_a_batch_is_yielded_before_its_events() -> None:
    class Stream(BatchedStream):
        async def __aiter__(self) -> AsyncIterator[pb.WatchDebateResponse]:
            deltas = [pb.StepDelta(key=key, text="text") for key in "ab"]
            yield pb.WatchDebateResponse(events=pb.EventBatch(events=[Event(sequence=1)], deltas=deltas))

    seen = [each async for each in watch_events(lambda _: Stream(), 0, patience=0.1)]
    assert seen == [TextPiece("a", 0, 0, 0, "text"), TextPiece("b", 0, 0, 0, "text"), Event(sequence=1)]


async def test_payloads_are_typed_and_what_is_not_known_is_passed_over() -> None:
    orchestrator = ScriptedOrchestrator(script=run_one_round)
    with scripted(orchestrator):
        async with ParleyClient(orchestrator.address) as parley:
            await parley.create_debate(DebateSpec(question="Which?"))
            async with asyncio.timeout(20):
                seen = [each async for each in parley.watch(DEBATE_ID, 2) if isinstance(each, Event)]
    assert event_payload(seen[0]) == RoundStarted(number=1, total=1)
    assert (seen[1].sequence, event_kind(seen[1]), event_payload(seen[1])) == (4, "", None)
    texts = []
    for each in seen:
        match event_payload(each):
            case StepSucceeded(reply=reply):
                texts.append(reply.text)
    assert texts == ["Use one.", "Use two."]


async def test_the_log_is_read_as_it_is_stored_over_streams_that_break() -> None:
    orchestrator = ScriptedOrchestrator(script=lambda debate: None, stream_breaks=[1, 0, 2])
    with scripted(orchestrator):
        async with ParleyClient(orchestrator.address) as parley:
            await parley.create_debate(DebateSpec(question="Which?"))
            assert orchestrator.debate is not None
            run_one_round(orchestrator.debate)
            async with asyncio.timeout(20):
                whole = [each async for each in parley.read_log(DEBATE_ID)]
                rest = [each async for each in parley.read_log(DEBATE_ID, 8)]
    stored = [event.SerializeToString() for event in orchestrator.debate.events]
    assert whole == stored
    assert rest == stored[8:]
    assert orchestrator.read_after == [0, 2, 2, 6, 8]


async def test_a_watch_ends_with_the_refusal_of_the_service() -> None:
    with scripted(ScriptedOrchestrator()) as orchestrator:
        async with ParleyClient(orchestrator.address) as parley:
            with pytest.raises(ParleyError) as caught:
                await anext(aiter(parley.watch("deb-none")))
    assert caught.value.reason == "DEBATE_NOT_FOUND"


async def test_a_watch_gives_up_when_patience_ends() -> None:
    orchestrator = ScriptedOrchestrator(script=run_one_round, stream_breaks=[0] * 1000)
    with scripted(orchestrator):
        async with ParleyClient(orchestrator.address, patience=0.5) as parley:
            await parley.create_debate(DebateSpec(question="Which?"))
            async with asyncio.timeout(30):
                with pytest.raises(ParleyError, match="broken by the script"):
                    await anext(aiter(parley.watch(DEBATE_ID)))


async def test_the_list_runs_over_all_pages() -> None:
    with scripted(ScriptedOrchestrator()) as orchestrator:
        async with ParleyClient(orchestrator.address) as parley:
            assert [each.id async for each in parley.list()] == [
                f"deb-{page}-{n}" for page in range(3) for n in range(2)
            ]


async def test_interventions_carry_what_was_asked() -> None:
    with scripted(ScriptedOrchestrator(script=lambda debate: None)) as orchestrator:
        async with ParleyClient(orchestrator.address) as parley:
            await parley.create_debate(DebateSpec(question="Which?"), "my-request")
            sequence = await parley.pause(DEBATE_ID, stop_calls=True, request_id="a")
            await parley.guide(DEBATE_ID, "Mind the cost.")
            await parley.mute(DEBATE_ID, "bo")
            await parley.end_rounds(DEBATE_ID)
            await parley.cancel(DEBATE_ID, "enough")
    assert orchestrator.created[0].request_id == "my-request"
    assert sequence == 3
    first, *others = orchestrator.interventions
    pause = debate_pb2.Intervention(pause=debate_pb2.Pause(stop_calls=True))
    assert first == pb.InterveneRequest(request_id="a", debate_id=DEBATE_ID, intervention=pause)
    assert [each.intervention.WhichOneof("act") for each in others] == ["guide", "mute", "end", "cancel"]


async def test_a_target_where_nobody_answers_is_an_error_after_patience() -> None:
    async with ParleyClient("127.0.0.1:9", patience=0.3) as parley:
        with pytest.raises(ParleyError):
            await parley.get(DEBATE_ID)
