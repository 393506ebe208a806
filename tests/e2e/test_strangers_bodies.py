"""What large requests cost an orchestrator: nothing, unless it is known who sends them and the method takes so much."""

import asyncio
import subprocess
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import grpc
import pytest

from parley.runtime.errors import from_rpc_error
from parley.v1.orchestrator_pb2 import GetDebateRequest
from tests.e2e.harness import System, system
from tests.support.certificates import Authority
from tests.support.process_status import peak_bytes, resident_bytes

MIB = 1024 * 1024
CALLS = 24
MAX_GROWTH_MIB = 80
"""24 bodies of 15 MiB are 360 MiB. A call that is refused unread takes 64 KiB, the window of its stream."""
CREATE, GET = "/parley.v1.OrchestratorService/CreateDebate", "/parley.v1.OrchestratorService/GetDebate"
OPTIONS = [("grpc.max_send_message_length", -1), ("grpc.use_local_subchannel_pool", 1)]
CHECK = "/grpc.health.v1.Health/Check"


@dataclass
class Target:
    """An orchestrator that authenticates its callers by `ways`, alone: no call of these tests needs another service."""

    services: System
    connect: Callable[[], grpc.aio.Channel]
    key: str

    def peak_mib(self) -> int:
        """Return the most memory that the process has had at a time."""
        return peak_bytes(self.services.pid("orchestrator")) // 2**20

    def held_mib(self) -> int:
        """Return the memory that the process has now."""
        return resident_bytes(self.services.pid("orchestrator")) // 2**20


def _connect_with_certificate(address: str, authority: Authority, name: str) -> grpc.aio.Channel:
    certificate, key = authority.sign(name)
    credentials = grpc.ssl_channel_credentials(
        authority.file.read_bytes(), key.read_bytes(), certificate.read_bytes()
    )
    return grpc.aio.secure_channel(address, credentials, OPTIONS)


@pytest.fixture(scope="module", params=["key", "mtls"])
def target(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """Callers have no key, or a certificate that no rule names."""
    folder = tmp_path_factory.mktemp("bodies")
    authority = Authority(folder)
    certificate, key = authority.sign("parley")
    variables = {"PARLEY_AUTH": request.param}
    if request.param == "mtls":
        variables |= {
            "PARLEY_AUTH": "key,mtls",
            "PARLEY_TLS_CERTIFICATE": str(certificate),
            "PARLEY_TLS_KEY": str(key),
            "PARLEY_TLS_CLIENT_CA": str(authority.file),
            "PARLEY_MTLS_RULES": '[{"subject": "cn:someone", "roles": ["debate"]}]',
        }
    with system(folder, "http://127.0.0.1:9", variables) as services:
        address = services.addresses["orchestrator"]
        services.start("orchestrator")

        def connect() -> grpc.aio.Channel:
            if request.param == "mtls":
                return _connect_with_certificate(address, authority, "stranger")
            return grpc.aio.insecure_channel(address, OPTIONS)

        asyncio.run(_wait_until_served(connect))
        made = subprocess.run(
            [sys.executable, "-m", "parley.cli", "keys", "add", "ci", "--role", "debate"],
            env={"PARLEY_STORE": services.variables["PARLEY_STORE"]},
            capture_output=True,
            text=True,
            check=True,
        )
        yield Target(services, connect, made.stdout.strip())


async def _wait_until_served(connect: Callable[[], grpc.aio.Channel]) -> None:
    async with connect() as channel:
        check: Any = channel.unary_unary(CHECK)
        await check(b"", wait_for_ready=True, timeout=90)


async def send(
    target: Target, method: str, body: bytes, calls: int, connections: int = 1, **given: Any
) -> Counter[tuple[str, str]]:
    """Send the body in so many calls at once over some connections; return their codes and reasons."""

    async def outcome(channel: grpc.aio.Channel) -> tuple[str, str]:
        try:
            call: Any = channel.unary_unary(method)
            await call(body, timeout=300, **given)
        except grpc.aio.AioRpcError as error:
            return error.code().name, from_rpc_error(error).reason
        return "OK", ""

    async with AsyncExitStack() as stack:
        channels = [await stack.enter_async_context(target.connect()) for _ in range(connections)]
        each_call = (outcome(channels[number % connections]) for number in range(calls))
        return Counter(await asyncio.gather(*each_call))


@pytest.mark.parametrize("method", [CREATE, GET])
async def test_bodies_of_callers_without_credentials_are_not_read(target: Target, method: str) -> None:
    before = target.peak_mib()
    refused = await send(target, method, bytes(15 * MIB), CALLS)
    assert refused == {("UNAUTHENTICATED", "NO_CREDENTIALS"): CALLS}
    assert target.peak_mib() - before < MAX_GROWTH_MIB


async def test_bodies_of_health_checks_are_bounded_and_their_memory_is_given_back(target: Target) -> None:
    before = target.peak_mib()
    refused = await send(target, CHECK, bytes(15 * MIB), 3 * CALLS, connections=24)
    assert {code for code, _ in refused} <= {"INVALID_ARGUMENT", "RESOURCE_EXHAUSTED"}
    assert target.peak_mib() - before < 3 * MAX_GROWTH_MIB
    assert await send(target, CHECK, b"", 8) == {("OK", ""): 8}
    assert target.held_mib() - before < MAX_GROWTH_MIB / 2


async def test_compressed_bodies_are_refused_before_they_are_unpacked(target: Target) -> None:
    before = target.peak_mib()
    refused = await send(target, GET, bytes(15 * MIB), 16, compression=grpc.Compression.Gzip)
    assert refused == {("UNIMPLEMENTED", ""): 16}
    assert target.peak_mib() - before < MAX_GROWTH_MIB


async def test_a_known_caller_sends_large_requests_only_to_methods_that_take_them(target: Target) -> None:
    metadata = (("authorization", f"Bearer {target.key}"),)
    large = GetDebateRequest(debate_id="d" * (2 * MIB)).SerializeToString()
    refused = await send(target, GET, large, 1, metadata=metadata)
    assert refused == {("INVALID_ARGUMENT", "REQUEST_TOO_LARGE"): 1}
    read = await send(target, CREATE, bytes(15 * MIB), 1, metadata=metadata)
    assert read == {("INVALID_ARGUMENT", "INVALID_ARGUMENT"): 1}, "it has too many fields"
