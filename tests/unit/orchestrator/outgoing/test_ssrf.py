"""Addresses that lead inside, in every form in which they are written: a request to them reaches nothing."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, closing, suppress
from dataclasses import dataclass, field
from ipaddress import ip_address

import pytest
from aiohttp import web

from parley.orchestrator.outgoing.answers import SendError
from parley.orchestrator.outgoing.reach import Address, Reach
from parley.orchestrator.outgoing.resolving import resolve_host
from parley.orchestrator.outgoing.sender import GuardedSender
from tests.support.ports import free_ports
from tests.support.web_server import WEB_NETWORK, web_server

EVERYWHERE_PUBLIC = Reach(ports=None)
"""Every port, and plain HTTP too, so that nothing but the address keeps a request back."""
_IPV4 = ("127.0.0.1", "127.0.0.53", "127.255.255.254")
LOOPBACK = (
    "http://127.0.0.1:{port}/",
    "http://127.0.0.1.:{port}/",
    "http://127.1:{port}/",
    "http://127.0.1:{port}/",
    "http://2130706433:{port}/",
    "http://017700000001:{port}/",
    "http://0177.0.0.1:{port}/",
    "http://0177.0.0.01:{port}/",
    "http://0x7f000001:{port}/",
    "http://0x7f.0.0.1:{port}/",
    "http://0x7F.1:{port}/",
    "http://0:{port}/",
    "http://0.0.0.0:{port}/",
    "http://127.0.0.53:{port}/",
    "http://127.255.255.254:{port}/",
    "http://localhost:{port}/",
    "http://LOCALHOST:{port}/",
    "http://localhost.:{port}/",
    "http://\uff11\uff12\uff17.0.0.1:{port}/",
    "http://127\u30020\u30020\u30021:{port}/",
    "http://\u24db\u24de\u24d2\u24d0\u24db\u24d7\u24de\u24e2\u24e3:{port}/",
    "http://[::1]:{port}/",
    "http://[0:0:0:0:0:0:0:1]:{port}/",
    "http://[::]:{port}/",
    "http://[::ffff:127.0.0.1]:{port}/",
    "http://[::ffff:7f00:1]:{port}/",
    "http://[0:0:0:0:0:ffff:7f00:1]:{port}/",
    "http://[::127.0.0.1]:{port}/",
    "http://[::1%25lo]:{port}/",
    "http://[::1%lo]:{port}/",
    "http://[64:ff9b::127.0.0.1]:{port}/",
    "http://[64:ff9b:1::7f00:1]:{port}/",
    "http://[2002:7f00:1::]:{port}/",
    "HTTP://127.0.0.1:{port}/",
    "http://127.0.0.1:{port}/#@hooks.example/",
    "http://127.0.0.1:{port}?@hooks.example/",
)
USERS = (
    "http://hooks.example@127.0.0.1:{port}/",
    "http://hooks.example:443@127.0.0.1:{port}/",
    "http://hooks.example%2f@127.0.0.1:{port}/",
    "http://hooks.example%23@127.0.0.1:{port}/",
    "http://user:password@127.0.0.1:{port}/",
    "http://@127.0.0.1:{port}/",
)
NO_ADDRESSES = (
    "",
    "127.0.0.1:{port}",
    "//127.0.0.1:{port}/",
    "http:127.0.0.1:{port}/",
    "http:///127.0.0.1:{port}/",
    "http://127.0.0.1:{port}\\@hooks.example/",
    "http://127.0.0.1:{port}\\.hooks.example/",
    "http://127.0.0.1 :{port}/",
    "http://127.0.0.1\t:{port}/",
    "http://127.0.0.1:{port}/\r\nX-Other: 1",
    " http://127.0.0.1:{port}/",
    "http://[127.0.0.1]:{port}/",
    "http://[::1:{port}/",
    "http://127.0.0.1:{port}0000/",
    "file:///etc/passwd",
    "file://127.0.0.1/etc/passwd",
    "ftp://127.0.0.1:{port}/",
    "gopher://127.0.0.1:{port}/_POST",
    "dict://127.0.0.1:{port}/info",
    "unix:///var/run/docker.sock",
    "http+unix://%2Fvar%2Frun%2Fdocker.sock/info",
    "ws://127.0.0.1:{port}/",
    "jar:http://127.0.0.1:{port}!/",
    "javascript:alert(1)",
    "data:text/plain,x",
)
INSIDE = (
    "http://169.254.169.254/latest/meta-data/",
    "http://2852039166/",
    "http://0xa9fea9fe/",
    "http://0251.0376.0251.0376/",
    "http://169.16689662/",
    "http://[::ffff:169.254.169.254]/",
    "http://[64:ff9b::a9fe:a9fe]/",
    "http://[fd00:ec2::254]/",
    "http://169.254.170.2/v2/credentials",
    "http://168.63.129.16/",
    "http://100.100.100.200/",
    "http://192.0.0.192/",
    "http://10.0.0.1/",
    "http://172.16.0.1/",
    "http://172.31.255.254/",
    "http://192.168.0.1/",
    "http://100.64.0.1/",
    "http://100.127.255.254/",
    "http://198.18.0.1/",
    "http://192.0.2.1/",
    "http://224.0.0.1/",
    "http://240.0.0.1/",
    "http://255.255.255.255/",
    "http://[fc00::1]/",
    "http://[fe80::1]/",
    "http://[fe80::1%25eth0]/",
    "http://[fec0::1]/",
    "http://[ff02::1]/",
    "http://[2001:db8::1]/",
    "http://[2001:0:7f00:1::]/",
    "http://[2002:a00:1::]/",
    "http://[64:ff9b::10.0.0.1]/",
)


@dataclass(slots=True)
class Inside:
    """A server that nobody may reach, on loopback."""

    port: int = 0
    connections: list[str] = field(default_factory=list)

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections.append(str(writer.get_extra_info("sockname")[0]))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nsecret")
        writer.close()


@pytest.fixture
async def inside() -> AsyncIterator[Inside]:
    served = Inside()
    async with AsyncExitStack() as stack:
        for port in free_ports():  # the same one at each address
            with suppress(OSError):
                stack.enter_context(closing(await asyncio.start_server(served.serve, _IPV4, port)))
                served.port = port
                break
        with suppress(OSError):  # a machine may have no IPv6
            stack.enter_context(closing(await asyncio.start_server(served.serve, "::1", served.port)))
        yield served


async def refusal(sender: GuardedSender, url: str) -> SendError:
    with pytest.raises(SendError) as refused:
        await sender.post(url, b"{}", {})
    assert not refused.value.may_have_arrived
    assert "\n" not in str(refused.value)
    return refused.value


async def numbers_alone(host: str, port: int) -> list[Address]:
    """The machine's resolver for numbers and for localhost; it never asks a name server."""
    if host.lower().removesuffix(".") != "localhost" and not set(host) <= set("0123456789abcdefxABCDEFX.:"):
        raise OSError
    return await resolve_host(host, port)


def sender(resolve: object = numbers_alone) -> GuardedSender:
    assert callable(resolve)
    return GuardedSender(EVERYWHERE_PUBLIC, seconds=5.0, resolve=resolve)


async def test_the_server_inside_can_be_reached_where_nothing_keeps_requests_back(inside: Inside) -> None:
    """Without this, the tests below would pass with a server that nobody could reach."""
    open_sender = GuardedSender(Reach(ports=None, hosts=frozenset({"127.0.0.1", "localhost"})))
    for host in ("127.0.0.1", "localhost"):
        answer = await open_sender.post(f"http://{host}:{inside.port}/", b"{}", {})
        assert answer.body == b"secret"
    assert len(inside.connections) == 2


@pytest.mark.parametrize("url", [*LOOPBACK, *USERS, *NO_ADDRESSES, *INSIDE])
async def test_no_form_of_an_address_inside_is_reached(inside: Inside, url: str) -> None:
    await refusal(sender(), url.format(port=inside.port) if "{port}" in url else url)
    assert not inside.connections


@pytest.mark.parametrize("url", INSIDE)
async def test_it_is_the_address_that_is_refused(url: str) -> None:
    assert "at no public address" in str(await refusal(sender(), url)) or "%25" in url


@pytest.mark.parametrize(
    "addresses",
    [
        ["127.0.0.1"],
        ["::1"],
        ["::ffff:127.0.0.1"],
        ["64:ff9b::7f00:1"],
        ["1.1.1.1", "127.0.0.1"],
        ["127.0.0.1", "1.1.1.1"],
        ["169.254.169.254"],
        [],
    ],
)
async def test_no_name_leads_inside(inside: Inside, addresses: list[str]) -> None:
    async def resolve(host: str, port: int) -> list[Address]:
        return list(map(ip_address, addresses))

    refused = await refusal(sender(resolve), f"http://hooks.example:{inside.port}/")
    assert str(refused) == "the host hooks.example is at no public address"
    assert not inside.connections


async def test_a_name_that_changes_between_check_and_connection_leads_where_it_was_checked(
    inside: Inside,
) -> None:
    asked: list[str] = []
    received: list[str] = []

    async def rebind(host: str, port: int) -> list[Address]:
        asked.append(host)
        return [ip_address("127.0.0.2" if len(asked) == 1 else "127.0.0.1")]

    async def handle(request: web.Request) -> web.Response:
        received.append(request.host)
        return web.Response()

    reach = Reach((WEB_NETWORK,), ports=None)
    async with web_server(handle, method="POST") as url:
        named = url.replace("127.0.0.2", "rebinding.test")
        assert (await GuardedSender(reach, resolve=rebind).post(named, b"{}", {})).status == 200
        assert (len(asked), len(received)) == (1, 1)
        await refusal(GuardedSender(reach, resolve=rebind), named)
    await refusal(GuardedSender(reach, resolve=rebind), f"http://rebinding.test:{inside.port}/")
    assert not inside.connections


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_no_redirect_leads_inside(inside: Inside, status: int) -> None:
    async def handle(request: web.Request) -> web.Response:
        return web.Response(status=status, headers={"Location": f"http://127.0.0.1:{inside.port}/"})

    async with web_server(handle, method="POST") as url:
        answer = await GuardedSender(Reach((WEB_NETWORK,), ports=None)).post(url, b"{}", {})
    assert answer.status == status
    assert not inside.connections


async def test_no_proxy_of_the_environment_leads_inside(
    inside: Inside, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{inside.port}")

    async def resolve(host: str, port: int) -> list[Address]:
        return []

    for url in ("http://hooks.example/", "http://169.254.169.254/"):
        await refusal(sender(resolve), url)
    assert not inside.connections
