"""Every RPC of every service, by every kind of caller; the RPCs are those of the contract, so that none is forgotten."""

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Mapping
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from typing import Any, Final

import aiohttp
import grpc
import httpx2
import pytest
import pytest_asyncio
from google.protobuf import message_factory
from google.protobuf.descriptor import MethodDescriptor
from mcp.client.client import Client
from mcp.client.streamable_http import streamable_http_client

from parley.client import ParleyClient
from parley.edge.__main__ import run_edge
from parley.edge.app import create_app
from parley.edge.calls import OrchestratorCalls
from parley.edge.mcp import McpEndpoint
from parley.edge.settings import EdgeSettings
from parley.mcp.server import create_server
from parley.orchestrator.keys.authenticator import ApiKeyAuthenticator
from parley.orchestrator.keys.store import KEYS, KeyStore
from parley.orchestrator.keys.uses import KeyUses
from parley.orchestrator.links.authenticator import LinkAuthenticator
from parley.orchestrator.links.tokens import LinkTokens
from parley.orchestrator.model.times import timestamp
from parley.runtime.channel import channel
from parley.runtime.clock import SystemClock
from parley.runtime.errors import from_rpc_error
from parley.runtime.identity.guard import Guard
from parley.runtime.identity.identity import Identity, Role, current_identity
from parley.runtime.identity.roles import CLIENT_ROLES, allows, needed_role
from parley.runtime.identity.service_tokens import ServiceTokens
from parley.runtime.server import ServerSettings, Service, start_server
from parley.storage.opening import open_store
from parley.storage.ports import Documents
from parley.v1.access_pb2 import (
    ACCESS_ROLE_DEBATE,
    ACCESS_ROLE_LINK,
    ACCESS_ROLE_SERVICE,
)
from parley.v1.link_pb2 import LinkClaims
from tests.support.access import SECRET, Headers, key_for, methods, service_headers, stub_call
from tests.support.mcp_access import act_by
from tests.support.orchestration import WITHIN

METHODS = methods()
OUTER = [each for each in METHODS if each.containing_service.name == "OrchestratorService"]
IDS = [f"{each.containing_service.name}/{each.name}" for each in METHODS]
_END_OF_STREAM = 2
OTHER_SECRET = "f" * 32

pytestmark = pytest.mark.asyncio(loop_scope="module")


@dataclass
class Served:
    """All RPCs, each of which only tells who called it."""

    channel: grpc.aio.Channel
    address: str
    documents: Documents
    callers: list[Identity]
    cut_off: set[str]
    """Whose call a test has cut off: what the edge still asks for them is of no interest to the next test."""

    async def key(self, *roles: Role, tenant: str = "acme") -> Headers:
        return await key_for(self.documents, tenant, roles)

    async def credentials(self, role: Role) -> Headers:
        """What a caller of acme with a role sends: a link if it is that of links, else a key."""
        return link_for("acme") if role == ACCESS_ROLE_LINK else await self.key(role)

    async def called(self, method: MethodDescriptor, headers: Headers) -> Identity:
        """Return who the service took the caller for."""
        await stub_call(self.channel, method, headers)
        return self.callers.pop()

    async def refused(self, method: MethodDescriptor, headers: Headers) -> tuple[grpc.StatusCode, str]:
        """Return code and reason of a refusal."""
        with pytest.raises(grpc.aio.AioRpcError) as caught:
            await stub_call(self.channel, method, headers)
        assert not self.callers, "the method was reached"
        return caught.value.code(), from_rpc_error(caught.value).reason


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def serving(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Served]:
    """One server for all tests here: to start it takes longer than what they ask of it."""
    callers: list[Identity] = []
    cut_off: set[str] = set()

    def note_caller() -> None:
        if (caller := current_identity()).subject not in cut_off:
            callers.append(caller)

    async with open_store(f"sqlite:///{tmp_path_factory.mktemp('keys')}", "keys") as store:
        await store.documents.prepare(KEYS)
        keys, clock = KeyStore(store.documents), SystemClock()
        guard = Guard(
            ServiceTokens(lambda: (SECRET.encode(),)),
            ApiKeyAuthenticator(keys, clock, KeyUses(keys, clock)),
            LinkAuthenticator(LinkTokens([SECRET]), clock),
        )
        names = sorted({each.containing_service.full_name for each in METHODS})
        services = [Service(name, partial(_register, name, note_caller)) for name in names]
        async with (
            start_server(services, ServerSettings(guard=guard, grace_seconds=0)) as running,
            channel(running.address) as connected,
        ):
            yield Served(connected, running.address, store.documents, callers, cut_off)


@pytest.fixture
def served(serving: Served) -> Served:
    """That server, which nobody has called yet."""
    serving.callers.clear()
    return serving


def link_for(tenant: str) -> Headers:
    """What whoever has a one-time link sends."""
    until = timestamp(SystemClock().now() + timedelta(hours=1))
    token = LinkTokens([SECRET]).sign(LinkClaims(tenant=tenant, hook_id="test", expire_time=until))
    return (("authorization", f"Bearer {token}"),)


def _register(name: str, note_caller: Callable[[], None], server: grpc.aio.Server) -> None:
    handlers = {
        each.name: _handler(each, note_caller)
        for each in METHODS
        if each.containing_service.full_name == name
    }
    server.add_generic_rpc_handlers((grpc.method_handlers_generic_handler(name, handlers),))


def _handler(method: MethodDescriptor, note_caller: Callable[[], None]) -> Any:
    answer = message_factory.GetMessageClass(method.output_type)()

    async def answer_one(_request: object, _context: object) -> Any:
        note_caller()
        return answer

    async def stream(_request: object, _context: object) -> AsyncIterator[Any]:
        note_caller()
        yield answer

    kind = f"{'stream' if method.client_streaming else 'unary'}_{'stream' if method.server_streaming else 'unary'}"
    return getattr(grpc, f"{kind}_rpc_method_handler")(
        stream if method.server_streaming else answer_one,
        request_deserializer=message_factory.GetMessageClass(method.input_type).FromString,
        response_serializer=lambda message: message.SerializeToString(),
    )


def needs(method: MethodDescriptor) -> Role:
    return needed_role(f"{method.containing_service.full_name}/{method.name}")


@pytest.mark.parametrize("method", METHODS, ids=IDS)
async def test_nobody_gets_in_who_does_not_say_who_they_are(served: Served, method: MethodDescriptor) -> None:
    unauthenticated = grpc.StatusCode.UNAUTHENTICATED
    revoked = await served.key(*CLIENT_ROLES)
    for each in await KeyStore(served.documents).list_all():
        await KeyStore(served.documents).revoke(each.id, SystemClock().now())
    wrong = "parley_000000000000_" + "A" * 43
    written = (("parley-tenant", "acme"), ("parley-subject", "root"), ("parley-roles", "admin"))
    assert await served.refused(method, ()) == (unauthenticated, "NO_CREDENTIALS")
    assert await served.refused(method, written) == (unauthenticated, "NO_CREDENTIALS")
    for headers in (
        (("authorization", f"Bearer {wrong}"),),
        revoked,
        service_headers("acme", OTHER_SECRET),
        (("parley-service-token", "9999999999:orchestrator:acme:"),),
    ):
        assert await served.refused(method, headers) == (unauthenticated, "BAD_CREDENTIALS")


@pytest.mark.parametrize("method", METHODS, ids=IDS)
async def test_nobody_gets_in_with_the_wrong_role(served: Served, method: MethodDescriptor) -> None:
    refusal = (grpc.StatusCode.PERMISSION_DENIED, "ROLE_MISSING")
    for role in CLIENT_ROLES:
        if not allows({role}, needs(method)):
            assert await served.refused(method, await served.key(role)) == refusal
    if not allows({ACCESS_ROLE_SERVICE}, needs(method)):
        assert await served.refused(method, service_headers("acme")) == refusal
    if not allows({ACCESS_ROLE_LINK}, needs(method)):
        assert await served.refused(method, link_for("acme")) == refusal
    assert await served.refused(method, await served.key()) == refusal


@pytest.mark.parametrize("method", METHODS, ids=IDS)
async def test_who_has_the_role_gets_in_and_what_they_write_of_themselves_names_nothing(
    served: Served, method: MethodDescriptor
) -> None:
    lies = (("parley-tenant", "other"), ("parley-subject", "root"))
    if needs(method) == ACCESS_ROLE_SERVICE:
        caller = await served.called(method, (*service_headers("acme"), *lies))
        assert caller.subject == "service orchestrator"
    else:
        caller = await served.called(method, (*await served.credentials(needs(method)), *lies))
        assert caller.subject.startswith(("test (key ", "one-time link of test"))
    assert (caller.tenant, caller.proven) == ("acme", True)


@dataclass
class OverHttp:
    """The orchestrator's RPCs behind an edge, by the Connect protocol."""

    url: str
    session: aiohttp.ClientSession

    async def call(self, method: MethodDescriptor, headers: Headers) -> str:
        """Return the code of the answer; empty if the call was answered."""
        kind = "connect+proto" if method.server_streaming else "proto"
        url = f"{self.url}/{method.containing_service.full_name}/{method.name}"
        sent = {**dict(headers), "Content-Type": f"application/{kind}"}
        body = bytes(5) if method.server_streaming else b""
        async with self.session.post(url, data=body, headers=sent) as answer:
            content = await answer.read()
        if not method.server_streaming:
            return str(json.loads(content)["code"]) if answer.status != 200 else ""
        while content[0] != _END_OF_STREAM:
            content = content[5 + int.from_bytes(content[1:5]) :]
        return str(json.loads(content[5:]).get("error", {}).get("code", ""))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def over_http(serving: Served) -> AsyncIterator[OverHttp]:
    async with (
        run_edge(EdgeSettings(port=0, orchestrator=serving.address)) as address,
        aiohttp.ClientSession() as session,
    ):
        yield OverHttp(f"http://{address}", session)


@pytest.mark.parametrize("method", OUTER, ids=[each.name for each in OUTER])
async def test_the_edge_lets_in_whom_the_orchestrator_lets_in_and_no_one_else(
    served: Served, over_http: OverHttp, method: MethodDescriptor
) -> None:
    lies = (("parley-tenant", "other"), ("parley-subject", "root"), ("parley-roles", "admin"))
    wrong = (("authorization", "Bearer parley_000000000000_" + "A" * 43),)
    for headers in ((), lies, wrong, service_headers("acme")):
        assert await over_http.call(method, headers) == "unauthenticated"
    for role in CLIENT_ROLES:
        if not allows({role}, needs(method)):
            assert await over_http.call(method, await served.key(role)) == "permission_denied"
    assert served.callers == []
    assert await over_http.call(method, (*await served.credentials(needs(method)), *lies)) == ""
    assert [each.tenant for each in served.callers] == ["acme"]


@pytest.mark.parametrize(
    "path", ["/parley.v1.OrchestratorService/CreateDebate", "/v1/chat/completions", "/mcp"]
)
async def test_the_edge_reads_large_bodies_of_callers_alone_that_the_orchestrator_knows(
    served: Served, over_http: OverHttp, path: str
) -> None:
    host, port = over_http.url.removeprefix("http://").split(":")

    async def ask(headers: Headers) -> bytes:
        """Announce a body and return how the edge begins its answer: 100 asks for the body."""
        reader, writer = await asyncio.open_connection(host, int(port))
        sent = {**dict(headers), "Content-Length": 4_000_000, "Content-Type": "application/json"}
        head = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
        writer.write(
            f"POST {path} HTTP/1.1\r\nHost: localhost\r\nExpect: 100-continue\r\n{head}\r\n".encode()
        )
        answer = await asyncio.wait_for(reader.readline(), WITHIN)
        writer.close()
        return answer.split()[1]

    wrong = (("authorization", "Bearer parley_000000000000_" + "A" * 43),)
    assert [await ask(headers) for headers in ((), wrong)] == [b"401", b"401"]
    assert served.callers == []
    assert await ask(await served.key(ACCESS_ROLE_DEBATE)) == b"100"


TOOLS: Final[Mapping[str, tuple[str, Mapping[str, object]]]] = {
    "debate": ("CreateDebate", {"question": "Which?"}),
    "start_debate": ("CreateDebate", {"question": "Which?"}),
    "get_debate": ("GetDebate", {"debate_id": "deb-20261125-101112-aaaaaaaa"}),
    "list_debates": ("ListDebates", {}),
    "steer_debate": ("Intervene", {"debate_id": "deb-20261125-101112-aaaaaaaa", "action": "pause"}),
    "search_past_debates": ("SearchMemory", {"text": "Kafka"}),
}
"""The tools of MCP, each with the RPC that it calls first."""


async def test_every_tool_is_in_the_matrix() -> None:
    async with Client(create_server(act_by(ParleyClient("localhost:1")))) as client:
        assert {each.name for each in (await client.list_tools()).tools} == set(TOOLS)


@pytest.mark.parametrize("tool", TOOLS)
async def test_the_edge_lets_in_over_mcp_whom_the_orchestrator_lets_in_and_no_one_else(
    served: Served, over_http: OverHttp, tool: str
) -> None:
    rpc, arguments = TOOLS[tool]
    method = next(each for each in OUTER if each.name == rpc)
    lies = (("parley-tenant", "other"), ("parley-subject", "root"), ("parley-roles", "admin"))
    wrong = (("authorization", "Bearer parley_000000000000_" + "A" * 43),)

    async def call(headers: Headers) -> None:
        async with (
            httpx2.AsyncClient(headers=dict(headers)) as sender,
            Client(streamable_http_client(f"{over_http.url}/mcp", http_client=sender)) as client,
        ):
            await client.call_tool(tool, dict(arguments), read_timeout_seconds=5)

    refused = [(), lies, wrong, service_headers("acme")]
    roles = [role for role in CLIENT_ROLES if not allows({role}, needs(method))]
    for headers in (*refused, *[await served.key(role) for role in roles]):
        await call(headers)
    assert served.callers == []
    await call((*await served.key(needs(method)), *lies))
    assert {each.tenant for each in served.callers} == {"acme"}


PATHS: Final[Mapping[str, tuple[str, str, object]]] = {
    "/v1/models": ("GET", "ListDebates", None),
    "/v1/models/{model}": ("GET", "ListDebates", None),
    "/v1/chat/completions": (
        "POST",
        "CreateDebate",
        {"model": "panel", "messages": [{"role": "user", "content": "Which?"}]},
    ),
    "/v1/debates/{debate_id}/events": ("GET", "WatchDebate", None),
    "/v1/debates/{debate_id}/report.md": ("GET", "StreamReport", None),
    "/v1/debates/{debate_id}/report.html": ("GET", "StreamReport", None),
    "/v1/debates/{debate_id}/receipt.json": ("GET", "GetReceipt", None),
    "/.well-known/parley-receipt-keys.json": ("GET", "ListReceiptKeys", None),
    "/console/ticket": ("POST", "ListDebates", {}),
}
"""What the edge answers besides RPCs, each with the RPC that it calls first."""
OPEN: Final = frozenset(
    {
        "/",
        "/login",
        "/new",
        "/agents",
        "/memory",
        "/memory/{debate_id}",
        "/debates/{debate_id}",
        "/debates/{debate_id}/result",
    }
    | {"/console/{name}", "/console/options", "/console/markdown", "/healthz", "/readyz"}
)
"""What everybody may read, since nobody's debates are in it."""
TESTED_ELSEWHERE: Final = frozenset({"/mcp", "/console/session", "/links/{token}"})
"""`/mcp` above; links, whose token is all that counts, in `edge/test_links.py`; the console's sign-in, which is there to ask who one is, in `edge/console/test_sign_in.py`."""


async def test_every_path_of_the_edge_is_in_the_matrix(served: Served) -> None:
    settings = EdgeSettings(port=0, orchestrator=served.address)
    calls = OrchestratorCalls(served.channel, streams_per_caller=1)

    async def is_ready() -> bool:
        return True

    app = create_app(settings, calls, McpEndpoint(served.channel, calls), is_ready)
    rpcs = {f"/{each.containing_service.full_name}/{each.name}" for each in OUTER}
    assert {getattr(each, "path") for each in app.routes} == {*PATHS, *OPEN, *TESTED_ELSEWHERE, *rpcs}  # noqa: B009


@pytest.mark.parametrize("path", PATHS)
async def test_the_edge_lets_in_by_other_ways_whom_the_orchestrator_lets_in_and_no_one_else(
    served: Served, over_http: OverHttp, path: str
) -> None:
    verb, rpc, body = PATHS[path]
    method = next(each for each in OUTER if each.name == rpc)
    url = f"{over_http.url}{path.format(debate_id='deb-20261125-101112-aaaaaaaa', model='panel')}"
    lies = (("parley-tenant", "other"), ("parley-subject", "root"), ("parley-roles", "admin"))
    wrong = (("authorization", "Bearer parley_000000000000_" + "A" * 43),)

    async def call(headers: Headers) -> int:
        async with over_http.session.request(verb, url, json=body, headers=dict(headers)) as answer:
            return answer.status

    for headers in ((), lies, wrong, service_headers("acme")):
        assert await call(headers) == 401
    for role in CLIENT_ROLES:
        if not allows({role}, needs(method)):
            assert await call(await served.key(role)) == 403
    assert served.callers == []
    let_in = asyncio.create_task(call((*await served.key(needs(method)), *lies)))
    async with asyncio.timeout(WITHIN):
        while not served.callers:  # what it makes of an empty answer is of no interest here
            await asyncio.wait({let_in}, timeout=0.01)
    served.cut_off |= {each.subject for each in served.callers}
    let_in.cancel()
    await asyncio.wait({let_in})
    assert {each.tenant for each in served.callers} == {"acme"}


@pytest.mark.parametrize("path", sorted(OPEN - {"/console/markdown"}))
async def test_what_everybody_may_read_asks_nothing_of_the_orchestrator(
    served: Served, over_http: OverHttp, path: str
) -> None:
    async with over_http.session.get(f"{over_http.url}{path.format(debate_id='x', name='app.js')}") as answer:
        assert answer.status == 200
    assert served.callers == []
