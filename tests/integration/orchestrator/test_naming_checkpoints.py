"""Wishes that name the checkpoint they are for: they end that one or nothing, and the answer to them never changes."""

import asyncio
from collections.abc import Awaitable
from typing import Any

import grpc
import pytest

from parley.orchestrator.envelope import Envelope
from parley.orchestrator.events import CheckpointClosed, Concluded, Intervened
from parley.orchestrator.inbox import INBOX, RECORDED, REFUSED, WAITING, Inbox, Wish
from parley.orchestrator.spec import DebateSpec
from parley.runtime.errors import ParleyError
from parley.v1 import orchestrator_pb2 as pb
from tests.support.checked_format import AFTER, BEFORE, CHECKED, register
from tests.support.orchestration import (
    Backstage,
    Orchestrator,
    Replica,
    StoppingLog,
    check_log,
    failure_of,
    make_spec,
    until,
)
from tests.support.scripted_gateway import ScriptedGateway


@pytest.fixture(autouse=True)
def _checked_format(monkeypatch: pytest.MonkeyPatch) -> None:
    register(monkeypatch)


def spec() -> DebateSpec:
    made = make_spec(2, 1)
    return DebateSpec(**{**{name: getattr(made, name) for name in made.__slots__}, "format": CHECKED})


def said(events: list[Envelope]) -> tuple[str, ...]:
    (solution,) = [event.payload.solution for event in events if isinstance(event.payload, Concluded)]
    assert solution is not None
    return solution.recommendations


def wishes(events: list[Envelope]) -> list[str]:
    return [event.payload.request_id for event in events if isinstance(event.payload, Intervened)]


async def told(wish: Awaitable[int]) -> int | str:
    """The sequence that records a wish, or why it was not."""
    try:
        return await wish
    except ParleyError as error:
        return error.reason


async def test_of_two_who_answer_one_checkpoint_at_once_one_is_heard_and_the_other_told(
    stage: Backstage,
) -> None:
    async with stage.replica() as replica:
        debate = await replica.create(spec())
        await stage.has(debate, "checkpoint_opened")
        names = ("one", "two", "three")
        answers = [replica.wish(debate, "answer", each, text=each, checkpoint=BEFORE) for each in names]
        heard = dict(zip(names, await asyncio.gather(*map(told, answers)), strict=True))
        (winner,) = [name for name, answer in heard.items() if isinstance(answer, int)]
        assert sorted(map(str, heard.values()))[1:] == ["CHECKPOINT_CLOSED"] * 2
        await stage.has(debate, "checkpoint_opened", 2)
        await replica.wish(debate, "approve", "last", checkpoint=AFTER, approved=True)
        events = await stage.comes_to(debate, "COMPLETED")
        again = [
            await told(replica.wish(debate, "answer", name, text=name, checkpoint=BEFORE)) for name in names
        ]
    check_log(events)
    assert again == list(heard.values()), "also once the debate has ended"
    assert said(events) == (f"answer: {winner}", "approve:  True")
    assert wishes(events) == [winner, "last"], "nothing is recorded of the others"


@pytest.mark.parametrize("wish", ["continue", "end", "guide", "answer", "approve"])
async def test_a_late_wish_for_the_first_checkpoint_does_not_go_through_the_second(
    stage: Backstage, wish: str
) -> None:
    async with stage.replica() as replica:
        debate = await replica.create(spec())
        await stage.has(debate, "checkpoint_opened")
        early = await told(replica.wish(debate, wish, "early", text="x", checkpoint=AFTER))
        assert early == "CHECKPOINT_CLOSED", "it is still to come"
        assert isinstance(await replica.wish(debate, "continue", checkpoint=BEFORE), int)
        before = await stage.has(debate, "checkpoint_opened", 2)
        late = await told(replica.wish(debate, wish, "late", text="x", checkpoint=BEFORE))
        assert late == "CHECKPOINT_CLOSED"
        assert await stage.events(debate) == before, "nothing is recorded, and it waits as it did"
        assert await told(replica.wish(debate, wish, "early", text="x", checkpoint=AFTER)) == early
        assert isinstance(await replica.wish(debate, wish, "now", text="x", checkpoint=AFTER), int)
        events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    closed = [
        (event.key, event.payload.wish) for event in events if isinstance(event.payload, CheckpointClosed)
    ]
    assert closed == [(BEFORE, "continue"), (AFTER, wish)]


async def test_at_a_paused_debate_no_checkpoint_is_open(stage: Backstage) -> None:
    async with stage.replica() as replica:
        debate = await replica.create(spec())
        await stage.has(debate, "checkpoint_opened")
        await replica.wish(debate, "pause")
        await stage.comes_to(debate, "PAUSED")
        assert await told(replica.wish(debate, "continue", checkpoint=BEFORE)) == "CHECKPOINT_CLOSED"
        await stage.comes_to(debate, "PAUSED")
        await replica.wish(debate, "resume")
        await stage.has(debate, "checkpoint_opened", 2)
        await replica.wish(debate, "continue", checkpoint=BEFORE)
        await stage.has(debate, "checkpoint_opened", 3)
        await replica.wish(debate, "continue", checkpoint=AFTER)
        check_log(await stage.comes_to(debate, "COMPLETED"))


@pytest.mark.parametrize("durable", [False, True], ids=["before it is recorded", "after it is recorded"])
async def test_an_answer_whose_owner_is_killed_is_recorded_once_and_heard_by_whoever_sends_it_again(
    stage: Backstage, durable: bool
) -> None:
    async with stage.replica() as first:
        debate = await first.create(spec())
        opened = await stage.has(debate, "checkpoint_opened")
    log = StoppingLog(stage.store.log, len(opened) + 2, durable=durable)  # after the claim comes the wish
    async with stage.replica(log=log) as owner:
        asking = asyncio.create_task(owner.wish(debate, "answer", "w", text="yes", checkpoint=BEFORE))
        async with asyncio.timeout(10):
            await log.stopped.wait()
        asking.cancel()
    assert wishes(await stage.events(debate)) == (["w"] if durable else [])
    async with stage.replica() as heir:
        sequence = await heir.wish(debate, "answer", "w", text="yes", checkpoint=BEFORE)
        rival = await told(heir.wish(debate, "answer", "v", text="no", checkpoint=BEFORE))
        await stage.has(debate, "checkpoint_opened", 2)
        await heir.wish(debate, "continue", "last", checkpoint=AFTER)
        events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert (rival, wishes(events)) == ("CHECKPOINT_CLOSED", ["w", "last"])
    assert (events[sequence - 1].kind, events[sequence].kind) == ("intervened", "checkpoint_closed")
    assert said(events)[0] == "answer: yes"


@pytest.mark.parametrize("noted", [False, True], ids=["before it is noted", "after it is noted"])
async def test_a_refusal_stands_also_where_its_owner_is_killed(stage: Backstage, noted: bool) -> None:
    async with stage.replica() as owner:
        debate = await owner.create(spec())
        await stage.has(debate, "checkpoint_opened")
        stopped, refused = asyncio.Event(), owner.shop.inbox.refused

        async def stop(key: str, epoch: int) -> None:
            if noted:
                await refused(key, epoch)
            stopped.set()
            await asyncio.Event().wait()

        owner.shop.inbox.refused = stop  # type: ignore[method-assign]
        asking = asyncio.create_task(owner.wish(debate, "continue", "w", checkpoint=AFTER))
        async with asyncio.timeout(10):
            await stopped.wait()
        asking.cancel()
    async with stage.replica() as heir:
        assert await told(heir.wish(debate, "continue", "w", checkpoint=AFTER)) == "CHECKPOINT_CLOSED"
        await heir.wish(debate, "continue", checkpoint=BEFORE)
        await stage.has(debate, "checkpoint_opened", 2)
        assert await told(heir.wish(debate, "continue", "w", checkpoint=AFTER)) == "CHECKPOINT_CLOSED"
        await heir.wish(debate, "continue", checkpoint=AFTER)
        events = await stage.comes_to(debate, "COMPLETED")
    check_log(events)
    assert "w" not in wishes(events)


async def test_an_owner_that_lost_its_claim_cannot_refuse_what_the_next_one_records(stage: Backstage) -> None:
    stale, heir = stage.replica("stale"), stage.replica("heir")
    refusing, may_refuse, has_refused = asyncio.Event(), asyncio.Event(), asyncio.Event()
    refused, waiting, recorded = stale.shop.inbox.refused, heir.shop.inbox.waiting, heir.shop.inbox.recorded
    is_open = asyncio.Event()

    async def refuse_late(key: str, epoch: int) -> None:
        refusing.set()
        await may_refuse.wait()
        await refused(key, epoch)
        has_refused.set()

    async def see_late() -> list[Wish]:
        return [each for each in await waiting() if is_open.is_set() or each.wish.request_id != "w"]

    async def note_late(key: str, sequence: int) -> None:
        if key.endswith("/w"):
            may_refuse.set()
            await has_refused.wait()
        await recorded(key, sequence)

    stale.shop.inbox.refused = refuse_late  # type: ignore[method-assign]
    heir.shop.inbox.waiting = see_late  # type: ignore[method-assign]
    heir.shop.inbox.recorded = note_late  # type: ignore[method-assign]
    async with stale:
        debate = await stale.create(spec())
        await stage.has(debate, "checkpoint_opened")
        asking = asyncio.create_task(stale.wish(debate, "answer", "w", text="yes", checkpoint=AFTER))
        async with asyncio.timeout(10):
            await refusing.wait()
        async with heir:
            await stage.has(debate, "claimed", 2)
            await heir.wish(debate, "continue", checkpoint=BEFORE)
            await stage.has(debate, "checkpoint_opened", 2)
            is_open.set()
            events = await stage.comes_to(debate, "COMPLETED")
            assert has_refused.is_set()
            sequence = await asking
    check_log(events)
    assert events[sequence - 1].payload == Intervened("w", "answer", "yes", checkpoint=AFTER)
    assert said(events)[1] == "answer: yes False"


async def test_only_the_latest_owner_that_took_a_wish_decides_on_it(stage: Backstage) -> None:
    inbox = Inbox(stage.store.documents)
    for request, state in (("a", REFUSED), ("b", RECORDED)):
        wish = Wish("default/deb", "2030", Intervened(request, "continue", checkpoint=BEFORE))
        assert await inbox.put(wish)
        assert await inbox.take(wish.key, 1)
        assert await inbox.take(wish.key, 3)
        assert not await inbox.take(wish.key, 2)
        await inbox.refused(wish.key, 1)
        found = await inbox.get(wish.key)
        assert found is not None
        assert (found.state, found.epoch) == (WAITING, 3)
        await (inbox.refused(wish.key, 3) if state == REFUSED else inbox.recorded(wish.key, 7))
        assert not await inbox.take(wish.key, 4)
        await inbox.refused(wish.key, 3)
        await inbox.recorded(wish.key, 9)
        found = await inbox.get(wish.key)
        assert found is not None
        assert (found.state, found.sequence) == (state, 7 if state == RECORDED else 0)


async def test_a_wish_for_another_checkpoint_is_another_wish(stage: Backstage) -> None:
    inbox = Inbox(stage.store.documents)
    assert await inbox.put(Wish("default/deb", "2030", Intervened("a", "continue", checkpoint=BEFORE)))
    assert await inbox.put(Wish("default/deb", "2031", Intervened("a", "continue", checkpoint=BEFORE)))
    assert not await inbox.put(Wish("default/deb", "2031", Intervened("a", "continue", checkpoint=AFTER)))
    assert not await inbox.put(Wish("default/deb", "2031", Intervened("a", "continue")))
    stored = await stage.store.documents.get(INBOX, "default/deb/a")
    assert stored is not None


async def test_a_refusal_goes_over_the_wire_with_its_reason(
    orchestrator: Orchestrator, gateway: ScriptedGateway
) -> None:
    hold = gateway.hold("synthesis")
    debate = await orchestrator.create(format=CHECKED)
    await orchestrator.status(debate, pb.DEBATE_STATUS_WAITING)
    go_on: dict[str, Any] = {"continue_debate": pb.Continue(), "checkpoint": BEFORE}
    sequence = await orchestrator.intervene(debate, "go", **go_on)
    await hold.reached.wait()
    assert await orchestrator.intervene(debate, "go", **go_on) == sequence
    for _ in range(2):
        failure = await failure_of(orchestrator.intervene(debate, "late", **go_on))
        assert (failure.code, failure.reason) == (grpc.StatusCode.FAILED_PRECONDITION, "CHECKPOINT_CLOSED")
        assert failure.metadata == {"checkpoint": BEFORE}
        assert failure.message == f"checkpoint {BEFORE} of debate {debate} is not open; nothing was recorded"
    hold.release()
    await orchestrator.status(debate, pb.DEBATE_STATUS_WAITING)
    await orchestrator.intervene(debate, approve=pb.Approve(approved=True), checkpoint=AFTER)
    assert (await orchestrator.watch(debate))[-1].event.kind == "closed"
    failure = await failure_of(orchestrator.intervene(debate, "late", **go_on))
    assert failure.reason == "CHECKPOINT_CLOSED"
    failure = await failure_of(orchestrator.intervene(debate, "too-late", **go_on))
    assert failure.reason == "DEBATE_ENDED"


@pytest.mark.parametrize(
    ("fields", "bad"),
    [
        ({"pause": pb.Pause(), "checkpoint": BEFORE}, "goes with end, guide, "),
        ({"resume": pb.Resume(), "checkpoint": BEFORE}, "goes with end, guide, "),
        ({"cancel": pb.Cancel(), "checkpoint": BEFORE}, "goes with end, guide, "),
        ({"mute": pb.Mute(agent_id="ada"), "checkpoint": BEFORE}, "goes with end, guide, "),
        ({"continue_debate": pb.Continue(), "checkpoint": "A b"}, "must be 1 to 256 characters"),
        ({"continue_debate": pb.Continue(), "checkpoint": "/a"}, "must be 1 to 256 characters"),
        ({"continue_debate": pb.Continue(), "checkpoint": "a\n"}, "must be 1 to 256 characters"),
        ({"continue_debate": pb.Continue(), "checkpoint": "a" * 257}, "must be 1 to 256 characters"),
    ],
)
async def test_a_checkpoint_that_cannot_be_one_is_refused(
    orchestrator: Orchestrator, fields: dict[str, Any], bad: str
) -> None:
    failure = await failure_of(orchestrator.intervene("deb-20300101-000000-aaaaaaaa", **fields))
    assert [each.field for each in failure.violations] == ["checkpoint"]
    assert failure.violations[0].description.startswith(bad)


async def test_wishes_at_several_replicas_hear_the_same_refusal(stage: Backstage) -> None:
    async with stage.replica("one") as one, stage.replica("two", exclusive=False, adopt=False) as two:
        debate = await one.create(spec())
        await stage.has(debate, "checkpoint_opened")

        def late(replica: Replica) -> Awaitable[int]:
            return replica.wish(debate, "continue", "w", checkpoint=AFTER)

        heard = await asyncio.gather(told(late(one)), told(late(two)), told(late(two)))
        assert set(heard) == {"CHECKPOINT_CLOSED"}
        await one.wish(debate, "cancel")

        async def closed() -> bool:
            return not (await stage.row(debate)).open

        await until(closed, "it is closed")
        assert await told(late(two)) == "CHECKPOINT_CLOSED"
