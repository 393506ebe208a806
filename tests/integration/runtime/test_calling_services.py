"""Who a calling service is: proven by its signature over a port, carried in one process."""

from typing import Any

import grpc
import pytest

from parley.runtime import errors
from parley.runtime.direct.channel import direct_channel
from parley.runtime.direct.late_server import LateServer
from parley.runtime.identity.guard import OPEN, Guard
from parley.runtime.identity.identity import current_identity
from parley.runtime.identity.service_tokens import ServiceSigner, ServiceTokens
from parley.runtime.labels import label_scope, labels
from parley.runtime.server import ServerSettings, start_server
from parley.v1 import gateway_pb2, orchestrator_pb2
from parley.v1.access_pb2 import ACCESS_ROLE_SERVICE
from tests.integration.runtime.conftest import CALLER, SECRET, Reach
from tests.integration.runtime.wire import make_service, method
from tests.support.catching import catch_error

GATEWAY = gateway_pb2.DESCRIPTOR.services_by_name["GatewayService"].full_name
ORCHESTRATOR = orchestrator_pb2.DESCRIPTOR.services_by_name["OrchestratorService"].full_name
GUARDED = ServerSettings(guard=Guard(ServiceTokens(lambda: (SECRET,))))


async def tell(_request: bytes, context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
    found = current_identity()
    told = found.tenant, found.subject, sorted(found.roles), found.proven, labels().get("tenant")
    return repr(told).encode()


@pytest.mark.parametrize("tenant", ["acme", "default"])
async def test_a_service_is_known_by_its_name_and_acts_for_the_tenant_of_its_work(
    reach: Reach, tenant: str
) -> None:
    service = make_service(GATEWAY, ListAgents=tell)
    async with start_server([service], GUARDED) as server, reach(server) as there:
        ask = method(there, "ListAgents", GATEWAY)
        with label_scope(tenant=tenant):
            told = await ask(b"")
            elsewhere = await ask(b"", metadata=(("parley-tenant", "other"),))
        if tenant == "default":
            assert await ask(b"") == told, "work without a tenant is the default one's"
    known = repr((tenant, f"service {CALLER}", [ACCESS_ROLE_SERVICE], True, tenant)).encode()
    assert told == elsewhere == known


async def test_a_service_may_do_no_more_than_services_may(reach: Reach) -> None:
    service = make_service(ORCHESTRATOR, CreateKey=tell)
    async with start_server([service], GUARDED) as server, reach(server) as there:
        refused = await catch_error(method(there, "CreateKey", ORCHESTRATOR)(b""))
    assert (refused.code, refused.reason) == (grpc.StatusCode.PERMISSION_DENIED, "ROLE_MISSING")


async def test_who_passes_calls_on_in_one_process_shows_the_credentials_of_their_callers() -> None:
    service = make_service(GATEWAY, ListAgents=tell)
    signed = ServiceSigner("elsewhere", lambda: (SECRET,)).headers_for("acme")
    async with start_server([service], GUARDED) as server, direct_channel(server.direct) as there:
        ask = method(there, "ListAgents", GATEWAY)
        with label_scope(tenant="other"), pytest.raises(grpc.aio.AioRpcError) as caught:
            await ask(b"")
        told = await ask(b"", metadata=signed)
    assert errors.from_rpc_error(caught.value).reason == "NO_CREDENTIALS"
    assert told.startswith(b"('acme', 'service elsewhere', ")


async def test_calls_before_there_is_a_server_wait_for_it_and_their_timeouts_begin_with_it() -> None:
    late, answered = LateServer(), list[bytes]()

    async def answer(request: bytes, _context: grpc.aio.ServicerContext[bytes, bytes]) -> bytes:
        answered.append(request)
        return request

    service = make_service(GATEWAY, ListAgents=answer)
    async with start_server([service], ServerSettings()) as server, direct_channel(late) as there:
        ask = method(there, "ListAgents", GATEWAY)
        assert not late.called.is_set()
        call, left = ask(b"waits", timeout=30), ask(b"is left", timeout=30)
        assert late.called.is_set()
        assert call.time_remaining() is None
        left.cancel()
        late.start(server.direct)
        assert call.time_remaining() is not None
        assert await call == b"waits"
        assert await ask(b"comes later") == b"comes later"
    assert answered == [b"waits", b"comes later"]


async def test_where_every_caller_is_let_in_a_service_is_one_of_them(reach: Reach) -> None:
    service = make_service(GATEWAY, ListAgents=tell)
    async with start_server([service], ServerSettings(guard=OPEN)) as server, reach(server) as there:
        with label_scope(tenant="acme"):
            told: Any = await method(there, "ListAgents", GATEWAY)(b"")
    assert told.startswith(b"('acme', '', ")
    assert told.endswith(b" False, 'acme')")
