"""Requests by the client's session are those that the client itself would send, and its errors are those that it would raise."""

import asyncio
import gzip
import json
import warnings
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from types import SimpleNamespace
from typing import Any, cast

import aiohttp
import pytest
from aiohttp import web
from aiohttp.base_protocol import BaseProtocol
from aiohttp.test_utils import TestServer

from parley.gateway.wire.client_requests import Answer, ClientRequests
from parley.gateway.wire.openai_parts import (
    APIConnectionError,
    APIStatusError,
    AsyncOpenAI,
    DefaultAioHttpClient,
    Omit,
)

_DEFAULT_HEADERS: dict[str, Any] = {
    "X-Own": "own",
    "OpenAI-Organization": Omit(),
    "OpenAI-Project": Omit(),
}
_OF_THE_CLIENT = {"x-stainless-async", "x-stainless-retry-count", "x-stainless-os", "x-stainless-arch"}
"""What the client says of its own tries and library."""


@dataclass(frozen=True, slots=True)
class Asked:
    """A request as it came."""

    method: str
    target: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(slots=True)
class Endpoint:
    """Keeps what it is asked, and gives one answer."""

    client: AsyncOpenAI
    connections: DefaultAioHttpClient
    asked: list[Asked] = field(default_factory=list)

    def requests(self, headers: Mapping[str, Any]) -> ClientRequests:
        return ClientRequests(self.client, self.connections, headers, connect_seconds=3)


@asynccontextmanager
async def endpoint(
    content: bytes = b"{}",
    status: int = 200,
    headers: Mapping[str, str] | None = None,
    *,
    proxy: bool = False,
) -> AsyncIterator[Endpoint]:
    asked: list[Asked] = []

    async def handle(request: web.Request) -> web.Response:
        sent = {name.lower(): value for name, value in request.headers.items()}
        asked.append(Asked(request.method, request.raw_path, sent, await request.read()))
        return web.Response(body=content, status=status, headers=headers)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", handle)
    async with TestServer(app) as server:
        with pytest.MonkeyPatch.context() as patch:
            patch.setenv("no_proxy", "")
            if proxy:
                patch.setenv("http_proxy", f"http://user:word@127.0.0.1:{server.port}")
            connections = DefaultAioHttpClient()
        base = "http://models.example/v1" if proxy else f"http://127.0.0.1:{server.port}/v1"
        async with AsyncOpenAI(
            api_key="sk-secret",
            base_url=base,
            default_headers=_DEFAULT_HEADERS,
            max_retries=0,
            http_client=connections,
        ) as client:
            yield Endpoint(client, connections, asked)


def get_parts(asked: Asked) -> tuple[str, str, dict[str, str], bytes]:
    headers = {name: value for name, value in asked.headers.items() if name not in _OF_THE_CLIENT}
    return asked.method, asked.target, headers, asked.body


async def in_parts() -> AsyncIterator[bytes]:
    yield b"{"
    yield b"}"


@pytest.mark.parametrize("proxy", [False, True])
@pytest.mark.parametrize(
    "headers", [{}, {"Authorization": Omit()}, {"authorization": Omit(), "api-key": "sk-secret"}]
)
async def test_a_request_goes_where_the_client_would_send_it_with_its_headers(
    headers: dict[str, Any], *, proxy: bool
) -> None:
    async with endpoint(proxy=proxy) as there:
        await there.client.post(
            "/chat/completions", cast_to=object, content=b"{}", options={"headers": headers, "timeout": None}
        )
        requests = there.requests(headers)
        for content in (b"{}", in_parts()):
            of_body = {"Content-Length": "2"} if content != b"{}" else {}
            answer = await requests.send("POST", "/chat/completions", content, of_body)
            await answer.aclose()
    clients, *ours = map(get_parts, there.asked)
    assert ours == [clients, clients]


async def test_a_proxy_gets_its_password_before_a_tunnel_and_the_endpoint_behind_it_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    heads: list[str] = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heads.append((await reader.readuntil(b"\r\n\r\n")).decode())
        writer.write(b"HTTP/1.1 407 No\r\nContent-Length: 0\r\n\r\n")
        writer.close()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as proxy:
        port = proxy.sockets[0].getsockname()[1]
        monkeypatch.setenv("https_proxy", f"http://user:word@127.0.0.1:{port}")
        connections = DefaultAioHttpClient()
        async with AsyncOpenAI(
            api_key="none", base_url="https://models.invalid/v1", http_client=connections
        ) as client:
            requests = ClientRequests(client, connections, {}, 3)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                with pytest.raises(APIConnectionError):
                    await requests.send("GET", "/models")
            assert "Proxy-Authorization" not in await requests._create_headers(None)
    assert [head.split()[0] for head in heads] == ["CONNECT"]
    assert "proxy-authorization: basic dxnlcjp3b3jk" in heads[0].lower()


async def test_nothing_that_asks_a_proxy_is_deprecated() -> None:
    async with endpoint(proxy=True) as there:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            await (await there.requests({}).send("GET", "/models")).aclose()
    assert there.asked[0].headers["proxy-authorization"] == "Basic dXNlcjp3b3Jk"


async def test_headers_are_taken_from_the_client_once_and_those_of_a_request_stay_its_own(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    read: list[str] = []
    property_of = AsyncOpenAI.default_headers.fget  # type: ignore[attr-defined]

    def count(client: AsyncOpenAI) -> Any:
        read.append("")
        return property_of(client)

    monkeypatch.setattr(AsyncOpenAI, "default_headers", property(count))
    async with endpoint() as there:
        requests = there.requests({})
        for own in ({"X-One": "1"}, {}):
            await (await requests.send("POST", "/responses", b"{}", own)).aclose()
    assert len(read) == 1
    assert ["x-one" in each.headers for each in there.asked] == [True, False]


@pytest.mark.parametrize("packed", [False, True])
async def test_an_answer_comes_unpacked_in_small_pieces(*, packed: bool) -> None:
    said = b"words " * 100_000
    content = gzip.compress(said) if packed else said
    async with endpoint(content, headers={"Content-Encoding": "gzip"} if packed else {}) as there:
        answer = await there.requests({}).send("GET", "/models")
        chunks = [chunk async for chunk in answer.chunks()]
        await answer.aclose()
    assert b"".join(chunks) == said
    assert max(map(len, chunks)) <= 16 * 1024


async def test_an_answer_that_is_all_there_leaves_others_their_turn_between_its_pieces() -> None:
    turns: list[int] = []

    async def take_turns() -> None:
        while True:
            turns.append(1)
            await asyncio.sleep(0)

    loop = asyncio.get_running_loop()
    content = aiohttp.StreamReader(BaseProtocol(loop), 2**20, loop=loop)
    for _ in range(100):
        content.feed_data(b"\n" * 16 * 1024)
    content.feed_eof()
    answer = Answer(cast(aiohttp.ClientResponse, SimpleNamespace(content=content, headers={})))
    async with asyncio.timeout(30):
        task = asyncio.create_task(take_turns())
        seen = [len(turns) async for _ in answer.chunks()]
        task.cancel()
    assert len(seen) == 100
    assert seen[-1] > 90


@pytest.mark.parametrize(
    ("status", "content", "headers"),
    [
        (404, json.dumps({"error": {"message": "no such model", "code": "model_not_found", "param": "model"}}), {}),
        (429, json.dumps({"detail": "slow down"}), {"retry-after": "3"}),
        (502, "<html>a proxy</html>", {}),
        (307, "", {"location": "http://elsewhere.example"}),
        (500, "", {}),
    ],
)  # fmt: skip
async def test_an_error_says_what_the_clients_own_says(
    status: int, content: str, headers: dict[str, str]
) -> None:
    errors = []
    async with endpoint(content.encode(), status, headers) as there:
        with pytest.raises(APIStatusError) as raised:
            await there.client.post(
                "/responses", cast_to=object, content=b"{}", options={"follow_redirects": False}
            )
        errors.append(raised.value)
        with pytest.raises(APIStatusError) as raised:
            await there.requests({}).send("POST", "/responses", b"{}")
        errors.append(raised.value)
    clients, ours = ((each.status_code, each.body, each.code, each.param) for each in errors)
    assert ours == clients
    for name in ("retry-after", "location", "content-type"):
        assert errors[1].response.headers.get(name) == errors[0].response.headers.get(name)


@pytest.mark.parametrize("packed", [False, True])
async def test_of_a_long_error_the_beginning_is_read(*, packed: bool) -> None:
    content = b"no " * 1_000_000
    headers = {"Content-Encoding": "gzip"} if packed else {}
    async with endpoint(gzip.compress(content) if packed else content, 500, headers) as there:
        with pytest.raises(APIStatusError) as raised:
            await there.requests({}).send("POST", "/responses", b"{}")
    assert len(raised.value.response.content) == 16 * 1024
    assert str(raised.value.body).startswith("no no")


@pytest.mark.parametrize("charset", ["bz2", "hex", "idna", "rot13", "utf-16", "undefined", "nothing"])
async def test_an_error_is_read_whatever_charset_it_claims(charset: str) -> None:
    headers = {"Content-Type": f"application/json; charset={charset}"}
    async with endpoint(b'{"error": "\xff slow down"}', 429, headers) as there:
        with pytest.raises(APIStatusError) as raised:
            await there.requests({}).send("POST", "/responses", b"{}")
    assert raised.value.body == "\ufffd slow down"


@pytest.mark.parametrize(
    ("headers", "said"), [({"Content-Length": "99"}, "slow"), ({"Content-Encoding": "gzip"}, "")]
)
async def test_an_error_that_breaks_off_or_cannot_be_unpacked_has_its_status_all_the_same(
    headers: dict[str, str], said: str
) -> None:
    async def cut(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=429, headers={"Retry-After": "7", **headers})
        await response.prepare(request)
        await response.write(b"slow")
        assert request.transport is not None
        request.transport.close()
        return response

    app = web.Application()
    app.router.add_post("/responses", cut)
    connections = DefaultAioHttpClient()
    async with (
        TestServer(app) as server,
        AsyncOpenAI(api_key="none", base_url=str(server.make_url("/")), http_client=connections) as client,
    ):
        with pytest.raises(APIStatusError) as raised:
            await ClientRequests(client, connections, {}, 3).send("POST", "/responses", b"{}")
    error = raised.value
    assert (error.status_code, error.response.headers["retry-after"], error.body) == (429, "7", said)


@dataclass(slots=True)
class LateEnd:
    """An endpoint that ends the body of each answer only once it may."""

    may_end: asyncio.Event = field(default_factory=asyncio.Event)
    connections: int = 0

    async def answer(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        with suppress(asyncio.IncompleteReadError):
            while await reader.readuntil(b"\r\n\r\n"):
                writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\nDONE\r\n")
                await self.may_end.wait()
                writer.write(b"0\r\n\r\n")
        writer.close()


@asynccontextmanager
async def serve_late_end() -> AsyncIterator[tuple[LateEnd, ClientRequests]]:
    there = LateEnd()
    async with await asyncio.start_server(there.answer, "127.0.0.1", 0) as server:
        base = f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/v1"
        connections = DefaultAioHttpClient()
        async with AsyncOpenAI(api_key="none", base_url=base, http_client=connections) as client:
            yield there, ClientRequests(client, connections, {}, 3)


async def read_all_of_interest(requests: ClientRequests) -> asyncio.Event:
    """Read an answer as far as it matters, while its end is still to come; return what is set once its connection is left."""
    answer = await requests.send("GET", "/models")
    assert await anext(answer.chunks()) == b"DONE"
    connection = answer._response.connection
    assert connection is not None
    is_left = asyncio.Event()
    connection.add_callback(is_left.set)
    answer.let_end()
    await answer.aclose()
    return is_left


async def test_an_answer_whose_end_comes_after_it_was_read_leaves_its_connection_to_the_next_request() -> (
    None
):
    async with asyncio.timeout(30), serve_late_end() as (there, requests):
        is_left = await read_all_of_interest(requests)
        there.may_end.set()
        await is_left.wait()
        await (await requests.send("GET", "/models")).aclose()
    assert there.connections == 1


async def test_the_end_of_an_answer_is_waited_for_a_moment_alone() -> None:
    async with asyncio.timeout(30), serve_late_end() as (there, requests):
        is_left = await read_all_of_interest(requests)
        await is_left.wait()
        there.may_end.set()
        await (await requests.send("GET", "/models")).aclose()
    assert there.connections == 2


async def test_a_broken_way_is_the_clients_error_with_its_cause(unused_tcp_port: int) -> None:
    connections = DefaultAioHttpClient()
    async with AsyncOpenAI(
        api_key="none", base_url=f"http://127.0.0.1:{unused_tcp_port}/v1", http_client=connections
    ) as client:
        with pytest.raises(APIConnectionError) as raised:
            await ClientRequests(client, connections, {}, 3).send("GET", "/models")
    cause: BaseException | None = raised.value
    while cause is not None and not isinstance(cause, aiohttp.ClientConnectorError):
        cause = cause.__cause__
    assert cause is not None
