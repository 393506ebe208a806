"""Services that share a process: when a part of one fails, all of them stop."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from parley.runtime.errors import ConfigurationError, PartFailedError
from parley.runtime.tasks import background_task
from parley.runtime.together import enter_meanwhile, enter_together


async def fail_to_open() -> None:
    raise ConfigurationError("PARLEY_STORE: is broken")


@asynccontextmanager
async def ratings_that_cannot_start() -> AsyncIterator[str]:
    await fail_to_open()
    yield "ratings"


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


async def test_a_service_that_starts_later_and_cannot_stops_the_process() -> None:
    async def system() -> None:
        async with asyncio.timeout(30), enter_meanwhile(ratings_that_cannot_start()):
            await asyncio.Event().wait()

    with pytest.raises(ConfigurationError, match="is broken"):
        await system()


async def test_a_service_that_has_not_started_keeps_nobody_from_leaving() -> None:
    @asynccontextmanager
    async def ratings() -> AsyncIterator[str]:
        await asyncio.Event().wait()
        yield "ratings"

    async with asyncio.timeout(30), enter_meanwhile(ratings()):
        await asyncio.sleep(0)


async def test_whoever_is_cancelled_while_services_start_does_not_wait_for_their_start() -> None:
    is_starting = asyncio.Event()

    @asynccontextmanager
    async def ratings() -> AsyncIterator[str]:
        is_starting.set()
        await asyncio.Event().wait()
        yield "ratings"

    async def system() -> None:
        async with enter_together(ratings()):
            pytest.fail("it has not started")

    running = asyncio.create_task(system())
    async with asyncio.timeout(30):
        await is_starting.wait()
        running.cancel()
        await asyncio.wait([running])
    assert running.cancelled()
