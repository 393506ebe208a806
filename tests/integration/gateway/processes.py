"""Gateways as processes that can be killed: forks of one process that has imported a gateway."""

import asyncio
import json
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import grpc

from parley.runtime.channel import channel
from parley.runtime.errors import from_rpc_error, is_transport
from parley.v1 import gateway_pb2, gateway_pb2_grpc
from tests.support.warm_process import Job
from tests.support.warm_start import GATEWAY, WarmStart


@dataclass(frozen=True, slots=True)
class GatewayProcess:
    """A gateway that serves. `key` is the one it sends to the model server."""

    process: WarmStart
    stub: gateway_pb2_grpc.GatewayServiceStub
    key: str

    async def kill(self) -> None:
        """What a machine that dies does."""
        self.process.kill()
        await asyncio.to_thread(self.process.wait)


@asynccontextmanager
async def gateway_process(
    base_url: str, store: str, key: str, **settings: str
) -> AsyncIterator[GatewayProcess]:
    """A gateway of its own process over a store, as long as the block lasts."""
    names = ("PARLEY_", "OPENAI_", "OPENROUTER_")
    environment = {name: value for name, value in os.environ.items() if not name.startswith(names)}
    environment |= {
        "OPENAI_BASE_URL": base_url,
        "OPENAI_API_KEY": key,
        "PARLEY_MODEL": "m",
        "PARLEY_PORT": "0",
        "PARLEY_STORE": store,
        "PARLEY_GRACE_SECONDS": "2",
        **{f"PARLEY_{name.upper()}": value for name, value in settings.items()},
    }
    ours, theirs = os.pipe()
    with open(ours, "rb") as written, open(os.devnull) as nothing:  # noqa: ASYNC230, PTH123 (descriptors)
        try:
            streams = [nothing.fileno(), theirs, theirs]
            process = await asyncio.to_thread(
                WarmStart, Job(GATEWAY, [], environment, str(Path.cwd())), streams
            )
        finally:
            os.close(theirs)
        draining = None
        try:
            address = await asyncio.to_thread(_read_address, written)
            draining = asyncio.create_task(asyncio.to_thread(written.read))
            async with channel(address) as connection:
                yield GatewayProcess(process, gateway_pb2_grpc.GatewayServiceStub(connection), key)
        finally:
            process.send_signal(signal.SIGTERM)
            await asyncio.to_thread(process.wait)
            if draining is not None:
                await draining


async def ask_until_answered(
    gateways: list[GatewayProcess], asked: gateway_pb2.GenerateRequest, first: int
) -> gateway_pb2.GenerateCompleted:
    """The answer, from whichever gateway is there to give it."""
    for number in range(first, first + 200):
        gateway = gateways[number % len(gateways)]
        try:
            async for response in gateway.stub.Generate(asked, timeout=30):
                if response.WhichOneof("event") == "completed":
                    return response.completed
        except grpc.aio.AioRpcError as error:
            if not is_transport(error) and from_rpc_error(error).reason != "STORE_UNAVAILABLE":
                raise
            await asyncio.sleep(0.1)
    raise AssertionError("no gateway answered")


def _read_address(written: BinaryIO) -> str:
    for line in written:
        try:
            said = json.loads(line)
        except ValueError:
            continue
        if said.get("event") == "serving":
            return str(said["address"])
    raise AssertionError("the gateway did not start")
