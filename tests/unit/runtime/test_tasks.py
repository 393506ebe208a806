"""Parts of a service that run beside its server, and what becomes of it when one fails."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from parley.runtime import entry
from parley.runtime.channel import channel
from parley.runtime.errors import PartFailedError
from parley.runtime.server import ServerSettings, Service, start_server
from parley.runtime.tasks import background_task

BRIEF = ServerSettings(grace_seconds=0.5)


async def wait_forever() -> None:
    await asyncio.Event().wait()


@asynccontextmanager
async def fail_when_set() -> AsyncIterator[asyncio.Event]:
    """A block whose part fails once the event is set."""
    fail = asyncio.Event()

    async def part() -> None:
        await fail.wait()
        raise KeyError("run-7")

    async with background_task("keeping the calls", part()):
        yield fail


async def test_a_part_lasts_as_long_as_its_block() -> None:
    ended = asyncio.Event()

    async def part() -> None:
        try:
            await wait_forever()
        finally:
            ended.set()

    async with background_task("a part", part()):
        await asyncio.sleep(0)
        assert not ended.is_set()
    assert ended.is_set()


async def test_a_part_that_fails_ends_the_block_with_one_line() -> None:
    async def block() -> None:
        async with asyncio.timeout(30), fail_when_set() as fail:
            fail.set()
            await wait_forever()

    with pytest.raises(PartFailedError, match=r"^keeping the calls failed: KeyError: 'run-7'$"):
        await block()
    task = asyncio.current_task()
    assert task is not None
    assert task.cancelling() == 0


async def test_a_part_that_fails_as_the_block_ends_is_not_lost() -> None:
    async def block() -> None:
        async with fail_when_set() as fail:
            fail.set()
            for _ in range(2):
                await asyncio.sleep(0)

    with pytest.raises(PartFailedError):
        await block()


async def test_a_part_that_is_cancelled_though_nobody_asked_ends_the_block() -> None:
    async def part() -> None:
        raise asyncio.CancelledError

    async def block() -> None:
        async with asyncio.timeout(30), background_task("keeping the calls", part()):
            await wait_forever()

    with pytest.raises(PartFailedError, match=r"^keeping the calls failed: CancelledError$"):
        await block()


async def test_a_cancelled_block_stays_cancelled() -> None:
    async def block() -> None:
        async with fail_when_set():
            await wait_forever()

    task = asyncio.create_task(block())
    await asyncio.sleep(0)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_what_the_block_raises_comes_out_as_it_is() -> None:
    with pytest.raises(ValueError, match="of its own"):
        async with fail_when_set():
            raise ValueError("of its own")


async def test_a_server_drains_when_a_part_fails() -> None:
    async def serve() -> None:
        async with (
            fail_when_set() as fail,
            start_server([Service("parley.v1.X", lambda _: None)], BRIEF) as server,
        ):
            serves.set_result((server.address, fail))
            await wait_forever()

    serves: asyncio.Future[tuple[str, asyncio.Event]] = asyncio.Future()
    task = asyncio.create_task(serve())
    async with asyncio.timeout(30):
        address, fail = await serves
        async with channel(address) as connection:
            stub: Any = health_pb2_grpc.HealthStub(connection)
            watching = stub.Watch(health_pb2.HealthCheckRequest())
            assert (await watching.read()).status == health_pb2.HealthCheckResponse.SERVING
            fail.set()
            assert (await watching.read()).status == health_pb2.HealthCheckResponse.NOT_SERVING
        with pytest.raises(PartFailedError):
            await task


def test_the_process_ends_with_one_line_and_exit_code_1(capsys: pytest.CaptureFixture[str]) -> None:
    async def main() -> None:
        async with fail_when_set() as fail:
            fail.set()
            await wait_forever()

    assert entry.run(main) == 1
    assert "keeping the calls failed: KeyError: 'run-7'\n" in capsys.readouterr().err
