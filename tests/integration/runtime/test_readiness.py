"""Health: whether a process lives, whether it can work now, and where both are told."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from grpc_health.v1 import health_pb2, health_pb2_grpc

from parley.runtime import health_check
from parley.runtime.health import LIVENESS, Health
from parley.runtime.server import CannotListenError, ServerSettings, Service, start_server
from tests.support.ports import free_ports

NAME = "parley.test.Store"


class Store:
    """What a service needs: up, down, or silent."""

    def __init__(self) -> None:
        self.up = True
        self.silent = False

    async def ping(self) -> None:
        if self.silent:
            await asyncio.Event().wait()
        if not self.up:
            raise RuntimeError("the store does not answer")


@asynccontextmanager
async def serve_health(health: Health) -> AsyncIterator[health_pb2_grpc.HealthStub]:
    server = grpc.aio.server()
    health.register(server)
    port = server.add_insecure_port("127.0.0.1:0")
    await server.start()
    async with grpc.aio.insecure_channel(f"127.0.0.1:{port}") as connection:
        yield health_pb2_grpc.HealthStub(connection)
    await server.stop(None)


async def status(stub: Any, name: str = "") -> str:
    answer = await stub.Check(health_pb2.HealthCheckRequest(service=name), timeout=10)
    return health_pb2.HealthCheckResponse.ServingStatus.Name(answer.status)


async def test_a_service_whose_store_is_down_is_not_ready_and_lives_and_is_ready_again_when_it_is_back() -> (
    None
):
    store, other = Store(), Store()
    health = Health({NAME: store.ping, "parley.test.Other": other.ping, "parley.test.Plain": None})
    await health.start_serving()
    async with serve_health(health) as stub:
        store.up = False
        await health.check()
        assert [await status(stub, each) for each in (NAME, "")] == ["NOT_SERVING", "NOT_SERVING"]
        for fine in (LIVENESS, "parley.test.Other", "parley.test.Plain"):
            assert await status(stub, fine) == "SERVING"
        store.up = True
        await health.check()
        assert [await status(stub, each) for each in (NAME, "")] == ["SERVING", "SERVING"]


async def test_a_store_that_says_nothing_is_one_that_is_down() -> None:
    store = Store()
    store.silent = True
    health = Health({NAME: store.ping})
    await health.start_serving()
    async with serve_health(health) as stub:
        await health.check(0.01)
        assert await status(stub, NAME) == "NOT_SERVING"
        assert await status(stub, LIVENESS) == "SERVING"


async def test_nothing_is_ready_again_once_a_server_drains() -> None:
    health = Health({NAME: Store().ping})
    await health.start_serving()
    async with serve_health(health) as stub:
        await health.stop_serving()
        await health.check()
        assert [await status(stub, each) for each in (NAME, LIVENESS)] == ["NOT_SERVING", "NOT_SERVING"]


async def test_the_health_port_tells_health_and_serves_nothing_else() -> None:
    port = next(free_ports())
    service = Service(NAME, lambda server: None, ready=Store().ping)
    async with (
        start_server([service], ServerSettings(health_port=port)),
        grpc.aio.insecure_channel(f"127.0.0.1:{port}") as connection,
    ):
        assert await status(health_pb2_grpc.HealthStub(connection), NAME) == "SERVING"
        ask: Any = connection.unary_unary("/grpc.reflection.v1alpha.ServerReflection/ServerReflectionInfo")
        with pytest.raises(grpc.aio.AioRpcError) as refused:
            await ask(b"", timeout=10)
        assert refused.value.code() is grpc.StatusCode.UNIMPLEMENTED


async def test_a_health_port_that_is_taken_stops_the_start_by_its_name() -> None:
    service = Service(NAME, lambda server: None)
    async with start_server([service], ServerSettings()) as running:
        with pytest.raises(CannotListenError, match="PARLEY_HEALTH_PORT: cannot listen on"):
            async with start_server([service], ServerSettings(health_port=running.port)):
                pass


async def test_a_command_of_the_image_asks_the_health_port(capsys: pytest.CaptureFixture[str]) -> None:
    port = next(free_ports())
    asked = f"127.0.0.1:{port}"
    assert await asyncio.to_thread(health_check.main, [asked]) == 1
    service = Service(NAME, lambda server: None, ready=Store().ping)
    async with start_server([service], ServerSettings(health_port=port)):
        assert await asyncio.to_thread(health_check.main, [asked]) == 0
        assert await asyncio.to_thread(health_check.main, [asked, "--service", "parley.test.Unknown"]) == 1
    assert capsys.readouterr().out.split() == ["UNAVAILABLE", "SERVING", "NOT_FOUND"]
