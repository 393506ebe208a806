"""Interventions on a debate: each is recorded once, and does what it says."""

import asyncio
from typing import Any

import grpc
import pytest

from parley.runtime.errors import is_transport
from parley.v1 import debate_pb2, orchestrator_pb2
from tests.support.orchestration import Orchestrator, failure_of, kind_of, until
from tests.support.scripted_faults import away
from tests.support.scripted_gateway import ScriptedGateway

PAUSE: dict[str, Any] = {"pause": debate_pb2.Pause()}
RESUME: dict[str, Any] = {"resume": debate_pb2.Resume()}
CANCEL: dict[str, Any] = {"cancel": debate_pb2.Cancel(reason="enough")}


async def kinds(orchestrator: Orchestrator, debate: str, after: int = 0) -> list[str]:
    return [kind_of(each.event) for each in await orchestrator.watch(debate, after)]


async def test_a_paused_debate_ends_its_calls_in_flight_and_makes_no_new_ones(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    hold = gateway.hold("round/1/propose/bo")
    debate = await orchestrator.create()
    await gateway.wait_for("round/1/critique/*", 2)
    await gateway.wait_for("round/1/propose/bo")
    await orchestrator.intervene(debate, **PAUSE)
    assert (await orchestrator.get(debate)).status == debate_pb2.DEBATE_STATUS_RUNNING
    asked = len(gateway.calls)
    hold.release()
    found = await orchestrator.status(debate, debate_pb2.DEBATE_STATUS_PAUSED)
    assert len(gateway.calls) == asked
    assert "round/1/propose/bo" in [each.key for each in found.contributions]
    await orchestrator.intervene(debate, **RESUME)
    assert (await kinds(orchestrator, debate))[-1] == "closed"
    assert len(set(gateway.steps())) == len(gateway.steps()), "nothing was asked twice"


async def test_a_pause_that_stops_calls_ends_them_at_the_gateway_and_they_are_made_again_later(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    hold = gateway.hold("round/1/propose/bo")
    debate = await orchestrator.create(rounds=1)
    await gateway.wait_for("round/1/critique/*", 2)
    await gateway.wait_for("round/1/propose/bo")
    await orchestrator.intervene(debate, pause=debate_pb2.Pause(stop_calls=True))
    await orchestrator.status(debate, debate_pb2.DEBATE_STATUS_PAUSED)
    await until(lambda: _has_ended(gateway, "round/1/propose/bo", "hung-up"), "the call ends")
    assert ("round/1/propose/bo", 1) in gateway.cancelled
    hold.release()
    await orchestrator.intervene(debate, **RESUME)
    assert (await kinds(orchestrator, debate))[-1] == "closed"
    again = {step for step in gateway.steps() if gateway.steps().count(step) > 1}
    assert "round/1/propose/bo" in again
    assert again <= {step for step, _ in gateway.cancelled}


async def _has_ended(gateway: ScriptedGateway, step: str, end: str) -> bool:
    return any(each.step == step and each.end == end for each in gateway.calls)


async def test_a_debate_whose_gateway_is_away_can_be_paused_and_goes_on_once_it_is_back(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    gateway.fail("*", away())
    debate = await orchestrator.create()
    await gateway.wait_for("round/1/propose/*", 4)
    await orchestrator.intervene(debate, **PAUSE)
    await orchestrator.status(debate, debate_pb2.DEBATE_STATUS_PAUSED)
    gateway.mend()
    await orchestrator.intervene(debate, **RESUME)
    assert (await orchestrator.status(debate, debate_pb2.DEBATE_STATUS_COMPLETED)).failures == []


async def test_a_pause_undone_before_it_took_hold_pauses_nothing(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    hold = gateway.hold("round/1/propose/bo")
    debate = await orchestrator.create()
    await gateway.wait_for("round/1/propose/bo")
    await orchestrator.intervene(debate, **PAUSE)
    await orchestrator.intervene(debate, **RESUME)
    hold.release()
    found = await kinds(orchestrator, debate)
    assert found[-1] == "closed"
    assert "paused" not in found


async def test_a_cancelled_debate_stops_its_calls_and_is_closed(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    gateway.hold("round/1/propose/*")
    debate = await orchestrator.create()
    await gateway.wait_for("round/1/propose/*", 3)
    sequence = await orchestrator.intervene(debate, request_id="stop", **CANCEL)
    events = [each.event for each in await orchestrator.watch(debate)]
    assert [kind_of(each) for each in events][-3:] == ["intervened", "concluded", "closed"]
    assert kind_of(events[sequence - 1]) == "intervened"
    assert {step for step, _ in gateway.cancelled} == set(gateway.steps()) - {"requirements"}
    await orchestrator.status(debate, debate_pb2.DEBATE_STATUS_CANCELLED)
    assert await orchestrator.intervene(debate, request_id="stop", **CANCEL) == sequence
    failure = await failure_of(orchestrator.intervene(debate, **CANCEL))
    assert (failure.code, failure.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "DEBATE_ENDED")


@pytest.mark.parametrize("cancelled", [False, True], ids=["completed", "cancelled"])
async def test_a_debate_that_has_ended_takes_no_interventions(
    orchestrator: Orchestrator, gateway: ScriptedGateway, *, cancelled: bool
) -> None:
    if cancelled:
        gateway.hold("*")
    debate = await orchestrator.create()
    if cancelled:
        await orchestrator.intervene(debate, **CANCEL)
    events = await orchestrator.watch(debate)
    for act in (
        CANCEL,
        PAUSE,
        RESUME,
        {"end": debate_pb2.EndRounds()},
        {"guide": debate_pb2.Guide(text="x")},
        {"guide": debate_pb2.Guide(text="x"), "checkpoint": "clarify/1"},
        {"mute": debate_pb2.Mute(agent_id="nobody")},
        {"continue_debate": debate_pb2.Continue()},
        {"approve": debate_pb2.Approve(approved=True)},
        {"answer": debate_pb2.Answer(answers=[debate_pb2.QuestionAnswer(question_id="x", text="y")])},
    ):
        failure = await failure_of(orchestrator.intervene(debate, **act))
        assert (failure.code, failure.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "DEBATE_ENDED")
    assert await orchestrator.watch(debate) == events, "nothing is recorded"


async def test_of_cancel_and_completion_one_wins_and_the_caller_hears_which(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    for delay in range(8):
        hold = gateway.hold("synthesis")
        debate = await orchestrator.create()
        await hold.reached.wait()
        cancelling = asyncio.create_task(_hear_code(orchestrator.intervene(debate, **CANCEL)))
        for _ in range(delay * 40):
            await asyncio.sleep(0)
        hold.release()
        told = await cancelling
        found = await kinds(orchestrator, debate)
        assert found.count("concluded") == found.count("closed") == 1
        assert found[-1] == "closed"
        assert isinstance(told, int) or told is grpc.StatusCode.FAILED_PRECONDITION
        wanted = (
            debate_pb2.DEBATE_STATUS_CANCELLED
            if isinstance(told, int)
            else debate_pb2.DEBATE_STATUS_COMPLETED
        )
        assert (await orchestrator.get(debate)).status == wanted
        assert ("intervened" in found) == isinstance(told, int)


async def _hear_code(call: Any) -> Any:
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        return error.code()


async def test_interventions_in_a_hurry_are_each_recorded_once_or_told_that_it_was_too_late(
    orchestrator: Orchestrator,
) -> None:
    for _ in range(5):
        debate = await orchestrator.create()
        made = [
            orchestrator.intervene(debate, guide=debate_pb2.Guide(text=f"g{number}")) for number in range(12)
        ]
        told = await asyncio.gather(*(_hear_code(each) for each in made))
        assert {each for each in told if not isinstance(each, int)} <= {grpc.StatusCode.FAILED_PRECONDITION}
        events = [each.event for each in await orchestrator.watch(debate)]
        recorded = [event.sequence for event in events if kind_of(event) == "intervened"]
        assert sorted(each for each in told if isinstance(each, int)) == recorded


async def test_the_same_intervention_again_is_recorded_once_and_another_one_under_its_id_is_refused(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    hold = gateway.hold("synthesis")
    debate = await orchestrator.create()
    same = [orchestrator.intervene(debate, "w", guide=debate_pb2.Guide(text="be brief")) for _ in range(3)]
    sequences = set(await asyncio.gather(*same))
    assert len(sequences) == 1
    failure = await failure_of(orchestrator.intervene(debate, "w", guide=debate_pb2.Guide(text="be long")))
    assert (failure.code, failure.reason) == (grpc.StatusCode.ALREADY_EXISTS, "REQUEST_ID_REUSED")
    hold.release()
    assert (await kinds(orchestrator, debate)).count("intervened") == 1


async def test_ending_the_rounds_leads_to_the_synthesis_after_the_present_one(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    hold = gateway.hold("round/1/refine/*")
    debate = await orchestrator.create(rounds=5)
    await hold.reached.wait()
    await orchestrator.intervene(debate, end=debate_pb2.EndRounds())
    hold.release()
    await orchestrator.watch(debate)
    assert not gateway.steps("round/2/*")
    assert len(gateway.steps("round/1/refine/*")) == 3
    assert gateway.steps("synthesis")
    assert (await orchestrator.get(debate)).status == debate_pb2.DEBATE_STATUS_COMPLETED


async def test_guidance_and_a_mute_hold_from_the_next_round_on(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    hold = gateway.hold("round/1/propose/*")
    debate = await orchestrator.create(rounds=2)
    await gateway.wait_for("round/1/propose/*", 3)
    await orchestrator.intervene(debate, guide=debate_pb2.Guide(text="think of the otters"))
    await orchestrator.intervene(debate, mute=debate_pb2.Mute(agent_id="bo"))
    hold.release()
    await orchestrator.watch(debate)
    for asked in gateway.calls:
        later = asked.step.startswith(("round/2/", "synthesis"))
        assert ("think of the otters" in asked.prompt) == later, asked.step
    assert gateway.steps("round/1/refine/bo")
    assert not [step for step in gateway.steps("round/2/*") if "/bo" in step]
    assert (await orchestrator.get(debate)).status == debate_pb2.DEBATE_STATUS_COMPLETED


async def test_interventions_on_a_paused_debate_are_recorded_while_it_rests(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    hold = gateway.hold("round/1/propose/*")
    debate = await orchestrator.create(rounds=1)
    await hold.reached.wait()
    await orchestrator.intervene(debate, pause=debate_pb2.Pause(stop_calls=True))
    await orchestrator.status(debate, debate_pb2.DEBATE_STATUS_PAUSED)
    await orchestrator.intervene(debate, guide=debate_pb2.Guide(text="think of the otters"))
    assert (await orchestrator.get(debate)).status == debate_pb2.DEBATE_STATUS_PAUSED
    hold.release()
    await orchestrator.intervene(debate, **CANCEL)
    assert (await kinds(orchestrator, debate))[-1] == "closed"
    assert (await orchestrator.get(debate)).status == debate_pb2.DEBATE_STATUS_CANCELLED


async def test_a_failed_debate_is_cancelled_for_good(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    gateway.fail("round/1/propose/*")
    debate = await orchestrator.create()
    assert (await kinds(orchestrator, debate))[-1] == "debate_failed"
    await orchestrator.intervene(debate, **CANCEL)
    assert (await kinds(orchestrator, debate))[-1] == "closed"
    await orchestrator.status(debate, debate_pb2.DEBATE_STATUS_CANCELLED)


@pytest.mark.parametrize(
    ("fields", "bad"),
    [
        ({"request_id": "", "debate_id": "nonsense"}, {"request_id", "debate_id", "intervention"}),
        ({"guide": debate_pb2.Guide(text=" ")}, {"intervention.guide.text"}),
        ({"guide": debate_pb2.Guide(text="x\0y")}, {"intervention.guide.text"}),
        ({"guide": debate_pb2.Guide(text="x" * 9000)}, {"intervention.guide.text"}),
        ({"cancel": debate_pb2.Cancel(reason="x" * 1001)}, {"intervention.cancel.reason"}),
        ({"mute": debate_pb2.Mute(agent_id="nobody")}, {"intervention.mute.agent_id"}),
    ],
)
async def test_bad_interventions_are_refused_with_every_bad_field(
    orchestrator: Orchestrator, gateway: ScriptedGateway, fields: dict[str, Any], bad: set[str]
) -> None:
    gateway.hold("*")
    debate = await orchestrator.create()
    ids = {"request_id": "w", "debate_id": debate}
    ids |= {name: fields[name] for name in ids if name in fields}
    act = {name: each for name, each in fields.items() if name not in ids}
    intervention = debate_pb2.Intervention(**act) if act else None
    request = orchestrator_pb2.InterveneRequest(**ids, intervention=intervention)
    failure = await failure_of(orchestrator.stub.Intervene(request, timeout=10))
    assert failure.code == grpc.StatusCode.INVALID_ARGUMENT
    assert {each.field for each in failure.violations} == bad


async def test_an_intervention_on_no_debate_is_not_found(orchestrator: Orchestrator) -> None:
    failure = await failure_of(orchestrator.intervene("deb-20300101-000000-aaaaaaaa", **CANCEL))
    assert failure.code == grpc.StatusCode.NOT_FOUND


async def test_an_intervention_of_which_the_draining_replica_cannot_know_is_to_be_sent_again(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    gateway.hold("*")
    debate = await orchestrator.create()
    await gateway.wait_for("*", 3)
    draining = asyncio.create_task(orchestrator.server.drain())
    failure = await failure_of(orchestrator.intervene(debate, **CANCEL))
    assert is_transport(failure)  # the replica's own word, or gRPC's where the server stopped first
    await draining


async def test_guidance_has_a_bound_in_a_debate_beyond_which_it_is_refused(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    hold = gateway.hold("round/1/propose/bo")
    debate = await orchestrator.create(rounds=2)
    await hold.reached.wait()
    for number in range(4):
        await orchestrator.intervene(
            debate, f"guide-{number}", guide=debate_pb2.Guide(text=f"{number}" * 8000)
        )
    for _ in range(2):
        refused = await failure_of(
            orchestrator.intervene(debate, "one-more", guide=debate_pb2.Guide(text="x" * 8000))
        )
        assert (refused.code, refused.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "GUIDANCE_FULL")
        assert "32,768 bytes" in refused.message
    await orchestrator.intervene(debate, "short", guide=debate_pb2.Guide(text="Be brief."))
    hold.release()
    await orchestrator.status(debate, debate_pb2.DEBATE_STATUS_COMPLETED)
    prompt = gateway.asked("round/2/propose/bo").prompt
    assert "0000" in prompt
    assert "xxxx" not in prompt
    assert prompt.count("Be brief.") == 1
