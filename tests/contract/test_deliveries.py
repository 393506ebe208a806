"""Hooks, deliveries and the marks of debates that have news, on every store."""

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from parley.orchestrator.delivery.deliveries import (
    DEAD,
    DELIVERED,
    DELIVERIES,
    PENDING,
    DeliveryStore,
    StoredDelivery,
    create_delivery,
)
from parley.orchestrator.delivery.hooks import HOOKS, HookStore, Secret, StoredHook
from parley.orchestrator.log.debate_record import COMPLETED, RUNNING
from parley.orchestrator.log.index import DEBATES, DebateIndex
from parley.orchestrator.model.times import time_text
from parley.storage.opening import Store
from parley.v1.hook_pb2 import HOOK_EVENT_CONCLUDED, HOOK_EVENT_FAILED, Hook
from tests.contract.test_waiting_debates import record

NOW = datetime(2030, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
ONE, TWO = "hook-000000000001", "hook-000000000002"


@pytest.fixture
async def deliveries(store: Store) -> DeliveryStore:
    await store.documents.prepare(DELIVERIES)
    return DeliveryStore(store.documents)


def delivery(debate: str, hook: str = ONE, sequence: int = 2, at: datetime = NOW) -> StoredDelivery:
    return create_delivery("default", debate, hook, HOOK_EVENT_CONCLUDED, sequence, at)


async def test_a_delivery_is_stored_once_and_taken_by_one_replica(deliveries: DeliveryStore) -> None:
    made = delivery("a")
    assert sorted(await asyncio.gather(*(deliveries.add(made) for _ in range(4)))) == [
        False,
        False,
        False,
        True,
    ]
    until = NOW + timedelta(minutes=1)
    claims = await asyncio.gather(*(deliveries.claim(made, until) for _ in range(4)))
    assert sorted(claims) == [False, False, False, True]
    assert not await deliveries.list_due(NOW, 10), "it is somebody's"
    assert [each.id for each in await deliveries.list_due(until, 10)] == [made.id]


async def test_what_is_due_comes_first_and_what_ended_never(deliveries: DeliveryStore) -> None:
    late, early, other = delivery("a", at=NOW + SECOND), delivery("b"), delivery("c", TWO, at=NOW - SECOND)
    for each in (late, early, other):
        await deliveries.add(each)
    assert [each.id for each in await deliveries.list_due(NOW, 10)] == [other.id, early.id]
    assert [each.id for each in await deliveries.list_due_of(ONE, NOW + SECOND, 10)] == [early.id, late.id]
    assert (await deliveries.find_oldest() or late).id == other.id
    assert await deliveries.claim(early, NOW + SECOND)
    assert await deliveries.record_end(early, DELIVERED, NOW)
    assert not await deliveries.record_end(early, DEAD, NOW), "it has ended"
    assert [each.id for each in await deliveries.list_due(NOW + SECOND, 10)] == [other.id, late.id]


async def test_a_lane_goes_in_the_order_of_its_log(deliveries: DeliveryStore) -> None:
    tenth, second = delivery("a", sequence=10), delivery("a", sequence=2)
    await deliveries.add(tenth)
    await deliveries.add(second)
    await deliveries.add(delivery("a", TWO, sequence=1))
    assert (await deliveries.find_first(second.lane) or tenth).id == second.id
    assert await deliveries.claim(second, NOW)
    assert await deliveries.record_end(second, DEAD, NOW, "it answered 410")
    assert (await deliveries.find_first(second.lane) or second).id == tenth.id


async def test_an_older_try_changes_nothing_of_a_delivery_that_is_sent_again(
    deliveries: DeliveryStore,
) -> None:
    made = delivery("a")
    await deliveries.add(made)
    assert await deliveries.claim(made, NOW)
    assert await deliveries.resend(made.id, NOW + SECOND)
    assert not await deliveries.record_end(made, DEAD, NOW, "late")
    found = await deliveries.get(made.id)
    assert found is not None
    assert (found.state, found.tries, found.due) == (PENDING, 0, time_text(NOW + SECOND))


async def test_lists_have_filters_and_go_from_the_newest_on(deliveries: DeliveryStore) -> None:
    made = [delivery(str(number), (ONE, TWO)[number % 2], at=NOW + number * SECOND) for number in range(4)]
    for each in made:
        await deliveries.add(each)
    await deliveries.claim(made[3], NOW)
    await deliveries.record_end(made[3], DEAD, NOW)
    newest_first = [each.id for each in reversed(made)]
    assert [each.id for each in await deliveries.list_page("default", "", 10)] == newest_first
    rest = await deliveries.list_page("default", made[2].made, 10)
    assert [each.id for each in rest] == newest_first[2:]
    assert [each.id for each in await deliveries.list_page("default", "", 10, hook=ONE)] == newest_first[1::2]
    assert [each.id for each in await deliveries.list_page("default", "", 10, state=DEAD)] == newest_first[:1]
    both = await deliveries.list_page("default", "", 10, hook=TWO, state=PENDING)
    assert [each.id for each in both] == [made[1].id]
    assert not await deliveries.list_page("other", "", 10)


async def test_deliveries_go_with_their_hook_their_debate_and_their_time(deliveries: DeliveryStore) -> None:
    old, of_hook, of_debate, left = delivery("a"), delivery("b", TWO), delivery("c"), delivery("d")
    for each in (old, of_hook, of_debate, left):
        await deliveries.add(each)
    await deliveries.claim(old, NOW)
    await deliveries.record_end(old, DELIVERED, NOW)
    await deliveries.delete_ended(NOW + SECOND)
    await deliveries.delete_for_hook("default", TWO)
    await deliveries.delete_for_debate("default", "c")
    assert [each.id for each in await deliveries.list_page("default", "", 10)] == [left.id]


async def test_a_secret_is_replaced_by_one_of_two(store: Store) -> None:
    await store.documents.prepare(HOOKS)
    hooks = HookStore(store.documents)
    hook = Hook(id=ONE, name="ci", events=[HOOK_EVENT_FAILED])
    made = StoredHook("default", hook, f"{time_text(NOW)}/{ONE}", (Secret("first"),), "one")
    await hooks.add(made)
    changed = [made.replace_secret(name, name, NOW) for name in ("second", "third")]
    assert sorted(await asyncio.gather(*(hooks.replace_secret(made, each) for each in changed))) == [
        False,
        True,
    ]
    await hooks.set_paused(ONE, "it answered 410")
    found = await hooks.get("default", ONE)
    assert found is not None
    assert found.hook.paused == "it answered 410"
    assert len(found.receiver(NOW).secrets) == 2
    assert await hooks.get("other", ONE) is None
    assert [each.hook async for each in hooks.list_subscribers()] == [ONE]


async def test_news_stay_until_hooks_are_told_of_just_these(store: Store) -> None:
    await store.documents.prepare(DEBATES)
    index, noticed = DebateIndex(store.documents), list[tuple[str, str]]()
    index.notice = lambda *debate: noticed.append(debate)
    made = record("a")
    await index.insert(made)
    updated, since = time_text(NOW), time_text(NOW - SECOND)

    async def write(status: str) -> None:
        planned = index.plan_status(made, 1, status=status, is_open=False, owner=None, updated=updated)
        assert await index.write(planned)

    await write(RUNNING)
    assert not await index.list_news("default", since, 10)
    await write(COMPLETED)
    [read] = await index.list_news("default", since, 10)
    await write(COMPLETED)  # at the same microsecond
    assert not await index.record_told(read, 3), "there is other news"
    [read] = await index.list_news("default", since, 10)
    assert await index.record_told(read, 4)
    assert not await index.list_news("default", since, 10)
    assert (await index.get("default", "a") or made).told == 4
    assert noticed == [("default", "a")] * 2
    assert not await index.list_news("other", since, 10)
    await write(COMPLETED)
    assert not await index.list_news("default", time_text(NOW + SECOND), 10), "it was before the first hook"
