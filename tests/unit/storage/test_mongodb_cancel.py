"""A cancel that came together with the store's answer stops the task all the same."""

import asyncio
from contextlib import suppress

import pytest
from pymongo.errors import AutoReconnect

from parley.storage.mongodb.database import map_errors


async def answer_that_takes_the_cancel_for_itself() -> None:
    with suppress(asyncio.CancelledError):
        await asyncio.Event().wait()


@pytest.mark.parametrize("fails", [False, True])
async def test_a_cancel_that_a_library_took_for_itself_stops_the_task(fails: bool) -> None:
    async def ask() -> None:
        with map_errors():
            await answer_that_takes_the_cancel_for_itself()
            if fails:
                raise AutoReconnect

    asking = asyncio.create_task(ask())
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait({asking}, timeout=10)
    assert asking.cancelled()


async def test_whoever_cleans_up_after_a_cancel_can_use_the_store() -> None:
    cleaned = asyncio.Event()

    async def ask() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            with map_errors():
                await asyncio.sleep(0)
            cleaned.set()

    asking = asyncio.create_task(ask())
    await asyncio.sleep(0)
    asking.cancel()
    await asyncio.wait({asking}, timeout=10)
    assert cleaned.is_set()
