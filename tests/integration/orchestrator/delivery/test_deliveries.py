"""Deliveries to hooks: what a debate's log has comes to every hook that asked for it, in order, again until it is there."""

import asyncio
import json
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

from cloudevents.core.formats.json import JSONFormat
from cloudevents.core.v1.event import CloudEvent
from msgspec.structs import replace

from parley.orchestrator.delivery.deliveries import DELIVERED
from parley.orchestrator.delivery.hooks import HOOKS
from parley.orchestrator.delivery.message import Message
from parley.orchestrator.engine.inbox import Inbox
from parley.orchestrator.engine.status_writer import StatusWriter
from parley.orchestrator.log.debate_record import FAILED, PAUSED, RUNNING, WAITING
from parley.orchestrator.log.envelope import create_event
from parley.orchestrator.log.index import DEBATES
from parley.orchestrator.log.journal import Journal
from parley.orchestrator.log.reading import log_name, read_events
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
)
from tests.integration.orchestrator.delivery.shared import ALL, make_async
from tests.support.hook_stage import TENANT, HookStage, make_concluded, make_created
from tests.support.manual_clock import ManualClock, advance_until
from tests.support.orchestration import until
from tests.support.passing_log import PassingLog


def data_of(message: Message) -> dict[str, object]:
    found: dict[str, object] = json.loads(message.body)["data"]
    return found


async def test_what_concludes_comes_to_the_hook_as_a_cloud_event(stage: HookStage) -> None:
    hook = await stage.add_hook()
    async with stage.running():
        await stage.add_debate("one", make_concluded())
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
    await stage.add_debate("before", make_concluded())
    clock.advance(1)
    failing = await stage.add_hook(HOOK_EVENT_FAILED)
    other = await stage.add_hook(tenant="other")
    ours = await stage.add_hook()
    clock.advance(1)
    await stage.add_debate("between", make_concluded())
    clock.advance(1)
    late = await stage.add_hook()
    async with stage.running():
        await stage.add_debate("after", make_concluded())
        await stage.got_by(ours, 2)
        await stage.got_by(late, 1)
    assert sorted(each.debate for each in stage.got[ours]) == ["after", "between"]
    assert [each.debate for each in stage.got[late]] == ["after"]
    assert await stage.deliveries.list_page(TENANT, "", 10, hook=failing) == []
    assert await stage.deliveries.list_page("other", "", 10, hook=other) == []


async def test_a_hook_for_named_debates_is_told_of_those_that_name_it(stage: HookStage) -> None:
    named, every = await stage.add_hook(named_only=True), await stage.add_hook()
    async with stage.running():
        await stage.add_debate("one", make_created(), make_concluded())
        await stage.add_debate("two", make_created(hook_ids=[named]), make_concluded())
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
        await stage.add_debate("one", make_concluded())
        clock.advance(15)
        await stage.got_by(hook, 1)


async def test_many_replicas_send_each_delivery_once(stage: HookStage, clock: ManualClock) -> None:
    hook = await stage.add_hook()
    names = {f"debate-{number}" for number in range(20)}
    for name in names:
        await stage.add_debate(name, make_concluded())
    async with stage.running(3):
        got = await stage.got_by(hook, 20)
        await stage.comes_to(DELIVERED, 20)
    assert {each.debate for each in got} == names
    assert len(got) == 20


async def test_a_debate_that_cannot_be_read_hides_the_news_of_no_other(stage: HookStage) -> None:
    named, every = await stage.add_hook(named_only=True), await stage.add_hook()
    damaged = await stage.add_debate(
        "damaged", make_created(hook_ids=[named]), make_concluded(), is_marked=False
    )
    await stage.index.record_told(damaged, 1)
    await stage.extend(damaged)
    await stage.add_debate("whole", make_created(hook_ids=[named]), make_concluded())
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
        await stage.add_debate("one", make_concluded())
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
                await stage.append(record, make_concluded())
            return found

    documents: Any = Eventful()
    replica = stage.replica(documents)
    running = asyncio.create_task(replica.run())
    try:
        await until(make_async(lambda: bool(late)), "a hook is created meanwhile")
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
    record = await stage.add_debate("one", make_created(), status=RUNNING)
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
    async def is_told() -> bool:
        found = await stage.index.get(TENANT, "one")
        return found is not None and found.told == sequence

    return is_told
