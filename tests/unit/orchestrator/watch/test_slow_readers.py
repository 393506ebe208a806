"""A watch whose reader takes no message for too long ends, and no other one."""

import asyncio

import pytest

from parley.orchestrator.watch.slow_readers import SlowReaders

WITHIN = 30


async def test_a_write_that_takes_too_long_ends_its_stream_and_one_that_is_read_goes_on() -> None:
    readers, cut = SlowReaders(0.05), asyncio.Event()

    async def send_to_a_slow_reader() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(None) as stream:
                await readers.wait_for(asyncio.Event().wait(), stream)
        cut.set()

    async def send_until_the_other_is_cut() -> None:
        async with asyncio.timeout(None) as stream:
            while not cut.is_set():
                await readers.wait_for(asyncio.sleep(0), stream)

    async with asyncio.timeout(WITHIN), asyncio.TaskGroup() as tasks:
        tasks.create_task(send_to_a_slow_reader())
        tasks.create_task(send_until_the_other_is_cut())


async def test_a_stream_that_waits_for_news_is_not_cut() -> None:
    readers, cut = SlowReaders(0.05), asyncio.Event()

    async def wait_for_news() -> None:
        async with asyncio.timeout(None) as stream:
            await readers.wait_for(asyncio.sleep(0), stream)
            await cut.wait()

    async def send_to_a_slow_reader() -> None:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(None) as stream:
                await readers.wait_for(asyncio.Event().wait(), stream)
        cut.set()

    async with asyncio.timeout(WITHIN), asyncio.TaskGroup() as tasks:
        tasks.create_task(wait_for_news())
        tasks.create_task(send_to_a_slow_reader())
