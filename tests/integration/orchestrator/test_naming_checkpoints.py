"""Interventions that name the checkpoint they are for: they close that one or nothing, and their answer never changes."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import Any

import grpc
import pytest

from parley.orchestrator.engine.format import Format, Formats
from parley.orchestrator.engine.inbox import INBOX, RECORDED, REFUSED, WAITING, Inbox, InboxEntry
from parley.orchestrator.log.envelope import Envelope
from parley.v1 import debate_pb2
from parley.v1.event_pb2 import CheckpointClosed, Intervened
from tests.support.checked_format import (
    AFTER,
    BEFORE,
    CHECKED,
    CHECKED_FORMATS,
    QUESTIONED,
    list_said_in,
    make_checked_debate,
)
from tests.support.debate_logs import StoppingLog, check_log
from tests.support.interventions import hear_end, intervention
from tests.support.orchestration import Backstage, Orchestrator, Replica, failure_of, kind_of, until
from tests.support.scripted_gateway import ScriptedGateway


@pytest.fixture
def formats() -> Formats:
    return CHECKED_FORMATS


def list_recorded_ids(events: list[Envelope]) -> list[str]:
    return [event.payload.request_id for event in events if isinstance(event.payload, Intervened)]


async def test_of_two_who_answer_one_checkpoint_at_once_one_is_heard_and_the_other_told(
    stage: Backstage,
) -> None:
    async with stage.replica() as replica:
        debate = await replica.create(make_checked_debate(QUESTIONED))
        await stage.has(debate, "checkpoint_opened")
        names = ("one", "two", "three")
        answers = [replica.intervene(debate, "answer", each, text=each, checkpoint=BEFORE) for each in names]
        answered = dict(zip(names, await asyncio.gather(*map(hear_end, answers)), strict=True))
        (winner,) = [name for name, answer in answered.items() if isinstance(answer, int)]
        assert sorted(map(str, answered.values()))[1:] == ["CHECKPOINT_CLOSED"] * 2
        await stage.has(debate, "checkpoint_opened", 2)
        await replica.intervene(debate, "approve", "last", checkpoint=AFTER, approved=True)
        events = await stage.comes_to(debate, "COMPLETED")
        again = [
            await hear_end(replica.intervene(debate, "answer", name, text=name, checkpoint=BEFORE))
            for name in names
        ]
    check_log(events)
    assert again == list(answered.values()), "also once the debate has ended"
    assert list_said_in(events) == (f"answer: {winner}", "approve:  True")
    assert list_recorded_ids(events) == [winner, "last"], "nothing is recorded of the others"


@pytest.mark.parametrize(
    ("act", "asked"),
    [
        ("continue_debate", CHECKED),
        ("end", CHECKED),
        ("guide", CHECKED),
        ("answer", QUESTIONED),
        ("approve", CHECKED),
    ],
)
async def test_a_late_intervention_for_the_first_checkpoint_does_not_go_through_the_second(
    stage: Backstage, act: str, asked: Format
) -> None:
    async with stage.replica() as replica:
        debate = await replica.create(make_checked_debate(asked))
        await stage.has(debate, "checkpoint_opened")
        early = await hear_end(replica.intervene(debate, act, "early", text="x", checkpoint=AFTER))
        assert early == "CHECKPOINT_CLOSED", "it is still to come"
        assert isinstance(await replica.intervene(debate, "continue_debate", checkpoint=BEFORE), int)
        before = await stage.has(debate, "checkpoint_opened", 2)
        late = await hear_end(replica.intervene(debate, act, "late", text="x", checkpoint=BEFORE))
        assert late == "CHECKPOINT_CLOSED"
        assert await stage.events(debate) == before, "nothing is recorded, and it waits as it did"
        assert await hear_end(replica.intervene(debate, act, "early", text="x", checkpoint=AFTER)) == early
        assert isinstance(await replica.intervene(debate, "approve", "now", checkpoint=AFTER), int)
        events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert list_closing_acts(events) == [(BEFORE, "continue_debate"), (AFTER, "approve")]


def list_closing_acts(events: list[Envelope]) -> list[tuple[str, str]]:
    return [
        (event.key, event.payload.intervention.WhichOneof("act") or "")
        for event in events
        if isinstance(event.payload, CheckpointClosed)
    ]


@pytest.mark.parametrize(
    ("acts", "asked"),
    [
        (("answer", "approve"), CHECKED),
        (("guide", "end", "approve"), QUESTIONED),
    ],
    ids=["a direction", "questions"],
)
async def test_an_act_that_does_not_fit_what_is_asked_closes_nothing(
    stage: Backstage, acts: tuple[str, ...], asked: Format
) -> None:
    async with stage.replica() as replica:
        debate = await replica.create(make_checked_debate(asked))
        opened = await stage.has(debate, "checkpoint_opened")
        for act in acts:
            refused = await hear_end(replica.intervene(debate, act, text="x", checkpoint=BEFORE))
            assert refused == "NO_CHECKPOINT"
        assert await stage.events(debate) == opened, "nothing is recorded, and it waits as it did"
        await replica.intervene(debate, "mute", agent_id="bo")
        assert (await stage.kinds(debate))[-1] == "intervened", "what asks for no checkpoint is recorded"
        await replica.intervene(debate, "continue_debate", checkpoint=BEFORE)
        opened = await stage.has(debate, "checkpoint_opened", 2)
        for act in ("continue_debate", "answer", "guide", "end"):
            refused = await hear_end(replica.intervene(debate, act, text="x", checkpoint=AFTER))
            assert refused == "NO_CHECKPOINT"
        assert await stage.events(debate) == opened
        await replica.intervene(debate, "guide", text="for later rounds")
        assert (await stage.kinds(debate))[-1] == "intervened", "guidance that names none is recorded"
        await replica.intervene(debate, "approve", approved=True)
        events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert list_closing_acts(events) == [(BEFORE, "continue_debate"), (AFTER, "approve")]


async def test_at_a_paused_debate_no_checkpoint_is_open(stage: Backstage) -> None:
    async with stage.replica() as replica:
        debate = await replica.create(make_checked_debate())
        await stage.has(debate, "checkpoint_opened")
        await replica.intervene(debate, "pause")
        await stage.comes_to(debate, "PAUSED")
        assert (
            await hear_end(replica.intervene(debate, "continue_debate", checkpoint=BEFORE))
            == "CHECKPOINT_CLOSED"
        )
        await stage.comes_to(debate, "PAUSED")
        await replica.intervene(debate, "resume")
        await stage.has(debate, "checkpoint_opened", 2)
        await replica.intervene(debate, "continue_debate", checkpoint=BEFORE)
        await stage.has(debate, "checkpoint_opened", 3)
        await replica.intervene(debate, "approve", checkpoint=AFTER)
        check_log(await stage.comes_to(debate, "COMPLETED"))


@pytest.mark.parametrize("durable", [False, True], ids=["before it is recorded", "after it is recorded"])
async def test_an_answer_whose_owner_is_killed_is_recorded_once_and_heard_by_whoever_sends_it_again(
    stage: Backstage, durable: bool
) -> None:
    async with stage.replica() as first:
        debate = await first.create(make_checked_debate(QUESTIONED))
        opened = await stage.has(debate, "checkpoint_opened")
    log = StoppingLog(stage.store.log, len(opened) + 2, durable=durable)  # it comes after the claim
    async with stage.replica(log=log) as owner:
        asking = asyncio.create_task(owner.intervene(debate, "answer", "w", text="yes", checkpoint=BEFORE))
        async with asyncio.timeout(30):
            await log.stopped.wait()
        asking.cancel()
    assert list_recorded_ids(await stage.events(debate)) == (["w"] if durable else [])
    async with stage.replica() as heir:
        sequence = await heir.intervene(debate, "answer", "w", text="yes", checkpoint=BEFORE)
        rival = await hear_end(heir.intervene(debate, "answer", "v", text="no", checkpoint=BEFORE))
        await stage.has(debate, "checkpoint_opened", 2)
        await heir.intervene(debate, "approve", "last", checkpoint=AFTER)
        events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert (rival, list_recorded_ids(events)) == ("CHECKPOINT_CLOSED", ["w", "last"])
    assert (events[sequence - 1].kind, events[sequence].kind) == ("intervened", "checkpoint_closed")
    assert list_said_in(events)[0] == "answer: yes"


@pytest.mark.parametrize("noted", [False, True], ids=["before it is noted", "after it is noted"])
async def test_a_refusal_stands_also_where_its_owner_is_killed(stage: Backstage, noted: bool) -> None:
    async with stage.replica() as owner:
        debate = await owner.create(make_checked_debate())
        await stage.has(debate, "checkpoint_opened")
        stopped, refused = asyncio.Event(), owner.dependencies.inbox.mark_refused

        async def stop(key: str, epoch: int, refusal: str, known_ids: Sequence[str] = ()) -> None:
            if noted:
                await refused(key, epoch, refusal, known_ids)
            stopped.set()
            await asyncio.Event().wait()

        owner.dependencies.inbox.mark_refused = stop  # type: ignore[method-assign]
        asking = asyncio.create_task(owner.intervene(debate, "continue_debate", "w", checkpoint=AFTER))
        async with asyncio.timeout(30):
            await stopped.wait()
        asking.cancel()
    async with stage.replica() as heir:
        assert (
            await hear_end(heir.intervene(debate, "continue_debate", "w", checkpoint=AFTER))
            == "CHECKPOINT_CLOSED"
        )
        await heir.intervene(debate, "continue_debate", checkpoint=BEFORE)
        await stage.has(debate, "checkpoint_opened", 2)
        assert (
            await hear_end(heir.intervene(debate, "continue_debate", "w", checkpoint=AFTER))
            == "CHECKPOINT_CLOSED"
        )
        await heir.intervene(debate, "approve", checkpoint=AFTER)
        events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert "w" not in list_recorded_ids(events)


async def test_an_owner_that_lost_its_claim_cannot_refuse_what_the_next_one_records(stage: Backstage) -> None:
    stale, heir = stage.replica("stale"), stage.replica("heir")
    refusing, may_refuse, has_refused = asyncio.Event(), asyncio.Event(), asyncio.Event()
    refused, waiting, recorded = (
        stale.dependencies.inbox.mark_refused,
        heir.dependencies.inbox.list_waiting,
        heir.dependencies.inbox.mark_recorded,
    )
    is_open = asyncio.Event()

    async def refuse_late(key: str, epoch: int, refusal: str, known_ids: Sequence[str] = ()) -> None:
        refusing.set()
        await may_refuse.wait()
        await refused(key, epoch, refusal, known_ids)
        has_refused.set()

    async def see_late() -> list[InboxEntry]:
        entries = await waiting()
        return [each for each in entries if is_open.is_set() or each.intervened.request_id != "w"]

    async def note_late(key: str, sequence: int) -> None:
        if key.endswith("/w"):
            may_refuse.set()
            await has_refused.wait()
        await recorded(key, sequence)

    stale.dependencies.inbox.mark_refused = refuse_late  # type: ignore[method-assign]
    heir.dependencies.inbox.list_waiting = see_late  # type: ignore[method-assign]
    heir.dependencies.inbox.mark_recorded = note_late  # type: ignore[method-assign]
    async with stale:
        debate = await stale.create(make_checked_debate())
        await stage.has(debate, "checkpoint_opened")
        asking = asyncio.create_task(stale.intervene(debate, "approve", "w", text="yes", checkpoint=AFTER))
        async with asyncio.timeout(30):
            await refusing.wait()
        async with heir:
            await stage.has(debate, "claimed", 2)
            await heir.intervene(debate, "continue_debate", checkpoint=BEFORE)
            await stage.has(debate, "checkpoint_opened", 2)
            is_open.set()
            events = await stage.comes_to(debate, "COMPLETED")
            assert has_refused.is_set()
            sequence = await asking
    check_log(events)
    assert events[sequence - 1].payload == intervention("approve", "w", text="yes", checkpoint=AFTER)
    assert list_said_in(events)[1] == "approve: yes False"


async def test_only_the_latest_owner_that_took_an_intervention_decides_on_it(stage: Backstage) -> None:
    inbox = Inbox(stage.store.documents)
    for request, state in (("a", REFUSED), ("b", RECORDED)):
        entry = InboxEntry("default/deb", "2030", intervention("continue_debate", request, checkpoint=BEFORE))
        assert await inbox.put(entry)
        assert await inbox.claim(entry.key, 1)
        assert await inbox.claim(entry.key, 3)
        assert not await inbox.claim(entry.key, 2)
        await inbox.mark_refused(entry.key, 1, "CHECKPOINT_CLOSED")
        found = await inbox.get(entry.key)
        assert found is not None
        assert (found.state, found.epoch) == (WAITING, 3)
        await (
            inbox.mark_refused(entry.key, 3, "CHECKPOINT_CLOSED")
            if state == REFUSED
            else inbox.mark_recorded(entry.key, 7)
        )
        assert not await inbox.claim(entry.key, 4)
        await inbox.mark_refused(entry.key, 3, "NO_CHECKPOINT")
        await inbox.mark_recorded(entry.key, 9)
        found = await inbox.get(entry.key)
        assert found is not None
        assert (found.state, found.sequence) == (state, 7 if state == RECORDED else 0)
        assert found.refusal == ("CHECKPOINT_CLOSED" if state == REFUSED else "")


async def test_an_intervention_for_another_checkpoint_is_another_one(stage: Backstage) -> None:
    inbox = Inbox(stage.store.documents)

    async def put(made: str, checkpoint: str) -> bool:
        intervened = intervention("continue_debate", "a", checkpoint=checkpoint)
        return await inbox.put(InboxEntry("default/deb", made, intervened))

    assert await put("2030", BEFORE)
    assert await put("2031", BEFORE)
    assert not await put("2031", AFTER)
    assert not await put("2031", "")
    stored = await stage.store.documents.get(INBOX, "default/deb/a")
    assert stored is not None


async def test_a_refusal_goes_over_the_wire_with_its_reason(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    hold = gateway.hold("synthesis")
    debate = await orchestrator.create(format=CHECKED.id)
    await orchestrator.status(debate, debate_pb2.DEBATE_STATUS_WAITING)
    go_on: dict[str, Any] = {"continue_debate": debate_pb2.Continue(), "checkpoint": BEFORE}
    sequence = await orchestrator.intervene(debate, "go", **go_on)
    await hold.reached.wait()
    assert await orchestrator.intervene(debate, "go", **go_on) == sequence
    for _ in range(2):
        failure = await failure_of(orchestrator.intervene(debate, "late", **go_on))
        assert (failure.code, failure.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "CHECKPOINT_CLOSED")
        assert failure.metadata == {"checkpoint": BEFORE}
        assert failure.message == f"checkpoint {BEFORE} of debate {debate} is not open; nothing was recorded"
    hold.release()
    await orchestrator.status(debate, debate_pb2.DEBATE_STATUS_WAITING)
    await orchestrator.intervene(debate, approve=debate_pb2.Approve(approved=True), checkpoint=AFTER)
    assert kind_of((await orchestrator.watch(debate))[-1].event) == "closed"
    failure = await failure_of(orchestrator.intervene(debate, "late", **go_on))
    assert failure.reason == "CHECKPOINT_CLOSED"
    failure = await failure_of(orchestrator.intervene(debate, "too-late", **go_on))
    assert failure.reason == "DEBATE_ENDED"


@pytest.mark.parametrize(
    ("fields", "bad"),
    [
        ({"pause": debate_pb2.Pause(), "checkpoint": BEFORE}, "goes with answer, approve, "),
        ({"resume": debate_pb2.Resume(), "checkpoint": BEFORE}, "goes with answer, approve, "),
        ({"cancel": debate_pb2.Cancel(), "checkpoint": BEFORE}, "goes with answer, approve, "),
        ({"mute": debate_pb2.Mute(agent_id="ada"), "checkpoint": BEFORE}, "goes with answer, approve, "),
        ({"continue_debate": debate_pb2.Continue(), "checkpoint": "A b"}, "must be 1 to 256 characters"),
        ({"continue_debate": debate_pb2.Continue(), "checkpoint": "/a"}, "must be 1 to 256 characters"),
        ({"continue_debate": debate_pb2.Continue(), "checkpoint": "a\n"}, "must be 1 to 256 characters"),
        ({"continue_debate": debate_pb2.Continue(), "checkpoint": "a" * 257}, "must be 1 to 256 characters"),
    ],
)
async def test_a_checkpoint_that_cannot_be_one_is_refused(
    orchestrator: Orchestrator, fields: dict[str, Any], bad: str
) -> None:
    failure = await failure_of(orchestrator.intervene("deb-20300101-000000-aaaaaaaa", **fields))
    assert [each.field for each in failure.violations] == ["intervention.checkpoint"]
    assert failure.violations[0].description.startswith(bad)


async def test_interventions_at_several_replicas_hear_the_same_refusal(stage: Backstage) -> None:
    async with stage.replica("one") as one, stage.replica("two", exclusive=False, adopt=False) as two:
        debate = await one.create(make_checked_debate())
        await stage.has(debate, "checkpoint_opened")

        def intervene_late(replica: Replica) -> Awaitable[int]:
            return replica.intervene(debate, "continue_debate", "w", checkpoint=AFTER)

        answers = await asyncio.gather(
            hear_end(intervene_late(one)), hear_end(intervene_late(two)), hear_end(intervene_late(two))
        )
        assert set(answers) == {"CHECKPOINT_CLOSED"}
        await one.intervene(debate, "cancel")

        async def is_closed() -> bool:
            return not (await stage.record(debate)).open

        await until(is_closed, "it is closed")
        assert await hear_end(intervene_late(two)) == "CHECKPOINT_CLOSED"
