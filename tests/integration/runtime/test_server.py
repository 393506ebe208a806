import asyncio
import os
import signal
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import grpc
import pytest
from google.protobuf import descriptor_pb2
from grpc_health.v1 import health_pb2, health_pb2_grpc
from grpc_reflection.v1alpha import reflection_pb2

from parley.runtime import errors
from parley.runtime.channel import ChannelSettings, channel
from parley.runtime.draining import Draining
from parley.runtime.server import ServerSettings, serve, start_server
from parley.v1 import orchestrator_pb2
from tests.integration.runtime.wire import make_service, method, stream_method
from tests.support.catching import catch_error

SERVING = health_pb2.HealthCheckResponse.SERVING
NOT_SERVING = health_pb2.HealthCheckResponse.NOT_SERVING


async def echo(request: bytes, _context: object) -> bytes:
    return request


async def health_of(there: grpc.aio.Channel, name: str) -> int:
    stub: Any = health_pb2_grpc.HealthStub(there)
    answer = await stub.Check(health_pb2.HealthCheckRequest(service=name))
    return int(answer.status)


async def test_health_is_told_for_the_server_and_for_each_service_by_name() -> None:
    services = [make_service("a.v1.A", Echo=echo), make_service("b.v1.B", Echo=echo)]
    async with start_server(services) as server, channel(server.address) as there:
        assert [await health_of(there, name) for name in ("", "a.v1.A", "b.v1.B")] == [SERVING] * 3
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await health_of(there, "c.v1.C")
    assert caught.value.code() is grpc.StatusCode.NOT_FOUND


async def test_a_server_whose_start_is_cancelled_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else gRPC stops it when it is collected, and complains if no loop runs by then."""
    servers: list[grpc.aio.Server] = []
    create_server = grpc.aio.server

    def keep_server(**options: Any) -> grpc.aio.Server:
        servers.append(create_server(**options))
        return servers[-1]

    def cancel_start(_address: str) -> None:
        starting.cancel()

    async def run() -> None:
        async with start_server([replace(make_service(Echo=echo), on_listening=cancel_start)]):
            raise AssertionError("it was started")

    monkeypatch.setattr(grpc.aio, "server", keep_server)
    starting = asyncio.create_task(run())
    with pytest.raises(asyncio.CancelledError):
        await starting
    assert [each._server.is_running() for each in servers] == [False]  # type: ignore[attr-defined]


@pytest.mark.parametrize("version", ["v1", "v1alpha"])
async def test_reflection_lists_and_describes_the_services_under_both_names(version: str) -> None:
    services = [make_service("a.v1.A", Echo=echo), make_service("b.v1.B", Echo=echo)]
    itself = f"grpc.reflection.{version}.ServerReflection"
    requests = [
        reflection_pb2.ServerReflectionRequest(list_services=""),
        *(
            reflection_pb2.ServerReflectionRequest(file_containing_symbol=each)
            for each in (itself, "grpc.health.v1.Health", "google.rpc.ErrorInfo")
        ),
    ]
    async with start_server(services) as server, channel(server.address) as there:
        ask: Any = there.stream_stream(
            f"/{itself}/ServerReflectionInfo",
            request_serializer=reflection_pb2.ServerReflectionRequest.SerializeToString,
            response_deserializer=reflection_pb2.ServerReflectionResponse.FromString,
        )
        listed, own, health, details = [answer async for answer in ask(iter(requests))]
    names = {each.name for each in listed.list_services_response.service}
    assert {"a.v1.A", "b.v1.B", "grpc.health.v1.Health", itself} <= names
    for answer, package in (
        (own, f"grpc.reflection.{version}"),
        (health, "grpc.health.v1"),
        (details, "google.rpc"),  # so that clients can show what a status carries
    ):
        (stored, *_) = answer.file_descriptor_response.file_descriptor_proto
        assert descriptor_pb2.FileDescriptorProto.FromString(stored).package == package


async def test_at_drain_health_flips_streams_end_resumably_and_a_running_call_finishes() -> None:
    draining = Draining()
    began, finish = asyncio.Event(), asyncio.Event()

    async def send_one_and_wait() -> AsyncIterator[bytes]:
        yield b"first"
        await asyncio.Event().wait()

    async def watch(_request: bytes, _context: object) -> AsyncIterator[bytes]:
        async for message in draining.until(send_one_and_wait()):
            yield message

    async def work(_request: bytes, _context: object) -> bytes:
        began.set()
        await finish.wait()
        return b"done"

    service = make_service(Watch=watch, Work=work)
    async with (
        asyncio.timeout(30),
        start_server([service], draining=draining) as server,
        channel(server.address) as there,
    ):
        stub: Any = health_pb2_grpc.HealthStub(there)
        health = stub.Watch(health_pb2.HealthCheckRequest())
        assert (await health.read()).status == SERVING
        watching = stream_method(there, "Watch")(b"")
        assert await watching.read() == b"first"
        working = asyncio.ensure_future(method(there, "Work")(b""))
        await began.wait()
        stopping = asyncio.create_task(server.drain())
        assert (await health.read()).status == NOT_SERVING
        health.cancel()
        error = await catch_error(watching.read())
        assert not stopping.done()
        finish.set()
        assert await working == b"done"
        await stopping
    assert (error.code, error.reason) == (grpc.StatusCode.UNAVAILABLE, errors.DRAINING)
    assert errors.is_transport(error)


async def test_a_call_that_outlasts_the_grace_is_cut() -> None:
    began, cut = asyncio.Event(), asyncio.Event()

    async def work(_request: bytes, _context: object) -> bytes:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            cut.set()
        return b""

    settings = ServerSettings(grace_seconds=0.1)
    async with asyncio.timeout(30):
        async with (
            start_server([make_service(Work=work)], settings) as server,
            channel(server.address) as there,
        ):
            working = asyncio.ensure_future(method(there, "Work")(b""))
            await began.wait()
            await server.drain()
            with pytest.raises(grpc.aio.AioRpcError) as caught:
                await working
        await cut.wait()
    assert errors.is_transport(caught.value)


async def test_a_signal_lets_a_running_call_end() -> None:
    async with call_while_served(ServerSettings()) as (working, release, draining):
        os.kill(os.getpid(), signal.SIGTERM)
        await draining.wait()
        release.set()
        assert await working == b"done"


async def test_a_second_signal_does_not_wait_for_the_grace() -> None:
    async with call_while_served(ServerSettings(grace_seconds=600)) as (working, _, draining):
        os.kill(os.getpid(), signal.SIGINT)
        await draining.wait()
        os.kill(os.getpid(), signal.SIGINT)
        with pytest.raises(grpc.aio.AioRpcError):
            await working


@asynccontextmanager
async def call_while_served(
    settings: ServerSettings,
) -> AsyncIterator[tuple[asyncio.Future[bytes], asyncio.Event, Draining]]:
    """Yield a call that runs until the event is set, and what is set when its server stops; it has stopped at the end."""
    began, release, draining = asyncio.Event(), asyncio.Event(), Draining()
    listening: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def work(_request: bytes, _context: object) -> bytes:
        began.set()
        await release.wait()
        return b"done"

    service = replace(make_service(Work=work), on_listening=listening.set_result)
    async with asyncio.timeout(30), asyncio.TaskGroup() as group:
        group.create_task(serve([service], settings, draining=draining))
        async with channel(await listening) as there:
            working = asyncio.ensure_future(method(there, "Work")(b""))
            await began.wait()
            yield working, release, draining


async def test_a_taken_port_is_one_line_that_names_address_and_settings() -> None:
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        holder.listen()
        port = holder.getsockname()[1]
        with pytest.raises(errors.ConfigurationError) as caught:
            async with start_server([make_service(Echo=echo)], ServerSettings(port=port)):
                pass
    (line,) = caught.value.problems
    assert f"127.0.0.1:{port}" in line
    assert "PARLEY_PORT" in line
    assert "\n" not in line


async def test_two_servers_never_share_a_port() -> None:
    async with start_server([make_service(Echo=echo)]) as server:
        with pytest.raises(errors.ConfigurationError):
            async with start_server([make_service(Echo=echo)], ServerSettings(port=server.port)):
                pass


async def test_a_message_over_the_limit_of_its_method_is_refused_and_one_under_it_passes() -> None:
    name = orchestrator_pb2.DESCRIPTOR.services_by_name["OrchestratorService"].full_name
    large, larger = b"x" * (8 * 1024 * 1024), b"x" * (17 * 1024 * 1024)
    async with (
        start_server([make_service(name, CreateDebate=echo, GetDebate=echo)], ServerSettings()) as server,
        channel(server.address) as there,
    ):
        assert await method(there, "CreateDebate", name)(large) == large
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await method(there, "CreateDebate", name)(larger)
        assert caught.value.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        small = large[: 1024 * 1024]
        assert await method(there, "GetDebate", name)(small) == small
        refused = await catch_error(method(there, "GetDebate", name)(small + b"x"))
    assert (refused.code, refused.reason) == (grpc.StatusCode.INVALID_ARGUMENT, "REQUEST_TOO_LARGE")


async def test_calls_go_round_every_address_of_a_target() -> None:
    counts = {"one": 0, "two": 0}

    def make_counting_handler(name: str) -> object:
        async def count(_request: bytes, _context: object) -> bytes:
            counts[name] += 1
            return b""

        return count

    one, two = make_service(Ask=make_counting_handler("one")), make_service(Ask=make_counting_handler("two"))
    async with start_server([one]) as first, start_server([two]) as second:
        target = f"ipv4:{first.address},{second.address}"
        async with channel(target, ChannelSettings()) as there, asyncio.timeout(30):
            while not all(counts.values()):
                await method(there, "Ask")(b"")


async def test_pings_that_pile_up_do_not_cost_a_client_its_connection() -> None:
    settings, ping, pile = 4, 6, 20

    def frame(kind: int, payload: bytes = b"") -> bytes:
        return len(payload).to_bytes(3) + bytes([kind, 0]) + bytes(4) + payload

    async with start_server([make_service(Echo=echo)]) as server, asyncio.timeout(30):
        reader, writer = await asyncio.open_connection(*server.address.rsplit(":", 1))

        async def answer_pings(pings: int) -> None:
            while pings:
                header = await reader.readexactly(9)
                await reader.readexactly(int.from_bytes(header[:3]))
                pings -= header[3] == ping

        writer.write(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + frame(settings))
        writer.write(b"".join(frame(ping, number.to_bytes(8)) for number in range(pile)))
        await answer_pings(pile)
        writer.write(frame(ping, bytes(8)))
        await answer_pings(1)
        writer.close()
        await writer.wait_closed()


async def test_a_connection_that_says_nothing_is_closed() -> None:
    settings = ServerSettings(handshake_seconds=0.2)
    async with start_server([make_service(Echo=echo)], settings) as server, asyncio.timeout(10):
        host, port = server.address.rsplit(":", 1)
        reader, writer = await asyncio.open_connection(host, int(port))
        while await reader.read(1024):  # the server's own greeting comes first
            pass
        writer.close()


async def test_a_connection_without_a_call_is_closed_and_its_client_notices_nothing() -> None:
    settings = ServerSettings(max_connection_idle_seconds=0.2)
    async with (
        start_server([make_service(Echo=echo)], settings) as server,
        channel(server.address) as there,
        asyncio.timeout(10),
    ):
        assert await method(there, "Echo")(b"one") == b"one"
        while there.get_state() is grpc.ChannelConnectivity.READY:
            await there.wait_for_state_change(grpc.ChannelConnectivity.READY)
        assert await method(there, "Echo")(b"two") == b"two"
