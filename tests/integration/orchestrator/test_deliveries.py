"""Deliveries to hooks: what a debate's log has comes to every hook that asked for it, in order, again until it is there."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import replace
from datetime import timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent

from parley.orchestrator.delivery.deliveries import DEAD, DELIVERED, PENDING
from parley.orchestrator.delivery.dispatcher import OF_HOOK, OF_TENANT
from parley.orchestrator.delivery.hooks import HOOKS
from parley.orchestrator.delivery.message import DeliveryError, Message
from parley.orchestrator.engine.inbox import Inbox
from parley.orchestrator.engine.status_writer import StatusWriter
from parley.orchestrator.log.debate_record import FAILED, PAUSED, RUNNING, WAITING
from parley.orchestrator.log.envelope import create_event
from parley.orchestrator.log.index import DEBATES
from parley.orchestrator.log.journal import Journal, log_name, read_events
from parley.runtime.errors import ParleyError
from parley.storage.ports import Collection, Document, Record, Where
from parley.v1.debate_pb2 import DebateFailure, Outcome
from parley.v1.effect_pb2 import DECISION_RELATION_CONFIRMS, DECISION_RELATION_REVERSES, RelatedDecision
from parley.v1.event_pb2 import CheckpointOpened, Concluded, DebateFailed, LimitReached, Resumed
from parley.v1.hook_pb2 import (
    HOOK_EVENT_BUDGET_REACHED,
    HOOK_EVENT_CONCLUDED,
    HOOK_EVENT_DECISION_REVERSED,
    HOOK_EVENT_FAILED,
    HOOK_EVENT_WAITING,
    CreateHookRequest,
    HookTarget,
    WebhookTarget,
)
from tests.support.hook_stage import TENANT, HookStage, concluded, created, open_hook_stage
from tests.support.manual_clock import ManualClock, advance_until
from tests.support.orchestration import until
from tests.support.passing_log import PassingLog

ALL = (
    HOOK_EVENT_CONCLUDED,
    HOOK_EVENT_FAILED,
    HOOK_EVENT_WAITING,
    HOOK_EVENT_BUDGET_REACHED,
    HOOK_EVENT_DECISION_REVERSED,
)
DAY = timedelta(days=1).total_seconds()


@pytest.fixture
async def stage(tmp_path: Path, clock: ManualClock) -> AsyncIterator[HookStage]:
    async with open_hook_stage(tmp_path, clock) as opened:
        yield opened


def data_of(message: Message) -> dict[str, object]:
    found: dict[str, object] = json.loads(message.body)["data"]
    return found


async def test_what_concludes_comes_to_the_hook_as_a_cloud_event(stage: HookStage) -> None:
    hook = await stage.add_hook()
    async with stage.running():
        await stage.add_debate("one", concluded())
        [message] = await stage.got_by(hook, 1)
    event = JSONFormat().read(CloudEvent, message.body)
    assert event.get_id() == message.id
    assert event.get_type() == "parley.debate.concluded"
    assert event.get_source() == "/parley/default"
    assert event.get_subject() == "one"
    assert data_of(message) == {
        "event": "HOOK_EVENT_CONCLUDED",
        "debateId": "one",
        "sequence": "2",
        "time": "2030-01-01T00:00:00Z",
        "question": "Is water wet?",
        "format": "panel@1",
        "labels": {"team": "payments"},
        "link": "https://parley.example/debates/one",
        "answer": "The answer of one.",
    }
    assert message.text == "Debate concluded: Is water wet?\n\nThe answer of one."


async def test_each_kind_of_event_is_told_with_what_it_is_about(stage: HookStage) -> None:
    hook = await stage.add_hook(*ALL)
    reverses = RelatedDecision(debate_id="old", decision="Dry.", relation=DECISION_RELATION_REVERSES)
    confirms = RelatedDecision(debate_id="older", decision="Wet.", relation=DECISION_RELATION_CONFIRMS)
    async with stage.running():
        debate = await stage.add_debate("one", CheckpointOpened(), status=WAITING)
        await stage.extend(
            debate,
            LimitReached(limit="token_budget", used=7),
            LimitReached(limit="total_timeout"),
            status=PAUSED,
        )
        await stage.extend(debate, DebateFailed(failure=DebateFailure(reason="INTERNAL")), status=FAILED)
        outcome = Outcome(description="Wet.", related=[reverses, confirms])
        await stage.extend(debate, Resumed(), Concluded(outcome=outcome))
        got = await stage.got_by(hook, 5)
    assert [each.event for each in got] == [
        HOOK_EVENT_WAITING,
        HOOK_EVENT_BUDGET_REACHED,
        HOOK_EVENT_FAILED,
        HOOK_EVENT_CONCLUDED,
        HOOK_EVENT_DECISION_REVERSED,
    ]
    waiting, budget, failed, _, reversed_ = map(data_of, got)
    assert waiting["checkpoint"] == "k/2"
    assert budget["limit"] == {"limit": "token_budget", "used": 7.0}
    assert failed["failure"] == {"reason": "INTERNAL"}
    assert reversed_["reversed"] == [
        {"debateId": "old", "decision": "Dry.", "relation": "DECISION_RELATION_REVERSES"}
    ]


async def test_a_cancelled_debate_is_told_without_an_answer(stage: HookStage) -> None:
    hook = await stage.add_hook()
    async with stage.running():
        await stage.add_debate("one", Concluded())
        [message] = await stage.got_by(hook, 1)
    assert data_of(message)["cancelled"] is True
    assert "answer" not in data_of(message)


async def test_a_hook_gets_what_it_asked_for_of_its_tenant_since_its_creation(
    stage: HookStage, clock: ManualClock
) -> None:
    await stage.add_debate("before", concluded())
    clock.advance(1)
    failing = await stage.add_hook(HOOK_EVENT_FAILED)
    other = await stage.add_hook(tenant="other")
    ours = await stage.add_hook()
    clock.advance(1)
    await stage.add_debate("between", concluded())
    clock.advance(1)
    late = await stage.add_hook()
    async with stage.running():
        await stage.add_debate("after", concluded())
        await stage.got_by(ours, 2)
        await stage.got_by(late, 1)
    assert sorted(each.debate for each in stage.got[ours]) == ["after", "between"]
    assert [each.debate for each in stage.got[late]] == ["after"]
    assert await stage.deliveries.list_page(TENANT, "", 10, hook=failing) == []
    assert await stage.deliveries.list_page("other", "", 10, hook=other) == []


async def test_a_hook_for_named_debates_is_told_of_those_that_name_it(stage: HookStage) -> None:
    named, every = await stage.add_hook(named_only=True), await stage.add_hook()
    async with stage.running():
        await stage.add_debate("one", created(), concluded())
        await stage.add_debate("two", created(hook_ids=[named]), concluded())
        await stage.got_by(every, 2)
        [message] = await stage.got_by(named, 1)
    assert message.debate == "two"


async def test_an_owner_that_ends_before_it_notices_leaves_the_news_to_any_replica(
    stage: HookStage, clock: ManualClock
) -> None:
    hook = await stage.add_hook()
    async with stage.running():
        await clock.sleeping(2)
        stage.index.notice = lambda *_: None
        await stage.add_debate("one", concluded())
        clock.advance(15)
        await stage.got_by(hook, 1)


async def test_many_replicas_send_each_delivery_once(stage: HookStage, clock: ManualClock) -> None:
    hook = await stage.add_hook()
    names = {f"debate-{number}" for number in range(20)}
    for name in names:
        await stage.add_debate(name, concluded())
    async with stage.running(3):
        got = await stage.got_by(hook, 20)
        await stage.comes_to(DELIVERED, 20)
    assert {each.debate for each in got} == names
    assert len(got) == 20


async def test_a_delivery_is_tried_again_after_growing_pauses_under_one_id(
    stage: HookStage, clock: ManualClock
) -> None:
    tries: list[tuple[float, str]] = []

    async def fail(message: Message) -> None:
        tries.append((clock.monotonic(), message.id))
        if len(tries) < 4:
            raise DeliveryError("it answered 500")

    hook = await stage.add_hook(behave=fail)
    async with stage.running() as [replica]:
        await stage.add_debate("one", concluded())
        await advance_until(
            clock, lambda: len(stage.got[hook]) == 1, is_idle=lambda: replica.dispatcher.is_idle
        )
        [delivery] = await stage.comes_to(DELIVERED)
    pauses = [after - before for (before, _), (after, _) in pairwise(tries)]
    for pause, aim in zip(pauses, (5, 20, 80), strict=True):
        assert 0.8 * aim <= pause <= aim + 3
    assert len({each for _, each in tries}) == 1
    assert (delivery.tries, delivery.error) == (4, "")


async def test_the_receiver_says_when_to_come_back(stage: HookStage, clock: ManualClock) -> None:
    tries: list[float] = []

    async def wait(_: Message) -> None:
        tries.append(clock.monotonic())
        if len(tries) == 1:
            raise DeliveryError("it answered 429", retry_after=600)

    hook = await stage.add_hook(behave=wait)
    async with stage.running() as [replica]:
        await stage.add_debate("one", concluded())
        await advance_until(
            clock, lambda: len(stage.got[hook]) == 1, step=30, is_idle=lambda: replica.dispatcher.is_idle
        )
    assert 600 <= tries[1] - tries[0] <= 660


async def test_after_a_day_it_is_a_dead_letter_that_can_be_sent_again(
    stage: HookStage, clock: ManualClock
) -> None:
    works = False

    async def fail(_: Message) -> None:
        if not works:
            raise DeliveryError("it answered 500")

    hook = await stage.add_hook(behave=fail)
    async with stage.running() as [replica]:
        await stage.add_debate("one", concluded())
        await advance_until(clock, lambda: clock.monotonic() > 25 * 3600, step=600)
        [dead] = await stage.comes_to(DEAD)
        assert dead.error == "it answered 500"
        assert dead.tries >= 8
        assert clock.monotonic() >= DAY - 4 * 3600
        works = True
        again = await replica.hooks.resend(TENANT, dead.id)
        assert (again.state, again.tries) == (PENDING, 0)
        [message] = await stage.got_by(hook, 1)
        assert message.id == dead.id
        await stage.comes_to(DELIVERED)


async def test_a_clock_that_is_set_forward_ends_no_delivery(stage: HookStage, clock: ManualClock) -> None:
    tries = 0

    async def fail(_: Message) -> None:
        nonlocal tries
        tries += 1
        if tries < 4:
            raise DeliveryError("it answered 500")

    async def has_failed() -> bool:
        return any(each.error for each in await stage.deliveries.list_page(TENANT, "", 1))

    hook = await stage.add_hook(behave=fail)
    async with stage.running():
        await stage.add_debate("one", concluded())
        await until(has_failed, "its first try has failed")
        clock.advance(30 * DAY)
        await advance_until(clock, lambda: len(stage.got[hook]) == 1)
        await stage.comes_to(DELIVERED)


async def test_a_receiver_that_is_gone_pauses_its_hook_until_a_test_arrives(
    stage: HookStage, clock: ManualClock
) -> None:
    gone = True

    async def refuse(_: Message) -> None:
        if gone:
            raise DeliveryError("it answered 410 Gone", permanent=True)

    hook = await stage.add_hook(behave=refuse)
    async with stage.running() as [replica]:
        await stage.add_debate("one", concluded())
        await stage.comes_to(DEAD)
        assert (await stage.hook(hook)).paused == "it answered 410 Gone"
        await stage.add_debate("two", concluded())
        clock.advance(15)
        dead, _ = await stage.comes_to(DEAD, 2)
        assert dead.error == "the hook is paused: it answered 410 Gone"
        assert await replica.hooks.test(TENANT, hook) == "it answered 410 Gone"
        gone = False
        assert await replica.hooks.test(TENANT, hook) == ""
        assert (await stage.hook(hook)).paused == ""


async def test_what_happens_later_in_a_debate_is_sent_later(stage: HookStage, clock: ManualClock) -> None:
    failed = asyncio.Event()

    async def fail_first(message: Message) -> None:
        if message.event == HOOK_EVENT_FAILED and not failed.is_set():
            failed.set()
            raise DeliveryError("it answered 500")

    hook = await stage.add_hook(*ALL, behave=fail_first)
    async with stage.running():
        debate = await stage.add_debate("one", DebateFailed(), status=FAILED)
        await failed.wait()
        await stage.extend(debate, concluded())
        await stage.add_debate("two", concluded())
        await advance_until(clock, lambda: len(stage.got[hook]) == 3)
    of_one = [each.event for each in stage.got[hook] if each.debate == "one"]
    assert of_one == [HOOK_EVENT_FAILED, HOOK_EVENT_CONCLUDED]
    assert stage.got[hook][0].debate == "two", "another debate waits for nothing"


async def test_a_receiver_that_stalls_holds_up_nobody_else(stage: HookStage, clock: ManualClock) -> None:
    stalled: list[Message] = []

    async def stall(message: Message) -> None:
        stalled.append(message)
        await asyncio.Event().wait()

    await stage.add_hook(behave=stall)
    async with stage.running():
        for number in range(120):  # more than are looked at together
            await stage.add_debate(f"debate-{number}", concluded())
        await stage.comes_to(PENDING, 120)
        quick = await stage.add_hook()
        await clock.sleeping(2)
        clock.advance(15)  # as long as hooks are remembered
        await stage.add_debate("last", concluded())
        await stage.got_by(quick, 1)
    assert len(stalled) == OF_HOOK


async def test_many_receivers_that_stall_hold_up_no_other_of_their_tenant(
    stage: HookStage, clock: ManualClock
) -> None:
    stalled: list[Message] = []
    given_up: list[Message] = []

    async def stall(message: Message) -> None:
        stalled.append(message)
        try:
            await asyncio.Event().wait()
        finally:
            given_up.append(message)

    for _ in range(OF_TENANT // OF_HOOK):
        await stage.add_hook(behave=stall)
    async with stage.running():
        for number in range(OF_HOOK):
            await stage.add_debate(f"debate-{number}", concluded())

        async def are_stalled() -> bool:
            return len(stalled) == OF_TENANT

        await until(are_stalled, "as much is being sent as may be of a tenant")
        quick = await stage.add_hook()
        await clock.sleeping(2)
        clock.advance(15)  # as long as hooks are remembered
        await stage.add_debate("last", concluded())
        await stage.got_by(quick, 1)
        assert not given_up, "it waited for none of them"


async def test_a_debate_that_cannot_be_read_hides_the_news_of_no_other(stage: HookStage) -> None:
    named, every = await stage.add_hook(named_only=True), await stage.add_hook()
    damaged = await stage.add_debate("damaged", created(hook_ids=[named]), concluded(), is_marked=False)
    await stage.index.record_told(damaged, 1)
    await stage.extend(damaged)
    await stage.add_debate("whole", created(hook_ids=[named]), concluded())
    async with stage.running_on(DamagedFirstEvent(stage.store.log)):
        for hook in (named, every):
            [message] = await stage.got_by(hook, 1)
            assert message.debate == "whole"


class DamagedFirstEvent(PassingLog):
    """A log in which nobody can read how one debate began."""

    async def read(self, log: str, after: int = 0, limit: int = 1000) -> Sequence[Record]:
        found = await super().read(log, after, limit)
        if log != log_name(TENANT, "damaged") or not found or found[0].first > 1:
            return found
        first = replace(found[0], entries=(b"\xff", *found[0].entries[1:]))
        return [first, *found[1:]]


async def test_a_deleted_hook_and_a_deleted_debate_are_sent_no_more(
    stage: HookStage, clock: ManualClock
) -> None:
    tried = 0

    async def fail(_: Message) -> None:
        nonlocal tried
        tried += 1
        raise DeliveryError("it answered 500")

    one, two = await stage.add_hook(behave=fail), await stage.add_hook(behave=fail)
    async with stage.running() as [replica]:
        await stage.add_debate("one", concluded())
        await until(_is(lambda: tried == 2), "both are tried")
        await replica.hooks.delete(TENANT, one)
        assert {each.hook for each in await stage.deliveries.list_page(TENANT, "", 10)} == {two}
        await stage.store.log.delete(f"{TENANT}/one")
        await advance_until(clock, lambda: clock.monotonic() > 30)

        async def none_left() -> bool:
            return not await stage.deliveries.list_page(TENANT, "", 10)

        await until(none_left, "the other is gone too")
    assert tried == 2


async def test_a_debate_that_is_deleted_while_it_is_sent_is_sent_no_more(stage: HookStage) -> None:
    hook = await stage.add_hook()
    stage.deleted.add("one")
    async with stage.running():
        await stage.add_debate("one", concluded())
        await stage.add_debate("two", concluded())
        await stage.got_by(hook, 1)

        async def only_the_other() -> bool:
            left = await stage.deliveries.list_page(TENANT, "", 10)
            return [each.debate for each in left] == ["two"]

        await until(only_the_other, "nothing is left of it")
    assert [each.debate for each in stage.got[hook]] == ["two"]


async def test_ended_deliveries_are_forgotten_after_their_time(stage: HookStage, clock: ManualClock) -> None:
    await stage.add_hook()
    async with stage.running():
        await stage.add_debate("one", concluded())
        await stage.comes_to(DELIVERED)
        await advance_until(clock, lambda: clock.monotonic() > 14 * DAY + 7200, step=3600)

        async def none_left() -> bool:
            return not await stage.deliveries.list_page(TENANT, "", 10)

        await until(none_left, "it is forgotten")


async def test_without_hooks_nothing_is_looked_at_but_whether_there_are_any(
    stage: HookStage, clock: ManualClock
) -> None:
    looked: list[tuple[str, str]] = []

    class Noting:
        def __getattr__(self, name: str) -> Any:
            call = getattr(stage.store.documents, name)

            async def note(collection: Collection, *arguments: Any, **given: Any) -> Any:
                looked.append((name, collection.name))
                return await call(collection, *arguments, **given)

            return note

    documents: Any = Noting()
    replica = stage.replica(documents, index=stage.index)
    running = asyncio.create_task(replica.run())
    try:
        await clock.sleeping(2)
        looked.clear()
        await stage.add_debate("one", concluded())
        await advance_until(clock, lambda: clock.monotonic() > 60, step=5)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
    assert set(looked) == {("find", "hooks")}
    assert len(looked) <= 5, "once in 15 s"
    found = await stage.store.documents.find(DEBATES, {"tenant": TENANT})
    assert found[0].fields["news"] is not None, (
        "a hook that is created later is not told of it, but of what comes then"
    )


async def test_a_status_that_nobody_is_told_of_leaves_no_mark(stage: HookStage) -> None:
    await stage.add_debate("one", status=RUNNING)
    found = await stage.store.documents.find(DEBATES, {"tenant": TENANT})
    assert found[0].fields["news"] is None


async def test_secrets_are_replaced_without_a_gap(stage: HookStage, clock: ManualClock) -> None:
    request = CreateHookRequest(
        request_id="one",
        name="ci",
        target=HookTarget(webhook=WebhookTarget(url="https://example.org/x")),
        events=[HOOK_EVENT_CONCLUDED],
    )
    hooks = stage.replica().hooks
    hook, first = await hooks.create(TENANT, request, "ada")
    second, until_ = await hooks.rotate_secret(TENANT, hook.id, "two", "")
    assert until_ - clock.now() == timedelta(days=1)
    stored = await hooks.get(TENANT, hook.id)
    assert stored.receiver(clock.now()).secrets == (second, first)
    with pytest.raises(ParleyError, match="already made the secret"):
        await hooks.rotate_secret(TENANT, hook.id, "two", "")
    clock.advance(DAY)
    assert stored.receiver(clock.now()).secrets == (second,)


def _is(condition: Callable[[], bool]) -> Callable[[], Awaitable[bool]]:
    async def met() -> bool:
        return condition()

    return met


async def test_what_is_printed_of_a_hook_holds_no_secret(stage: HookStage, clock: ManualClock) -> None:
    url = "https://hooks.example.org/T0/very-secret"
    request = CreateHookRequest(
        request_id="one",
        name="ci",
        target=HookTarget(webhook=WebhookTarget(url=url)),
        events=[HOOK_EVENT_CONCLUDED],
    )
    hooks = stage.replica().hooks
    hook, secret = await hooks.create(TENANT, request, "ada")
    stored = await hooks.get(TENANT, hook.id)
    for text in (repr(stored), repr(stored.receiver(clock.now()))):
        assert secret not in text
        assert "very-secret" not in text


async def test_an_event_that_comes_while_hooks_are_read_is_told_to_a_hook_that_was_there_before_it(
    stage: HookStage, clock: ManualClock
) -> None:
    await stage.add_hook()
    record = await stage.add_debate("one", DebateFailed(), status=FAILED)
    late: list[str] = []

    class Eventful:
        def __getattr__(self, name: str) -> Any:
            return getattr(stage.store.documents, name)

        async def find(self, collection: Collection, where: Where, **given: Any) -> Sequence[Document]:
            found = await stage.store.documents.find(collection, where, **given)
            if collection is HOOKS and "tenant" in where and not late:
                late.append(await stage.add_hook())
                await stage.append(record, concluded())
            return found

    documents: Any = Eventful()
    replica = stage.replica(documents)
    running = asyncio.create_task(replica.run())
    try:
        await until(_is(lambda: bool(late)), "a hook is created meanwhile")
        await clock.sleeping(2)
        await stage.extend(record)
        clock.advance(15)
        await stage.got_by(late[0], 1)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)


async def test_a_budget_that_is_reached_is_told_with_the_next_heartbeat(
    stage: HookStage, clock: ManualClock
) -> None:
    hook = await stage.add_hook(HOOK_EVENT_BUDGET_REACHED)
    record = await stage.add_debate("one", created(), status=RUNNING)
    events = await read_events(stage.store.log, TENANT, "one")
    journal = Journal(stage.store.log, clock, TENANT, "one", events)
    writer = StatusWriter(record, journal, stage.index, Inbox(stage.store.documents), clock, "ada")
    await journal.claim("ada")
    await writer.write_claim()
    writing = asyncio.create_task(journal.run_writer())
    try:
        async with stage.running():
            await clock.sleeping(2)
            assert await writer.renew_lease(1)
            await journal.append(
                create_event("limit/token_budget", LimitReached(limit="token_budget", used=7))
            )
            assert await writer.renew_lease(2)
            await stage.got_by(hook, 1)
            await until(_is_told(stage, journal.sequence), "it is noted that hooks are told")
            assert await writer.renew_lease(3)
            found = await stage.index.get(TENANT, "one")
            assert found is not None
            assert found.news is None, "it is told once"
    finally:
        writing.cancel()
        await asyncio.gather(writing, return_exceptions=True)


def _is_told(stage: HookStage, sequence: int) -> Callable[[], Awaitable[bool]]:
    async def told() -> bool:
        found = await stage.index.get(TENANT, "one")
        return found is not None and found.told == sequence

    return told
