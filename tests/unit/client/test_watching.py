"""The client against an orchestrator that breaks off, refuses and goes on."""

import asyncio

import pytest

from parley.client import DebateEvent, DebateSpec, ParleyClient, ParleyError
from parley.client.events import RoundStarted, StepSucceeded
from parley.orchestrator import events as theirs
from parley.v1 import orchestrator_pb2 as pb
from tests.support.scripted_orchestrator import DEBATE_ID, ScriptedDebate, ScriptedOrchestrator, scripted


def one_round(debate: ScriptedDebate) -> None:
    debate.add("round_started", {"number": 1, "total": 1, "a_later_field": 7})
    debate.add("a_later_kind", {"x": 1})
    debate.step("ada", "proposal", "Use one.")
    debate.step("bo", "proposal", "Use two.")
    debate.conclude()


async def test_a_watch_that_breaks_again_and_again_misses_nothing_and_sees_nothing_twice() -> None:
    orchestrator = ScriptedOrchestrator(script=one_round, stream_breaks=[0, 1, 0, 3, 2])
    with scripted(orchestrator):
        async with ParleyClient(orchestrator.address, tenant="acme") as parley:
            debate_id = await parley.create_debate(DebateSpec(question="Which?"))
            async with asyncio.timeout(20):
                seen = [each async for each in parley.watch(debate_id) if isinstance(each, DebateEvent)]
    assert [event.sequence for event in seen] == list(range(1, 11))
    assert seen[-1].kind == "closed"
    assert orchestrator.watched_after == [0, 0, 1, 1, 4, 6]
    assert orchestrator.tenants == {"acme"}


async def test_payloads_are_typed_and_what_is_not_known_is_passed_over() -> None:
    orchestrator = ScriptedOrchestrator(script=one_round)
    with scripted(orchestrator):
        async with ParleyClient(orchestrator.address) as parley:
            await parley.create_debate(DebateSpec(question="Which?"))
            async with asyncio.timeout(20):
                seen = [each async for each in parley.watch(DEBATE_ID, 2) if isinstance(each, DebateEvent)]
    assert seen[0].payload == RoundStarted(1, 1)
    assert (seen[1].kind, seen[1].payload, seen[1].payload_json) == ("a_later_kind", None, '{"x": 1}')
    succeeded = [each.payload.reply for each in seen if isinstance(each.payload, StepSucceeded)]
    assert [reply.text for reply in succeeded if reply] == ["Use one.", "Use two."]


def test_every_event_that_an_orchestrator_writes_can_be_read() -> None:
    from parley.client.events import _KINDS

    assert _KINDS.keys() == theirs.KINDS.keys()
    for kind, mine in _KINDS.items():
        known = set(mine.__dataclass_fields__)
        assert known <= set(theirs.KINDS[kind].__dataclass_fields__), kind


async def test_a_watch_ends_with_the_refusal_of_the_service() -> None:
    with scripted(ScriptedOrchestrator()) as orchestrator:
        async with ParleyClient(orchestrator.address) as parley:
            with pytest.raises(ParleyError) as caught:
                await anext(aiter(parley.watch("deb-none")))
    assert caught.value.reason == "DEBATE_NOT_FOUND"


async def test_a_watch_gives_up_when_patience_ends() -> None:
    orchestrator = ScriptedOrchestrator(script=one_round, stream_breaks=[0] * 1000)
    with scripted(orchestrator):
        async with ParleyClient(orchestrator.address, patience=0.5) as parley:
            await parley.create_debate(DebateSpec(question="Which?"))
            async with asyncio.timeout(10):
                with pytest.raises(ParleyError, match="broken by the script"):
                    await anext(aiter(parley.watch(DEBATE_ID)))


async def test_the_list_runs_over_all_pages() -> None:
    with scripted(ScriptedOrchestrator()) as orchestrator:
        async with ParleyClient(orchestrator.address) as parley:
            assert [each.id async for each in parley.list()] == [
                f"deb-{page}-{n}" for page in range(3) for n in range(2)
            ]


async def test_wishes_carry_what_was_wished() -> None:
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
    first, *others = orchestrator.wishes
    assert first == pb.InterveneRequest(request_id="a", debate_id=DEBATE_ID, pause=pb.Pause(stop_calls=True))
    assert [wish.WhichOneof("wish") for wish in others] == ["guide", "mute", "end", "cancel"]


async def test_a_target_where_nobody_answers_is_an_error_after_patience() -> None:
    async with ParleyClient("127.0.0.1:9", patience=0.3) as parley:
        with pytest.raises(ParleyError):
            await parley.get(DEBATE_ID)
