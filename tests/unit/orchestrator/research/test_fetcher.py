"""The guarded fetcher over real HTTP: what it reads, where it does not go, and how little a server can do to it."""

import asyncio
import gzip
import tracemalloc
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from ipaddress import ip_address

import pytest
from aiohttp import web

from parley.orchestrator.outgoing.reach import Address, Reach
from parley.orchestrator.outgoing.resolving import Resolve
from parley.orchestrator.research.errors import FetchError
from parley.orchestrator.research.fetcher import Fetcher
from tests.support.ports import free_ports
from tests.support.web_server import WEB_NETWORK, web_server

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serve_raw(answer: Answer) -> AsyncIterator[str]:
    """A server that may break every rule of HTTP; yields its URL."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            await reader.readuntil(b"\r\n\r\n")
            await answer(reader, writer)
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.2", 0)
    try:
        yield f"http://127.0.0.2:{server.sockets[0].getsockname()[1]}/"
    finally:
        server.close()


def fetcher(
    url: str, *, seconds: float = 10, max_bytes: int = 100_000, resolve: Resolve | None = None
) -> Fetcher:
    """Return a fetcher that may reach the server at `url`."""
    reach = Reach((WEB_NETWORK,), frozenset({80, 443, int(url.rstrip("/").rpartition(":")[2])}))
    made = Fetcher(reach, seconds, max_bytes)
    return made if resolve is None else Fetcher(reach, seconds, max_bytes, resolve=resolve)


def make_answer(body: bytes, *, more: bytes = b"") -> Answer:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(body)
        await writer.drain()
        while more:
            writer.write(more)
            await writer.drain()

    return answer


async def test_a_page_is_read_with_its_type_and_character_set_and_without_cookies() -> None:
    seen: list[web.Request] = []

    async def handle(request: web.Request) -> web.Response:
        seen.append(request)
        if request.path == "/":
            return web.Response(status=302, headers={"Location": "/page?a=1#part", "Set-Cookie": "id=1"})
        return web.Response(text="<p>Grüße</p>", content_type="text/html", charset="latin-1")

    async with web_server(handle) as url:
        page = await fetcher(url).fetch(url)
    assert (page.url, page.content_type, page.charset) == (f"{url}page?a=1", "text/html", "latin-1")
    assert page.body.decode("latin-1") == "<p>Grüße</p>"
    assert "Cookie" not in seen[1].headers


async def test_a_compressed_page_is_read() -> None:
    async def handle(request: web.Request) -> web.Response:
        return web.Response(
            body=gzip.compress(b"hello"), content_type="text/plain", headers={"Content-Encoding": "gzip"}
        )

    async with web_server(handle) as url:
        assert (await fetcher(url).fetch(url)).body == b"hello"


async def test_a_server_that_stalls_costs_the_time_limit_and_no_more() -> None:
    async def stall(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\na")
        await reader.read()

    async with serve_raw(stall) as url:
        with pytest.raises(FetchError, match=r"did not answer within 0\.2 s"):
            await fetcher(url, seconds=0.2).fetch(url)


async def test_a_page_that_is_shorter_than_it_says_is_not_read() -> None:
    body = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 500\r\n\r\nshort"
    async with serve_raw(make_answer(body)) as url:
        with pytest.raises(FetchError, match="ClientPayloadError"):
            await fetcher(url).fetch(url)


async def test_a_page_that_is_longer_than_it_says_is_not_read() -> None:
    body = b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 5\r\n\r\nshort and long"
    async with serve_raw(make_answer(body)) as url:
        with pytest.raises(FetchError, match="could not be read"):
            await fetcher(url).fetch(url)


@pytest.mark.parametrize(
    "framing", ["", "Content-Length: 99999999999\r\n"], ids=["without a length", "with a length"]
)
async def test_a_page_without_an_end_is_left_at_the_limit(framing: str) -> None:
    head = f"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\n{framing}\r\n".encode()
    async with serve_raw(make_answer(head, more=b"x" * 10_000)) as url:
        with pytest.raises(FetchError, match="larger than 100000 bytes"):
            await fetcher(url).fetch(url)


async def test_a_compressed_bomb_is_left_at_the_limit() -> None:
    bomb = gzip.compress(bytes(50_000_000))

    async def handle(request: web.Request) -> web.Response:
        return web.Response(body=bomb, content_type="text/plain", headers={"Content-Encoding": "gzip"})

    async with web_server(handle) as url:
        assert len(bomb) < 100_000
        tracemalloc.start()
        try:
            with pytest.raises(FetchError, match="larger than 100000 bytes"):
                await fetcher(url).fetch(url)
            assert tracemalloc.get_traced_memory()[1] < 10_000_000
        finally:
            tracemalloc.stop()


@pytest.mark.parametrize(
    ("body", "said"), [(b"no gzip", "broken"), (gzip.compress(b"hello" * 100, mtime=0)[:-12], "cut off")]
)
async def test_a_page_that_cannot_be_decompressed_is_not_read(body: bytes, said: str) -> None:
    async def handle(request: web.Request) -> web.Response:
        return web.Response(body=body, content_type="text/plain", headers={"Content-Encoding": "gzip"})

    async with web_server(handle) as url:
        with pytest.raises(FetchError, match=said):
            await fetcher(url).fetch(url)


@pytest.mark.parametrize(
    ("location", "said"),
    [
        ("http://169.254.169.254/latest/meta-data/", "no public address"),
        ("http://localhost/", "no public address"),
        ("http://127.0.0.1/", "no public address"),
        ("http://2130706433/", "no public address"),
        ("http://[::ffff:127.0.0.1]/", "no public address"),
        ("//[fe80::1%25eth0]/", "no public address|not found|could not be read"),
        ("http://127.0.0.2:22/", "port 22"),
        ("http://me:secret@127.0.0.2/", "user or a password"),
        ("file:///etc/passwd", "only http"),
        ("gopher://127.0.0.2/", "only http"),
        ("", "to nowhere"),
    ],
)
async def test_a_redirect_is_checked_like_the_first_address(location: str, said: str) -> None:
    async def handle(request: web.Request) -> web.Response:
        return web.Response(status=302, headers={"Location": location} if location else {})

    async with web_server(handle) as url:
        with pytest.raises(FetchError, match=said):
            await fetcher(url).fetch(url)


async def test_redirects_in_a_circle_are_left() -> None:
    asked: list[str] = []

    async def handle(request: web.Request) -> web.Response:
        asked.append(request.path)
        return web.Response(status=307, headers={"Location": "/again"})

    async with web_server(handle) as url:
        with pytest.raises(FetchError, match="more than 5 times"):
            await fetcher(url).fetch(url)
    assert len(asked) == 6


async def test_the_connection_goes_to_the_address_that_was_checked_though_the_name_has_another_by_then() -> (
    None
):
    asked: list[str] = []

    async def rebind(host: str, port: int) -> list[Address]:
        asked.append(host)
        return [ip_address("127.0.0.2" if len(asked) == 1 else "127.0.0.1")]

    async def handle(request: web.Request) -> web.Response:
        return web.Response(text=request.host)

    async with web_server(handle) as url:
        named = url.replace("127.0.0.2", "rebinding.test")
        page = await fetcher(url, resolve=rebind).fetch(named)
        assert (page.body.decode(), asked) == (named.split("/")[2], ["rebinding.test"])
        with pytest.raises(FetchError, match="no public address"):
            await fetcher(url, resolve=rebind).fetch(named)


async def test_a_name_with_one_address_out_of_reach_is_not_read_at_all() -> None:
    async def resolve(host: str, port: int) -> list[Address]:
        return [ip_address("1.1.1.1"), ip_address("10.0.0.1")]

    with pytest.raises(FetchError, match="no public address"):
        await Fetcher(resolve=resolve).fetch("http://example.test/")


async def test_no_proxy_of_the_environment_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    async def handle(request: web.Request) -> web.Response:
        return web.Response(text="direct")

    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:9")
    async with web_server(handle) as url:
        assert (await fetcher(url).fetch(url)).body == b"direct"


@pytest.mark.parametrize(
    ("response", "said"),
    [
        (web.Response(status=404), "status 404"),
        (web.Response(status=204), "status 204"),
        (web.Response(body=b"\x89PNG", content_type="image/png"), "image/png"),
        (web.Response(body=b"x", content_type="text/html", headers={"Content-Encoding": "br"}), "'br'"),
    ],
)
async def test_what_is_no_text_is_not_read(response: web.Response, said: str) -> None:
    async def handle(request: web.Request) -> web.Response:
        return response

    async with web_server(handle) as url:
        with pytest.raises(FetchError, match=said):
            await fetcher(url).fetch(url)


@pytest.mark.parametrize(
    "url",
    [
        "",
        "example.test",
        "http://",
        "http://a b/",
        "http://a\n/",
        "http://a:99999/",
        "http://[::1",
        "x" * 3000,
    ],
)
async def test_what_is_no_address_is_refused_in_one_line(url: str) -> None:
    with pytest.raises(FetchError) as refused:
        await Fetcher().fetch(url)
    assert "\n" not in str(refused.value)


async def test_a_host_that_does_not_listen_is_named_by_the_reason_alone() -> None:
    port = next(free_ports())
    url = f"http://127.0.0.2:{port}/"
    with pytest.raises(FetchError, match="could not be read"):
        await fetcher(url).fetch(url)
