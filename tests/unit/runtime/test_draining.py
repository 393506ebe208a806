import asyncio
from collections.abc import AsyncIterator

import pytest

from parley.runtime.draining import Draining
from parley.runtime.errors import DRAINING, ParleyError


async def endless(closed: asyncio.Event) -> AsyncIterator[int]:
    try:
        yield 1
        await asyncio.Event().wait()
    finally:
        closed.set()


async def test_a_waiting_stream_ends_at_once_and_its_source_is_closed() -> None:
    draining, closed, got = Draining(), asyncio.Event(), []
    async with asyncio.timeout(30):
        with pytest.raises(ParleyError) as caught:  # noqa: PT012
            async for item in draining.until(endless(closed)):
                got.append(item)
                asyncio.get_running_loop().call_soon(draining.set)
    assert got == [1]
    assert caught.value.reason == DRAINING
    assert closed.is_set()


async def test_a_stream_that_begins_after_that_does_not_begin() -> None:
    draining = Draining()
    draining.set()
    await draining.wait()
    with pytest.raises(ParleyError):
        await anext(draining.until(endless(asyncio.Event())))


async def test_a_stream_that_ends_by_itself_just_ends_and_its_own_timeout_stays_one() -> None:
    async def count_one() -> AsyncIterator[int]:
        yield 1

    async def count_one_and_fail() -> AsyncIterator[int]:
        yield 1
        raise TimeoutError

    draining = Draining()
    assert [item async for item in draining.until(count_one())] == [1]
    with pytest.raises(TimeoutError):
        assert [item async for item in draining.until(count_one_and_fail())]


async def test_cancelling_the_reader_is_a_cancellation_and_not_a_drain() -> None:
    draining, closed = Draining(), asyncio.Event()
    reading = asyncio.Event()

    async def read() -> None:
        async for _ in draining.until(endless(closed)):
            reading.set()

    task = asyncio.create_task(read())
    await reading.wait()
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert closed.is_set()


async def test_an_item_that_came_as_the_server_began_to_stop_is_delivered_whole() -> None:
    draining, news, got = Draining(), asyncio.Event(), []

    async def items() -> AsyncIterator[int]:
        yield 1
        await news.wait()
        yield 2

    def stop_when_there_is_news() -> None:
        news.set()
        draining.set()

    with pytest.raises(ParleyError):  # noqa: PT012
        async for item in draining.until(items()):
            asyncio.get_running_loop().call_soon(stop_when_there_is_news)
            await asyncio.sleep(0) if item == 2 else None
            await asyncio.sleep(0) if item == 2 else None
            got.append(item)
    assert got == [1, 2]
