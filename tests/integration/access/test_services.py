"""Services among each other: each shows which one it is and whose work it does, and the log tells who wanted it."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import grpc
import pytest

from parley.orchestrator.peers.services import Memory
from parley.runtime.channel import ChannelSettings, channel
from parley.runtime.errors import ParleyError, from_rpc_error
from parley.runtime.identity.guard import Credentials, Guard
from parley.runtime.identity.identity import Identity
from parley.runtime.identity.service_tokens import ServiceSigner, ServiceTokens
from parley.runtime.labels import label_scope
from parley.storage.opening import open_store
from parley.v1 import debate_pb2, gateway_pb2, memory_pb2, orchestrator_pb2
from parley.v1.access_pb2 import ACCESS_ROLE_ADMIN
from parley.v1.event_pb2 import Event
from parley.v1.panel_pb2 import PanelSettings
from tests.integration.gateway.harness import Gateway, request, run_with_server
from tests.support.access import SECRET, Headers, key_for, service_headers
from tests.support.model_server import ModelServer
from tests.support.orchestration import WITHIN, Orchestrator, orchestrating
from tests.support.scripted_gateway import ScriptedGateway

SPEC = debate_pb2.DebateSpec(question="Is water wet?", panel=PanelSettings(rounds=1), history_limit=0)


@pytest.fixture
def gateway() -> ScriptedGateway:
    return ScriptedGateway()


class Known(ServiceTokens):
    """Believes one secret, which a test may change, and counts those it did not know."""

    def __init__(self) -> None:
        self.secret = SECRET
        self.unknown = asyncio.Semaphore(0)
        super().__init__(lambda: (self.secret.encode(),))

    async def identify(self, shown: Credentials) -> Identity | None:
        found = await super().identify(shown)
        if found is None:
            self.unknown.release()
        return found


@asynccontextmanager
async def run_secured(
    gateway: ScriptedGateway, folder: Path, secret: str = SECRET, known: Known | None = None
) -> AsyncIterator[tuple[Orchestrator, Headers]]:
    """An orchestrator and all that it calls, of which nobody is let in unasked; and what a caller of acme's shows."""
    async with (
        gateway.served(guard=Guard(known or Known())) as others,
        orchestrating(folder, others, over_sockets=True, auth="key", service_secret=secret) as orchestrator,
        open_store(f"sqlite:///{folder}", "orchestrator") as store,
    ):
        yield orchestrator, await key_for(store.documents, "acme", {ACCESS_ROLE_ADMIN})


async def create_debate(orchestrator: Orchestrator, headers: Headers) -> str:
    asked = orchestrator_pb2.CreateDebateRequest(request_id="r1", spec=SPEC)
    return (await orchestrator.stub.CreateDebate(asked, metadata=headers, timeout=WITHIN)).debate_id


async def events(orchestrator: Orchestrator, debate: str, headers: Headers) -> list[Event]:
    request = orchestrator_pb2.WatchDebateRequest(debate_id=debate)
    stream = orchestrator.stub.WatchDebate(request, metadata=headers, timeout=WITHIN)
    return [message.event async for message in stream if message.HasField("event")]


async def test_a_tenants_whole_debate_is_held_for_that_tenant_by_every_service(
    gateway: ScriptedGateway, tmp_path: Path
) -> None:
    async with run_secured(gateway, tmp_path) as (orchestrator, headers):
        debate = await create_debate(orchestrator, headers)
        log = await events(orchestrator, debate, headers)
    assert log[-1].HasField("closed")
    assert gateway.matches, "the ratings were told"
    signed = [each["parley-service-token"].split(":")[1:3] for each in gateway.metadata]
    assert signed == [["orchestrator", "acme"]] * len(gateway.calls)


async def test_the_log_tells_who_asked_and_who_intervened(gateway: ScriptedGateway, tmp_path: Path) -> None:
    hold = gateway.hold("*")
    async with run_secured(gateway, tmp_path) as (orchestrator, headers):
        debate = await create_debate(orchestrator, headers)
        act = debate_pb2.Intervention(guide=debate_pb2.Guide(text="Mind the cost."))
        request = orchestrator_pb2.InterveneRequest(request_id="i1", debate_id=debate, intervention=act)
        await orchestrator.stub.Intervene(request, metadata=headers, timeout=WITHIN)
        hold.release()
        gateway.release("*")
        log = await events(orchestrator, debate, headers)
    asked = log[0].debate_created.requested_by
    (acted,) = [each.intervened.intervened_by for each in log if each.HasField("intervened")]
    assert asked == acted
    assert asked.startswith("test (key ")


async def test_while_a_secret_is_replaced_a_debate_waits_and_no_step_fails(
    gateway: ScriptedGateway, tmp_path: Path
) -> None:
    known = Known()
    hold = gateway.hold("*")
    async with (
        run_secured(gateway, tmp_path, known=known) as (orchestrator, headers),
        asyncio.timeout(WITHIN),
    ):
        debate = await create_debate(orchestrator, headers)
        await gateway.wait_for("*")
        known.secret = "another" * 5
        hold.release()
        for _ in range(3):
            await known.unknown.acquire()
        known.secret = SECRET
        log = await events(orchestrator, debate, headers)
    assert log[-1].HasField("closed")
    assert not any(each.HasField("step_failed") for each in log)


async def test_a_service_that_knows_another_secret_for_a_moment_costs_no_step(
    gateway: ScriptedGateway,
) -> None:
    known = Known()
    known.secret = "another" * 5
    settings = ChannelSettings(headers=ServiceSigner("orchestrator", lambda: (SECRET.encode(),)).headers)
    async with (
        asyncio.timeout(WITHIN),
        gateway.served(guard=Guard(known)) as server,
        channel(server.address, settings) as connection,
        asyncio.TaskGroup() as tasks,
    ):
        with label_scope(tenant="acme"):
            listing = Memory(connection).list_patterns(memory_pb2.ListPatternsRequest(text="Kafka?"))
            asked = tasks.create_task(listing)
        await known.unknown.acquire()
        known.secret = SECRET
        assert not (await asked).patterns


async def test_while_a_secret_is_replaced_ratings_and_memory_are_told_later(
    gateway: ScriptedGateway, tmp_path: Path
) -> None:
    known = Known()
    hold = gateway.hold("*synthesis*")
    async with (
        run_secured(gateway, tmp_path, known=known) as (orchestrator, headers),
        asyncio.timeout(WITHIN),
    ):
        debate = await create_debate(orchestrator, headers)
        await gateway.wait_for("*synthesis*")
        known.secret = "another" * 5
        hold.release()
        for _ in range(3):
            await known.unknown.acquire()
        assert not gateway.matches
        known.secret = SECRET
        assert (await events(orchestrator, debate, headers))[-1].HasField("closed")
    assert len(gateway.matches) == 1


async def test_a_service_with_another_secret_is_not_known_and_no_debate_fails_for_it(
    gateway: ScriptedGateway, tmp_path: Path
) -> None:
    async with run_secured(gateway, tmp_path, "another" * 5) as (orchestrator, headers):
        with pytest.raises(grpc.aio.AioRpcError, match="PARLEY_SERVICE_SECRET") as caught:
            await create_debate(orchestrator, headers)
        assert caught.value.code() == grpc.StatusCode.UNAVAILABLE
    assert gateway.calls == []


@pytest.fixture
def called() -> gateway_pb2.GenerateRequest:
    asked = request(step="s1")
    asked.call_id.tenant = "acme"
    return asked


async def test_a_call_id_is_its_tenants_own(
    model_server: ModelServer, called: gateway_pb2.GenerateRequest
) -> None:
    async with run_with_server(model_server, service_secret=SECRET) as served:
        text = await generate(served, called, service_headers("acme"))
        assert text
        for act in (generate, cancel, forget):
            with pytest.raises(ParleyError) as caught:
                await act(served, called, service_headers("other"))
            assert (caught.value.code, caught.value.reason) == (
                grpc.StatusCode.PERMISSION_DENIED,
                "WRONG_TENANT",
            )
        assert await generate(served, called, service_headers("acme")) == text
        assert len(model_server.ledger.calls) == 1, "it was stored, and nobody else came at it"
        called.call_id.tenant = "other"
        await generate(served, called, service_headers("other"))
        assert len(model_server.ledger.calls) == 2, "the same name is another call of another tenant"


async def generate(served: Gateway, asked: gateway_pb2.GenerateRequest, headers: Headers) -> str:
    text = ""
    try:
        async for each in served.stub.Generate(asked, metadata=headers, timeout=WITHIN):
            text = each.completed.text or text
    except grpc.aio.AioRpcError as error:
        raise from_rpc_error(error) from None
    return text


async def cancel(served: Gateway, asked: gateway_pb2.GenerateRequest, headers: Headers) -> str:
    try:
        await served.stub.CancelCall(gateway_pb2.CancelCallRequest(call_id=asked.call_id), metadata=headers)
    except grpc.aio.AioRpcError as error:
        raise from_rpc_error(error) from None
    return ""


async def forget(served: Gateway, asked: gateway_pb2.GenerateRequest, headers: Headers) -> str:
    own = gateway_pb2.CallId(tenant="other", debate_id="deb-1", step="s1", step_attempt=1)
    given = gateway_pb2.ForgetAnswersRequest(call_ids=[own, asked.call_id])
    try:
        await served.stub.ForgetAnswers(given, metadata=headers)
    except grpc.aio.AioRpcError as error:
        raise from_rpc_error(error) from None
    return ""
