"""A system on one's own machine: its user's commands get in by themselves, and nobody else does."""

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import grpc
import pytest

from parley.client import GatewayClient, ParleyClient, ParleyError
from parley.edge import __main__ as edge_process
from parley.edge.settings import EdgeSettings
from parley.local import LocalOptions, Ports, local_system
from parley.runtime.channel import channel
from parley.runtime.errors import ConfigurationError
from parley.runtime.health import Health
from parley.runtime.identity.local_token import find_token
from parley.runtime.server import RunningServer, Service
from parley.storage.folder_lock import read_address
from parley.v1 import orchestrator_pb2, orchestrator_pb2_grpc

ASKED = orchestrator_pb2.ListDebatesRequest()


@pytest.fixture(autouse=True)
def folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("run", "elsewhere"):
        (tmp_path / name).mkdir(mode=0o700)
    monkeypatch.setenv("PARLEY_STORE", f"sqlite:///{tmp_path / 'data'}")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "elsewhere"))


@pytest.fixture
async def address() -> AsyncIterator[str]:
    async with local_system(LocalOptions(purpose="records")) as system:
        yield system.orchestrator_address


async def list_debates(address: str, **access: str) -> list[str]:
    async with ParleyClient(address, patience=0, **access) as parley:
        return [each.id async for each in parley.list()]


async def refusal(address: str, **access: str) -> str:
    with pytest.raises(ParleyError) as caught:
        await list_debates(address, **access)
    return caught.value.reason


async def test_a_service_that_is_listed_answers_this_user_at_once() -> None:
    tokens: dict[str, str] = {}

    def note(name: str, address: str) -> None:
        tokens[name] = find_token(int(address.rpartition(":")[2]))

    async with local_system(LocalOptions(purpose="deleting", on_listening=note)):
        assert sorted(tokens) == ["convergence", "memory", "orchestrator", "ratings"]
        assert all(tokens.values())


async def test_a_system_that_begins_to_stop_still_knows_its_user(monkeypatch: pytest.MonkeyPatch) -> None:
    answers: list[list[str]] = []

    async def stop_serving(_: Health) -> None:
        answers.append(await list_debates(system.orchestrator_address))

    async with local_system(LocalOptions(purpose="records")) as system:
        monkeypatch.setattr(Health, "stop_serving", stop_serving)
    assert answers == [[]]


async def test_a_system_knows_its_user_before_it_answers_the_first_call(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    known: list[int] = []
    start_serving = RunningServer.start

    async def start(server: RunningServer, services: Iterable[Service]) -> None:
        begin = server._server.start

        async def note_and_begin() -> None:
            known.append(len(list((tmp_path / "run").rglob("*.token"))))
            await begin()

        monkeypatch.setattr(server._server, "start", note_and_begin)
        await start_serving(server, services)

    monkeypatch.setattr(RunningServer, "start", start)
    async with local_system(LocalOptions(purpose="records")):
        pass
    assert known == [1]


async def test_a_system_that_stops_is_not_found_any_more_and_its_folder_is_waited_for(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    at_the_stop: list[str | None] = []
    run_edge = edge_process.run_edge

    @asynccontextmanager
    async def run(settings: EdgeSettings, **parts: Any) -> AsyncIterator[str]:
        async with run_edge(settings, **parts) as address:
            yield address
            at_the_stop.append(read_address(tmp_path / "data"))

    monkeypatch.setattr(edge_process, "run_edge", run)
    monkeypatch.setenv("PARLEY_LOCAL_MODEL", "off")
    async with local_system(LocalOptions(ports=Ports(edge=0))) as system:
        while_it_runs = read_address(tmp_path / "data")
    assert while_it_runs == f"{system.orchestrator_address},{system.gateway_address},{system.edge_address}"
    assert at_the_stop == [None]


async def test_this_users_client_gets_in_by_itself_also_with_a_token_for_elsewhere_around(
    address: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert await list_debates(address) == []
    monkeypatch.setenv("PARLEY_TOKEN", "for-another-server")
    monkeypatch.setenv("PARLEY_CA", str(Path(__file__).parent / "of-another-server.pem"))
    assert await list_debates(address) == []


async def test_a_caller_that_cannot_read_the_token_does_not_get_in(
    address: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with channel(address) as bare:
        stub = orchestrator_pb2_grpc.OrchestratorServiceStub(bare)
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub.ListDebates(ASKED, metadata=(("parley-tenant", "default"),))
    assert caught.value.code() == grpc.StatusCode.UNAUTHENTICATED
    assert await refusal(address, token="local_guess") == "BAD_CREDENTIALS"
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "elsewhere"))
    assert await refusal(address) == "NO_CREDENTIALS"


async def test_what_a_client_calls_itself_makes_it_no_other_tenant(address: str) -> None:
    async with ParleyClient(address, tenant="acme", patience=0) as parley:
        assert [each async for each in parley.list()] == []


async def test_by_name_everybody_on_this_machine_is_let_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARLEY_AUTH", "none")
    async with (
        local_system(LocalOptions(purpose="records")) as system,
        channel(system.orchestrator_address) as bare,
    ):
        await orchestrator_pb2_grpc.OrchestratorServiceStub(bare).ListDebates(ASKED)


async def test_inner_services_let_in_the_user_and_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    async with local_system(LocalOptions(purpose="agents")) as system:
        assert system.gateway_address is not None
        async with GatewayClient(system.gateway_address, patience=0) as gateway:
            assert (await gateway.list_agents()).agents


async def test_the_edge_lets_in_the_same_user_and_what_is_set_for_an_edge_elsewhere_does_not_hinder_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PARLEY_HOST", "0.0.0.0")
    monkeypatch.setenv("PARLEY_AUTH", "key")
    monkeypatch.setenv("PARLEY_TLS", "off")
    monkeypatch.setenv("PARLEY_EDGE_HOSTS", "parley.example")
    async with (
        local_system(LocalOptions(purpose="records", ports=Ports(edge=0))) as system,
        aiohttp.ClientSession() as session,
    ):
        url = f"http://{system.edge_address}/parley.v1.OrchestratorService/ListDebates"
        token = find_token(int(system.orchestrator_address.rpartition(":")[2]))
        for bearer, status in ((token, 200), ("local_guess", 401)):
            headers = {"Authorization": f"Bearer {bearer}"}
            async with session.post(url, json={}, headers=headers) as answer:
                assert answer.status == status, await answer.text()


async def test_the_system_of_a_command_has_no_edge() -> None:
    async with local_system(LocalOptions(purpose="records")) as system:
        assert system.edge_address is None


async def test_a_service_that_starts_late_and_cannot_ends_the_system_with_its_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PARLEY_VECTORS", "elsewhere:vectors")

    async def run() -> None:
        async with asyncio.timeout(60), local_system(LocalOptions(begins_debate=True)):
            await asyncio.Event().wait()

    with pytest.raises(ConfigurationError, match="PARLEY_VECTORS must be"):
        await run()


async def test_a_setting_of_a_service_that_starts_late_is_refused_before_anything_starts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("PARLEY_MEMORY_DECISIONS_DAYS", "many")
    started = False

    async def run() -> None:
        nonlocal started
        async with asyncio.timeout(60), local_system(LocalOptions(begins_debate=True)):
            started = True
            await asyncio.Event().wait()

    with pytest.raises(ConfigurationError, match="PARLEY_MEMORY_DECISIONS_DAYS"):
        await run()
    assert not started


@pytest.mark.parametrize("begins_debate", [False, True])
async def test_services_of_one_process_and_its_own_client_call_without_a_socket(
    monkeypatch: pytest.MonkeyPatch, *, begins_debate: bool
) -> None:
    opened: list[str] = []
    open_channel = grpc.aio.insecure_channel

    def record(target: str, **options: Any) -> grpc.aio.Channel:
        opened.append(target)
        return open_channel(target, **options)

    monkeypatch.setattr(grpc.aio, "insecure_channel", record)
    async with local_system(LocalOptions(ports=Ports(edge=0), begins_debate=begins_debate)) as system:
        assert system.channel is not None
        parley = ParleyClient.over(system.channel, (), patience=0)
        await parley.list_agents()
        assert [each async for each in parley.search_memory("which queue?")] == []
        assert [each async for each in parley.list_ratings()] == []
        async with local_system(LocalOptions()) as shared:
            assert shared.channel is None, "that process has another one's system"
    assert opened == []
