import asyncio
from collections.abc import AsyncIterator
from contextlib import aclosing
from random import Random

import pytest

from parley.storage.opening import Store
from parley.storage.ports import AppendConflictError, AppendGapError, Log, Record
from tests.contract.conftest import OpenAgain, rarely_on_a_single_server


@pytest.fixture
def log(store: Store) -> Log:
    return store.log


@pytest.fixture
async def other(open_again: OpenAgain) -> AsyncIterator[Log]:
    async with open_again() as store:
        yield store.log


def record(first: int, *entries: bytes, by: str = "a") -> Record:
    return Record(first, f"{by}{first}", entries or (b"entry %d" % first,))


async def fill(log: Log, name: str, count: int, *, after: int = 0) -> list[Record]:
    records = [record(after + 1 + n) for n in range(count)]
    for one in records:
        await log.append(name, one)
    return records


async def take(log: Log, name: str, count: int, *, after: int = 0) -> list[Record]:
    """Follow until `count` records were seen."""
    seen: list[Record] = []
    async with asyncio.timeout(20), aclosing(log.follow(name, after)) as records:
        async for one in records:
            seen.append(one)
            if len(seen) == count:
                return seen
    raise AssertionError("follow ended by itself")


async def test_a_log_that_was_never_written_is_empty(log: Log) -> None:
    assert await log.read("none") == []


async def test_what_was_appended_is_read_in_order(log: Log) -> None:
    records = [record(1, b"a", b"b"), record(3, b"c"), record(4, b"d", b"e", b"f")]
    for one in records:
        await log.append("x", one)
    assert await log.read("x") == records


async def test_logs_do_not_mix(log: Log) -> None:
    await log.append("x", record(1, b"in x"))
    await log.append("x/1", record(1, b"in x/1"))
    assert [one.entries for one in await log.read("x")] == [(b"in x",)]
    assert [one.entries for one in await log.read("x/1")] == [(b"in x/1",)]


@pytest.mark.parametrize(
    ("after", "firsts"), [(0, [1, 3, 4]), (1, [1, 3, 4]), (2, [3, 4]), (3, [4]), (5, [4]), (6, [])]
)
async def test_reading_after_a_sequence_begins_with_the_record_that_holds_the_next(
    log: Log, after: int, firsts: list[int]
) -> None:
    for one in (record(1, b"a", b"b"), record(3, b"c"), record(4, b"d", b"e", b"f")):
        await log.append("x", one)
    assert [one.first for one in await log.read("x", after)] == firsts


async def test_a_limit_counts_records(log: Log) -> None:
    records = await fill(log, "x", 5)
    assert await log.read("x", 1, 2) == records[1:3]
    with pytest.raises(ValueError):
        await log.read("x", limit=0)


async def test_the_same_record_again_changes_nothing(log: Log) -> None:
    await log.append("x", record(1))
    await log.append("x", record(2))
    for again in (record(1), record(2), record(1)):
        await log.append("x", again)
    assert await log.read("x") == [record(1), record(2)]


async def test_another_record_at_the_same_place_is_a_conflict_and_leaves_no_trace(log: Log) -> None:
    await log.append("x", record(1, b"a", b"b"))
    for late in (record(1, by="b"), record(1, b"a", b"b", b"c", by="b"), record(2, by="b")):
        with pytest.raises(AppendConflictError):
            await log.append("x", late)
    assert await log.read("x") == [record(1, b"a", b"b")]


@pytest.mark.parametrize("first", [2, 5])
async def test_an_append_that_would_leave_a_gap_is_refused(log: Log, first: int) -> None:
    with pytest.raises(AppendGapError):
        await log.append("empty", record(first))
    await log.append("x", record(1))
    with pytest.raises(AppendGapError):
        await log.append("x", record(first + 1))
    assert await log.read("x") == [record(1)]
    assert await log.read("empty") == []


@rarely_on_a_single_server
async def test_of_two_writers_at_one_place_exactly_one_wins(log: Log, other: Log) -> None:
    async def write(to: Log, by: str, first: int) -> bool:
        try:
            await to.append("x", record(first, by=by))
        except AppendConflictError:
            return False
        return True

    for first in range(1, 41):
        outcomes = await asyncio.gather(
            *(write(to, by, first) for to, by in ((log, "a"), (other, "b"), (log, "c")))
        )
        assert outcomes.count(True) == 1
        winner = "abc"[outcomes.index(True)]
        assert (await other.read("x", first - 1)) == [record(first, by=winner)]


async def test_a_record_sent_twice_at_once_stands_once_and_both_succeed(log: Log, other: Log) -> None:
    for first in range(1, 21):
        await asyncio.gather(*(to.append("x", record(first)) for to in (log, other, log)))
    assert [one.first for one in await log.read("x")] == list(range(1, 21))


async def test_an_append_whose_caller_gave_up_can_be_sent_again(log: Log) -> None:
    for first in range(1, 31):
        attempt = asyncio.ensure_future(log.append("x", record(first)))
        for _ in range(first % 4):
            await asyncio.sleep(0)
        attempt.cancel()
        await asyncio.wait([attempt])
        await log.append("x", record(first))
    assert [one.first for one in await log.read("x")] == list(range(1, 31))


async def test_entries_come_back_as_they_were(log: Log) -> None:
    entries = (b"", bytes(range(256)), "ü🦜\u2028\t\r\n".encode(), b"\0\0\0\1", b"\xff\xfe", b"")
    await log.append("läg/1 🦜", Record(1, "ï", entries))
    (read,) = await log.read("läg/1 🦜")
    assert read == Record(1, "ï", entries)
    assert {type(entry) for entry in read.entries} == {bytes}


@pytest.mark.parametrize("length", [1, 1019, 1020, 1021, 5000])
async def test_texts_and_noise_of_any_length_are_read_and_followed_as_they_were(
    log: Log, other: Log, length: int
) -> None:
    text, noise = (b"an argument, made again; " * 200)[:length], Random(1).randbytes(length)
    records = [record(1, text), record(2, noise), record(3, text, b"", noise)]
    for one in [*records, *records]:
        await log.append("x", one)
    assert await log.read("x") == await other.read("x") == records
    assert await log.read("x", 3) == records[2:]
    assert await take(other, "x", 3) == records


async def test_a_record_of_empty_entries_keeps_their_number(log: Log) -> None:
    await log.append("x", record(1, b"", b"", b""))
    assert await log.read("x", 2) == [record(1, b"", b"", b"")]


@pytest.mark.parametrize("name", ["a\0b", "\ud800"])
async def test_a_name_that_no_store_keeps_is_refused(log: Log, name: str) -> None:
    with pytest.raises(ValueError):
        await log.append(name, record(1))
    with pytest.raises(ValueError):
        await log.append("x", Record(1, name, (b"fine",)))
    assert await log.read("x") == []


async def test_an_entry_that_is_not_bytes_is_refused(log: Log) -> None:
    with pytest.raises(ValueError, match="not bytes"):
        await log.append("x", Record(1, "a", (b"fine", "text")))  # type: ignore[arg-type]
    assert await log.read("x") == []


async def test_an_entry_may_have_a_megabyte(log: Log) -> None:
    large = record(1, b"x" * 2**20, b"\xff" * 2**20)
    await log.append("x", large)
    assert await log.read("x") == [large]


@rarely_on_a_single_server
async def test_a_record_may_have_fifteen_million_bytes_and_not_one_more(log: Log) -> None:
    largest = record(1, b"\0" * 7_000_000, b"\xff" * 8_000_000)
    await log.append("x", largest)
    with pytest.raises(ValueError, match="15000001 bytes"):
        await log.append("x", record(3, b"\0" * 15_000_001))
    assert await log.read("x") == [largest]


async def test_a_record_may_have_ten_thousand_entries(log: Log) -> None:
    large = record(1, *(b'{"n":%d}' % n for n in range(10_000)))
    await log.append("x", large)
    await log.append("x", record(10_001))
    assert await log.read("x", 9_999) == [large, record(10_001)]
    assert await log.read("x", 10_000) == [record(10_001)]


async def test_a_deleted_log_is_empty_and_may_begin_again(log: Log) -> None:
    await fill(log, "x", 3)
    await log.append("y", record(1))
    await log.delete("x")
    await log.delete("x")
    await log.delete("never was")
    assert await log.read("x") == []
    assert await log.read("y") == [record(1)]
    await log.append("x", record(1, by="b"))
    assert await log.read("x") == [record(1, by="b")]


async def test_what_one_process_appended_another_reads_at_once(log: Log, other: Log) -> None:
    for first in range(1, 11):
        await log.append("x", record(first))
        assert (await other.read("x", first - 1)) == [record(first)]


async def test_what_was_appended_outlives_the_process(log: Log, open_again: OpenAgain) -> None:
    records = await fill(log, "x", 3)
    async with open_again() as later:
        assert await later.log.read("x") == records


async def test_a_follower_begins_with_what_stands(log: Log) -> None:
    records = await fill(log, "x", 5)
    assert await take(log, "x", 5) == records
    assert await take(log, "x", 2, after=3) == records[3:]


async def test_a_follower_that_begins_within_a_record_gets_that_record(log: Log) -> None:
    await log.append("x", record(1, b"a", b"b", b"c"))
    assert await take(log, "x", 1, after=2) == [record(1, b"a", b"b", b"c")]


@rarely_on_a_single_server
@pytest.mark.parametrize("writer", ["here", "elsewhere"])
async def test_followers_see_every_record_once_and_in_order_while_it_is_written(
    log: Log, other: Log, writer: str
) -> None:
    before = await fill(log, "x", 10)
    async with asyncio.TaskGroup() as group:
        followers = [group.create_task(take(log, "x", 60 - after, after=after)) for after in (0, 0, 5, 10)]
        written = await fill(log if writer == "here" else other, "x", 50, after=10)
    for after, follower in zip((0, 0, 5, 10), followers, strict=True):
        assert follower.result() == [*before, *written][after:]


@rarely_on_a_single_server
async def test_a_slow_follower_misses_nothing(log: Log, other: Log) -> None:
    await log.append("x", record(1))
    seen: list[Record] = []
    written: list[Record] = []
    async with aclosing(log.follow("x")) as records:
        async for one in records:
            seen.append(one)
            if one.first == 1:  # far more than is kept for followers that are close behind
                written = await fill(other, "x", 100, after=1) + await fill(log, "x", 100, after=101)
            if len(seen) == 201:
                break
    assert seen == [record(1), *written]


async def test_a_follower_that_is_closed_stops(log: Log) -> None:
    await log.append("x", record(1))
    async with asyncio.timeout(20):
        waiting = asyncio.ensure_future(take(log, "x", 2))
        await take(log, "x", 1)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
    await log.append("x", record(2))
    assert await take(log, "x", 2) == [record(1), record(2)]


async def test_a_follower_of_a_deleted_log_sees_nothing_of_its_past(log: Log, other: Log) -> None:
    await fill(log, "x", 3)
    async with asyncio.timeout(20), aclosing(log.follow("x")) as records:
        assert [(await anext(records)).first for _ in range(3)] == [1, 2, 3]
        await other.delete("x")
        await fill(log, "x", 4)
        assert await anext(records) == record(4)
