"""Services that share a process: when a part of one fails, all of them stop."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from parley.local_services import enter_together
from parley.runtime.errors import PartFailedError
from parley.runtime.tasks import background_task


async def test_a_service_whose_part_fails_stops_the_others_and_the_process() -> None:
    fail, left = asyncio.Event(), asyncio.Event()

    async def part() -> None:
        await fail.wait()
        raise KeyError("run-7")

    @asynccontextmanager
    async def gateway() -> AsyncIterator[str]:
        async with background_task("keeping the calls", part()):
            yield "gateway"

    @asynccontextmanager
    async def ratings() -> AsyncIterator[str]:
        yield "ratings"
        left.set()

    async def system() -> None:
        async with asyncio.timeout(30), enter_together(gateway(), ratings()) as addresses:
            assert addresses == ["gateway", "ratings"]
            fail.set()
            await asyncio.Event().wait()

    with pytest.raises(PartFailedError, match="keeping the calls failed: KeyError"):
        await system()
    assert left.is_set()
