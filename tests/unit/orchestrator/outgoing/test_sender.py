"""The guarded sender over real HTTP: what it sends, what it believes, and how little a receiver can do to it."""

import asyncio
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from datetime import UTC, datetime
from ipaddress import ip_address, ip_network
from pathlib import Path

import pytest
from aiohttp import web

from parley.orchestrator.outgoing.answers import Answer, SendError
from parley.orchestrator.outgoing.reach import Address, Reach
from parley.orchestrator.outgoing.sender import GuardedSender
from tests.support.certificates import Authority
from tests.support.http_server import serve_app
from tests.support.ports import free_ports
from tests.support.web_server import WEB_NETWORK, web_server

NOW = datetime(2027, 1, 2, 3, 4, 5, tzinfo=UTC)
REACH = Reach((WEB_NETWORK,), ports=None, needs_tls=True)


async def failure(sender: GuardedSender, url: str) -> SendError:
    with pytest.raises(SendError) as failed:
        await sender.post(url, b"{}", {"Authorization": "Bearer s3cret"})
    assert "s3cret" not in str(failed.value)
    assert failed.value.__cause__ is None, "a logged cause would tell the address"
    return failed.value


def make_resolver(address: str) -> object:
    async def resolve(host: str, port: int) -> list[Address]:
        return [ip_address(address)]

    return resolve


@asynccontextmanager
async def tls_server(certificate: Path, key: Path) -> AsyncIterator[int]:
    async def handle(request: web.Request) -> web.Response:
        return web.Response(text=request.host)

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(certificate, key)
    app = web.Application()
    app.router.add_post("/{path:.*}", handle)
    async with serve_app(app, "127.0.0.2", context) as port:
        yield port


async def test_a_body_arrives_with_its_headers_and_nothing_of_the_machine(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    seen: list[tuple[bytes, dict[str, str]]] = []
    (tmp_path / "netrc").write_text("machine 127.0.0.2 login me password s3cret\n")
    monkeypatch.setenv("NETRC", str(tmp_path / "netrc"))

    async def handle(request: web.Request) -> web.Response:
        seen.append((await request.read(), dict(request.headers)))
        return web.Response(status=202, text="taken", headers={"Set-Cookie": "id=1", "X-Other": "1"})

    async with web_server(handle, method="POST") as url:
        _, answer = [
            await GuardedSender(REACH).post(
                f"{url}hooks?a=1", b'{"a": 1}', {"Content-Type": "application/json"}
            )
            for _ in range(2)
        ]
    assert (answer.status, answer.is_success, answer.body, answer.headers["x-other"]) == (
        202,
        True,
        b"taken",
        "1",
    )
    body, headers = seen[1]
    assert body == b'{"a": 1}'
    assert headers["Content-Type"] == "application/json"
    assert {"Cookie", "Authorization"}.isdisjoint(headers)


async def test_an_answer_is_read_to_its_bound_and_not_unpacked() -> None:
    async def handle(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Encoding": "gzip"})
        await response.prepare(request)
        with suppress(ConnectionError):
            while True:
                await response.write(b"x" * 65536)
        return response

    async with web_server(handle) as url:
        answer = await GuardedSender(REACH, max_bytes=100_000).get(url, {})
    assert answer.body == b"x" * 100_000


@pytest.mark.parametrize("stalls", ["its name is looked for", "it is asked", "it answers"])
async def test_a_receiver_that_stalls_costs_the_time_limit_and_no_more(stalls: str) -> None:
    async def stall(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        if stalls == "it answers":
            await response.prepare(request)
        await asyncio.Event().wait()
        return response

    async def wait_forever(host: str, port: int) -> list[Address]:
        await asyncio.Event().wait()
        return []

    async with web_server(stall, method="POST") as url:
        slow = (
            GuardedSender(REACH, seconds=0.2, resolve=wait_forever)
            if "name" in stalls
            else GuardedSender(REACH, seconds=0.2)
        )
        failed = await failure(slow, url)
    assert str(failed) == "it did not answer within 0.2 s"
    assert failed.may_have_arrived


async def test_a_receiver_that_is_away_got_nothing_and_one_that_hangs_up_may_have() -> None:
    away = await failure(GuardedSender(REACH), f"http://127.0.0.2:{next(free_ports())}/hooks/s3cret")
    assert not away.may_have_arrived

    async def hang_up(request: web.Request) -> web.Response:
        assert request.transport is not None
        request.transport.abort()
        return web.Response()

    async with web_server(hang_up, method="POST") as url:
        assert (await failure(GuardedSender(REACH), f"{url}s3cret")).may_have_arrived


async def test_what_is_no_header_is_refused_without_being_told() -> None:
    with pytest.raises(SendError) as failed:
        await GuardedSender(REACH).post("http://127.0.0.2/", b"", {"X-Token": "s3cret\r\nX-Other: 1"})
    assert "s3cret" not in str(failed.value)


@pytest.mark.parametrize(
    ("reach", "is_sent"),
    [
        (REACH, True),
        (Reach(hosts=frozenset({"127.0.0.2"}), needs_tls=True), True),
        (Reach((ip_network("127.0.0.3/32"),), ports=None, needs_tls=True), False),
        (Reach((WEB_NETWORK,)), False),
    ],
    ids=["its network is named", "it is named", "another network is named", "its port is not"],
)
async def test_a_host_inside_is_sent_to_by_plain_http_if_the_operator_names_it(
    reach: Reach, is_sent: bool
) -> None:
    seen: list[str] = []

    async def handle(request: web.Request) -> web.Response:
        seen.append(request.path)
        return web.Response()

    async with web_server(handle, method="POST") as url:
        if is_sent:
            await GuardedSender(reach).post(url, b"{}", {})
        else:
            await failure(GuardedSender(reach), url)
    assert bool(seen) == is_sent


async def test_nothing_is_sent_to_a_public_host_by_plain_http() -> None:
    sender = GuardedSender(REACH, resolve=make_resolver("1.1.1.1"))  # type: ignore[arg-type]
    failed = await failure(sender, "http://hooks.example/s3cret")
    assert str(failed) == "the host hooks.example may be reached by https:// alone"


async def test_a_name_that_is_partly_public_is_not_sent_to_by_plain_http() -> None:
    async def resolve_both(host: str, port: int) -> list[Address]:
        return [ip_address("127.0.0.2"), ip_address("1.1.1.1")]

    assert "by https:// alone" in str(
        await failure(GuardedSender(REACH, resolve=resolve_both), "http://hooks.example/")
    )


async def test_an_address_with_a_user_is_sent_nothing_though_its_host_may_be_reached() -> None:
    failed = await failure(GuardedSender(REACH), "http://me:s3cret@127.0.0.2/")
    assert str(failed) == "an address with a user or a password may not be reached"


async def test_certificates_are_checked_for_their_signer_and_their_host(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = Authority(tmp_path)
    async with tls_server(*authority.sign("receiver", hosts=("hooks.example",))) as port:
        sender = GuardedSender(REACH, resolve=make_resolver("127.0.0.2"))  # type: ignore[arg-type]
        failed = await failure(sender, f"https://hooks.example:{port}/s3cret")
        assert "its certificate is refused: " in str(failed)
        assert not failed.may_have_arrived
        trusting = ssl.create_default_context(cafile=str(authority.file))
        monkeypatch.setattr("aiohttp.connector._SSL_CONTEXT_VERIFIED", trusting)
        answer = await sender.post(f"https://hooks.example:{port}/", b"{}", {})
        assert answer.body == f"hooks.example:{port}".encode()
        assert "Hostname mismatch" in str(await failure(sender, f"https://other.example:{port}/"))


async def test_a_host_that_the_operator_names_is_reached_by_the_proxy_of_the_environment_and_no_other(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    async def handle(request: web.Request) -> web.Response:
        asked.append(str(request.url))
        return web.Response()

    async with web_server(handle, method="POST") as url:
        monkeypatch.setenv("HTTP_PROXY", url)
        named = GuardedSender(Reach(hosts=frozenset({"tracker.invalid"})))
        assert (await named.post("http://tracker.invalid/issues", b"{}", {})).status == 200
        direct = GuardedSender(Reach((WEB_NETWORK,), ports=None), resolve=make_resolver("127.0.0.2"))  # type: ignore[arg-type]
        assert (await direct.post(url.replace("127.0.0.2", "other.invalid"), b"{}", {})).status == 200
    assert asked[0] == "http://tracker.invalid/issues"
    assert asked[1].startswith("http://other.invalid:")


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        ("120", 120),
        ("0", 0),
        ("99999999999999999999", 86_400),
        ("Sat, 02 Jan 2027 03:05:05 GMT", 60),
        ("Sat, 02 Jan 2027 03:05:05", 60),
        ("Fri, 01 Jan 2027 00:00:00 GMT", 0),
        ("Sat, 01 Jan 2028 00:00:00 GMT", 86_400),
        ("-5", None),
        ("soon", None),
        ("\u0661\u0662", None),
        ("", None),
    ],
)
def test_when_to_try_again_is_read_from_seconds_and_dates_within_a_day(
    header: str, seconds: float | None
) -> None:
    assert Answer(503, {"retry-after": header}).retry_after(NOW) == seconds


def test_a_status_is_told_with_its_name_if_it_has_one() -> None:
    assert Answer(503).describe_status() == "503 Service Unavailable"
    assert Answer(599).describe_status() == "599"
