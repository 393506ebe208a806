"""What strangers and pages of other sites cannot do at the edge."""

import asyncio
import json
import struct
from typing import Any

import pytest

from parley.edge.__main__ import run_edge
from parley.edge.app import to_answer
from parley.edge.bounds import RequestBounds
from parley.edge.settings import EdgeSettings
from parley.runtime.errors import ConfigurationError, unauthenticated
from parley.v1 import debate_pb2
from tests.integration.edge.conftest import SERVICE, Edge
from tests.support.scripted_gateway import ScriptedGateway

_ALLOWED = "https://console.example"


@pytest.fixture
def settings() -> dict[str, Any]:
    return {"edge_origins": _ALLOWED, "edge_streams_per_caller": 2}


async def test_a_name_that_is_not_ours_is_refused_so_that_no_page_can_rebind_its_own(edge: Edge) -> None:
    headers = {"Host": "evil.example"}
    async with edge.session.post(f"{edge.url}{SERVICE}/ListDebates", json={}, headers=headers) as answer:
        assert answer.status == 400
    async with edge.session.get(f"{edge.url}/healthz", headers={"Host": "localhost:1"}) as answer:
        assert answer.status == 200


@pytest.mark.parametrize(
    ("origin", "status"), [("https://evil.example", 403), ("null", 403), (_ALLOWED, 200), (None, 200)]
)
async def test_a_page_of_another_site_writes_only_if_its_origin_is_named(
    edge: Edge, origin: str | None, status: int
) -> None:
    headers = {"Origin": origin} if origin else {}
    async with edge.session.post(f"{edge.url}{SERVICE}/ListDebates", json={}, headers=headers) as answer:
        assert answer.status == status


async def test_a_page_of_our_own_writes(edge: Edge) -> None:
    headers = {"Origin": edge.url}
    async with edge.session.post(f"{edge.url}{SERVICE}/ListDebates", json={}, headers=headers) as answer:
        assert answer.status == 200


async def test_a_browser_is_told_which_origins_may_read(edge: Edge) -> None:
    for origin, told in ((_ALLOWED, _ALLOWED), ("https://evil.example", None)):
        async with edge.session.get(f"{edge.url}/healthz", headers={"Origin": origin}) as answer:
            assert answer.headers.get("Access-Control-Allow-Origin") == told


async def test_a_caller_has_so_many_streams_open_and_another_has_its_own(
    edge: Edge, gateway: ScriptedGateway
) -> None:
    gateway.hold("*")
    debate = await edge.create()
    url = f"{edge.url}/v1/debates/{debate}/events"
    mine, other = {"Authorization": "Bearer one"}, {"Authorization": "Bearer two"}
    async with edge.session.get(url, headers=mine) as one, edge.session.get(url, headers=mine) as two:
        assert (one.status, two.status) == (200, 200)
        async with edge.session.get(url, headers=mine) as third:
            assert (third.status, (await third.json())["reason"]) == (429, "TOO_MANY_STREAMS")
        async with edge.session.get(url, headers=other) as another:
            assert another.status == 200


async def test_a_client_that_hangs_up_frees_its_stream_and_leaves_the_debate_running(
    edge: Edge, gateway: ScriptedGateway
) -> None:
    hold = gateway.hold("*")
    debate = await edge.create()
    body = b'{"debateId": "%s"}' % debate.encode()
    stream = {"Content-Type": "application/connect+json"}
    for _ in range(2):
        async with edge.session.post(
            f"{edge.url}{SERVICE}/WatchDebate", data=struct.pack(">BI", 0, len(body)) + body, headers=stream
        ) as answer:
            await answer.content.readexactly(5)
            answer.close()

    await edge.wait_for_two_streams(debate)
    hold.release()
    await edge.orchestrator.status(debate, debate_pb2.DEBATE_STATUS_COMPLETED)


async def test_a_body_without_a_length_is_refused(edge: Edge) -> None:
    async def parts() -> Any:
        yield b"{}"

    async with edge.session.post(f"{edge.url}{SERVICE}/ListDebates", data=parts()) as answer:
        assert answer.status == 411


async def test_large_headers_are_refused(edge: Edge) -> None:
    async with edge.session.get(f"{edge.url}/healthz", headers={"X-A": "a" * 20_000}) as answer:
        assert answer.status == 431


async def know(_headers: object) -> None:
    """Know every caller."""


@pytest.mark.parametrize(
    ("path", "form"),
    [
        ("/v1/chat/completions", {"error"}),
        ("/parley.v1.OrchestratorService/CreateDebate", {"code", "message"}),
    ],
)
async def test_who_is_not_known_hears_so_in_the_form_of_the_path(path: str, form: set[str]) -> None:
    answered = []

    async def refuse(_headers: object) -> None:
        raise unauthenticated("NO_CREDENTIALS", "show a key")

    async def read(*_given: object) -> Any:
        raise AssertionError("the body was asked for")

    async def send(message: Any) -> None:
        answered.append(message)

    scope = {"type": "http", "method": "POST", "headers": [(b"content-length", b"99999")], "path": path}
    await RequestBounds(read, send_seconds=30, check_caller=refuse, to_answer=to_answer)(scope, read, send)
    start, body = answered
    assert start["status"] == 401
    assert form <= json.loads(body["body"]).keys()


async def test_a_body_that_does_not_come_is_not_waited_for_for_ever() -> None:
    answered = []

    async def receive() -> Any:
        await asyncio.Event().wait()

    async def send(message: Any) -> None:
        answered.append(message)

    async def read(_scope: Any, receive: Any, _send: Any) -> None:
        await receive()

    scope = {"type": "http", "method": "POST", "headers": [(b"content-length", b"9")], "path": "/"}
    await RequestBounds(read, send_seconds=30, check_caller=know, to_answer=to_answer, body_seconds=0.01)(
        scope, receive, send
    )
    assert answered[0]["status"] == 408


async def test_a_client_that_does_not_read_is_cut_off() -> None:
    async def receive() -> Any:
        return {"type": "http.request"}

    async def send(_message: Any) -> None:
        await asyncio.Event().wait()

    cut = []

    async def write(_scope: Any, _receive: Any, send: Any) -> None:
        try:
            await send({"type": "http.response.start", "status": 200})
        except TimeoutError:
            cut.append(True)
            raise

    scope = {"type": "http", "method": "GET", "headers": [], "path": "/"}
    await RequestBounds(write, send_seconds=0.01, check_caller=know, to_answer=to_answer)(
        scope, receive, send
    )
    assert cut == [True]


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"host": "0.0.0.0", "edge_hosts": "a.example", "auth": "key"}, "PARLEY_TLS_CERTIFICATE"),
        ({"host": "0.0.0.0", "edge_hosts": "a.example", "tls": "off"}, "PARLEY_AUTH"),
        ({"host": "0.0.0.0", "auth": "key", "tls": "off"}, "PARLEY_EDGE_HOSTS"),
        ({"auth": "mtls"}, "PARLEY_AUTH"),
        ({"edge_origins": "console.example"}, "edge_origins"),
    ],
)
def test_an_edge_that_strangers_reach_needs_tls_identity_and_a_name(
    given: dict[str, Any], named: str
) -> None:
    with pytest.raises(ValueError, match=named):
        EdgeSettings(**given)


def test_a_trusted_proxy_may_end_tls() -> None:
    EdgeSettings(host="0.0.0.0", edge_hosts="a.example", auth="key", edge_trusted_proxies="10.0.0.0/8")


async def test_credentials_are_not_sent_in_plaintext_to_another_machine() -> None:
    with pytest.raises(ConfigurationError, match="PARLEY_CA"):
        async with run_edge(EdgeSettings(port=0, orchestrator="orchestrator.example:7401")):
            pass
