import asyncio
from collections.abc import Mapping, Sequence
from contextlib import aclosing

import pytest

from parley.storage import tails as tails_module
from parley.storage.ports import Record, StoreDamagedError, StoreUnavailableError
from parley.storage.tails import PAGE, Tails


def record(first: int) -> Record:
    return Record(first, str(first), (b"entry %d" % first,))


class Store:
    """Records, the same in every log, and how often they were read. A read returns up to `page` of them."""

    def __init__(self, page: int = PAGE) -> None:
        self.records: list[Record] = []
        self.page = page
        self.reads = 0
        self.asked: list[dict[str, int]] = []
        self.away = False
        self.damaged = ""

    async def read(self, positions: Mapping[str, int]) -> Mapping[str, Sequence[Record]]:
        self.reads += 1
        self.asked.append(dict(positions))
        news = [(log, one) for log, after in positions.items() for one in self.records if one.last > after]
        found: dict[str, list[Record]] = {}
        for log, one in news[: self.page]:
            found.setdefault(log, []).append(one)
        await asyncio.sleep(0)  # as every store, it lets others run meanwhile
        if self.away:
            raise StoreUnavailableError("away")
        if self.damaged in positions:
            raise StoreDamagedError(f"{self.damaged} is damaged")
        return found


async def read_first(tails: Tails, after: int, log: str = "x") -> Record:
    async with asyncio.timeout(30), aclosing(tails.follow(log, after)) as records:
        return await anext(records)


async def wait_for_reads(store: Store, reads: int) -> None:
    async with asyncio.timeout(30):
        while store.reads < reads:  # noqa: ASYNC110 - nothing but the count tells
            await asyncio.sleep(0)


async def test_a_hundred_followers_are_woken_without_reading_again() -> None:
    store = Store()
    tails = Tails(store.read, poll_interval=60)
    async with asyncio.TaskGroup() as group:
        followers = [group.create_task(read_first(tails, 0)) for _ in range(100)]
        await wait_for_reads(store, 100)
        tails.offer("x", record(1))
    assert {follower.result() for follower in followers} == {record(1)}
    assert store.reads == 100


async def test_a_hundred_followers_poll_about_as_often_as_one() -> None:
    store = Store()
    tails = Tails(store.read, poll_interval=0.05)
    async with asyncio.TaskGroup() as group:
        followers = [group.create_task(read_first(tails, 0)) for _ in range(100)]
        await wait_for_reads(store, 105)
        polls = store.reads - 100
        store.records.append(record(1))
    assert {follower.result() for follower in followers} == {record(1)}
    assert polls <= 10
    assert store.reads - 100 - polls <= 10, "what one of them found was read again by the others"


async def test_one_read_looks_for_news_of_all_logs() -> None:
    store = Store()
    tails = Tails(store.read, poll_interval=0.05)
    logs = [f"log {number}" for number in range(50)]
    async with asyncio.TaskGroup() as group:
        followers = [group.create_task(read_first(tails, 0, log)) for log in logs]
        await wait_for_reads(store, 55)
        assert max(len(each) for each in store.asked) == 50
        store.records.append(record(1))
    assert {follower.result() for follower in followers} == {record(1)}
    assert store.reads <= 70


async def test_a_log_that_this_process_writes_to_is_rarely_asked_for() -> None:
    store = Store()
    tails = Tails(store.read, poll_interval=0.1)
    async with asyncio.TaskGroup() as group:
        own = group.create_task(read_first(tails, 1, "own"))
        other = group.create_task(read_first(tails, 0, "other"))
        await wait_for_reads(store, 2)
        store.records = [record(1)]
        tails.offer("own", record(1), is_own=True)
        assert await other == record(1)
        polled = group.create_task(read_first(tails, 1, "other"))
        await wait_for_reads(store, 6)
        polled.cancel()
        assert [each for each in store.asked if "own" in each] == [{"own": 1}]
        store.records.append(record(2))  # by another process, which has taken over
        assert await own == record(2)


async def test_nothing_is_asked_for_while_a_notifier_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parley.storage.tails._HEARD_SECONDS", 3600)
    monkeypatch.setattr("parley.storage.tails._TRUSTED_SECONDS", 3600)
    store, clock = Store(), Store()
    tails = Tails(store.read, poll_interval=0.01)
    follower = asyncio.ensure_future(read_first(tails, 0))
    await wait_for_reads(store, 1)
    tails.begin_notices()
    tails.hear()
    await wait_for_reads(store, 2)  # what came before the notices is looked for once
    ticking = asyncio.ensure_future(read_first(Tails(clock.read, poll_interval=0.01), 0))
    await wait_for_reads(clock, 20)
    assert store.reads == 2
    tails.offer("x", record(1))
    assert await follower == record(1)
    ticking.cancel()


async def test_what_a_notifier_that_lives_has_passed_over_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parley.storage.tails._HEARD_SECONDS", 3600)
    monkeypatch.setattr("parley.storage.tails._TRUSTED_SECONDS", 0.2)
    store = Store()
    tails = Tails(store.read, poll_interval=0.01)
    tails.begin_notices()
    tails.hear()
    follower = asyncio.ensure_future(read_first(tails, 0))
    await wait_for_reads(store, 1)
    store.records = [record(1)]
    assert await follower == record(1)


async def test_a_log_of_many_pages_is_read_to_its_end_at_once() -> None:
    store = Store()
    store.records = [record(first) for first in range(1, 2 * PAGE + 3)]
    tails = Tails(store.read, poll_interval=3600)
    async with asyncio.timeout(30), aclosing(tails.follow("x", 0)) as follower:
        assert [(await anext(follower)).first for _ in store.records][-1] == 2 * PAGE + 2
    assert store.reads == 3


async def test_one_look_finds_all_that_came_before_a_notifier(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("parley.storage.tails._HEARD_SECONDS", 3600)
    store = Store()
    tails = Tails(store.read, poll_interval=0.2)
    async with asyncio.TaskGroup() as group:
        followers = [group.create_task(read_first(tails, 0, log)) for log in ("busy", "quiet")]
        await wait_for_reads(store, 2)
        store.records = [record(first) for first in range(1, 2 * PAGE + 3)]
        tails.begin_notices()
        tails.hear()
    assert {follower.result() for follower in followers} == {record(1)}


async def test_what_a_failed_read_did_not_find_is_looked_for_again_while_a_notifier_lives(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("parley.storage.tails._HEARD_SECONDS", 3600)
    store, errors = Store(), [StoreUnavailableError("away")]

    async def read(positions: Mapping[str, int]) -> Mapping[str, Sequence[Record]]:
        found = await store.read(positions)
        if len(positions) == 2 and errors:
            raise errors.pop()
        return found

    tails = Tails(read, poll_interval=0.2)
    followers = [asyncio.ensure_future(read_first(tails, 0, log)) for log in ("x", "y")]
    await wait_for_reads(store, 2)
    store.records = [record(1)]
    tails.begin_notices()
    tails.hear()
    results = await asyncio.gather(*followers, return_exceptions=True)
    assert {type(each) for each in results} == {Record, StoreUnavailableError}


async def test_a_log_that_is_followed_since_a_notifier_lives_is_read_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("parley.storage.tails._HEARD_SECONDS", 3600)
    monkeypatch.setattr("parley.storage.tails._TRUSTED_SECONDS", 3600)
    store, clock = Store(), Store()
    tails = Tails(store.read, poll_interval=0.01)
    tails.begin_notices()
    tails.hear()
    follower = asyncio.ensure_future(read_first(tails, 0))
    ticking = asyncio.ensure_future(read_first(Tails(clock.read, poll_interval=0.01), 0))
    await wait_for_reads(clock, 20)
    assert store.reads == 1
    tails.offer("x", record(1))
    assert await follower == record(1)
    ticking.cancel()


async def test_who_is_at_the_end_of_a_log_does_not_keep_one_who_is_behind_from_looking(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("parley.storage.tails._HEARD_SECONDS", 3600)
    store = Store()
    tails = Tails(store.read, poll_interval=0.2)
    behind = asyncio.ensure_future(read_first(tails, 0))
    await wait_for_reads(store, 1)
    store.records = [record(1)]  # by another process, before the notices begin
    tails.begin_notices()
    tails.hear()
    ahead = asyncio.ensure_future(read_first(tails, 1))
    assert await behind == record(1)
    ahead.cancel()


async def test_a_record_that_comes_just_when_it_was_to_be_looked_for_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    store = Store()
    tails = Tails(store.read, poll_interval=0.05)
    end_wait = tails_module._end_wait

    def offer_then(waiter: asyncio.Future[bool], has_grown: bool) -> None:
        end_wait(waiter, has_grown)
        tails.offer("x", record(1), is_own=True)

    monkeypatch.setattr(tails_module, "_end_wait", offer_then)
    assert await read_first(tails, 0) == record(1)
    assert store.reads == 1


async def test_a_thousand_logs_are_asked_for_in_few_reads() -> None:
    store = Store()
    tails = Tails(store.read, poll_interval=2)
    async with asyncio.TaskGroup() as group:
        followers = [group.create_task(read_first(tails, 0, f"log {number}")) for number in range(1000)]
        await wait_for_reads(store, 1005)
        for follower in followers:
            follower.cancel()
    asked = [log for positions in store.asked[1000:1005] for log in positions]
    assert len(set(asked)) == len(asked) == 1000


async def test_an_offer_that_does_not_join_on_makes_the_follower_read() -> None:
    store = Store()
    tails = Tails(store.read, poll_interval=60)
    follower = asyncio.ensure_future(read_first(tails, 0))
    await wait_for_reads(store, 1)
    store.records = [record(1), record(2)]
    tails.offer("x", record(2))
    assert await follower == record(1)


async def test_a_store_that_is_away_ends_the_follower_with_its_error() -> None:
    store = Store()
    tails = Tails(store.read, poll_interval=0.01)
    follower = asyncio.ensure_future(read_first(tails, 0))
    await wait_for_reads(store, 1)
    store.away = True
    with pytest.raises(StoreUnavailableError):
        await follower


async def test_a_log_that_cannot_be_read_ends_its_own_followers_and_no_others() -> None:
    store = Store()
    tails = Tails(store.read, poll_interval=0.05)
    followers = [asyncio.ensure_future(read_first(tails, 0, log)) for log in ("x", "bad", "y", "bad", "z")]
    await wait_for_reads(store, 6)
    assert len(store.asked[5]) == 4
    store.damaged = "bad"
    store.records = [record(1)]
    results = await asyncio.gather(*followers, return_exceptions=True)
    assert list(map(type, results)) == [Record, StoreDamagedError, Record, StoreDamagedError, Record]


async def test_nothing_is_kept_of_a_log_that_nobody_follows() -> None:
    store = Store()
    tails = Tails(store.read, poll_interval=60)
    store.records = [record(1)]
    assert await read_first(tails, 0) == record(1)
    tails.offer("x", record(2))
    store.records = [record(1), record(2)]
    assert await read_first(tails, 1) == record(2)
    assert store.reads == 2


async def test_large_records_are_not_kept_for_followers_that_are_far_behind() -> None:
    store = Store()
    tails = Tails(store.read, poll_interval=60)
    records = [Record(first, str(first), (b"x" * 300_000,)) for first in range(1, 11)]
    async with aclosing(tails.follow("x", 0)) as follower:
        waiting_for_first = asyncio.create_task(anext(follower))
        await wait_for_reads(store, 1)
        for each in records:
            store.records.append(each)
            tails.offer("x", each)
        await waiting_for_first
        behind = await read_first(tails, 0)
        assert behind == records[0]
        recent = tails._tails["x"].recent_after(7)
    assert recent == records[7:]
