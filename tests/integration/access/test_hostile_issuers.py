"""A token issuer whose answers are large, deep, slow or no keys at all costs a bounded amount, and a caller a short wait."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import jwt
import pytest
from aiohttp import web
from cryptography.hazmat.primitives.asymmetric import rsa

from parley.runtime.errors import ParleyError
from parley.runtime.identity import signing_keys
from parley.runtime.identity.signing_keys import SigningKeys, key_fetcher
from tests.support.http_server import serve_app
from tests.support.manual_clock import ManualClock

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]
RS256 = jwt.get_algorithm_by_name("RS256")
PRIVATE = rsa.generate_private_key(65537, 2048)
PUBLIC_KEY = json.loads(RS256.to_jwk(PRIVATE.public_key()))
GOOD = {**PUBLIC_KEY, "kid": "good", "use": "sig", "alg": "RS256"}


@asynccontextmanager
async def serve(answer: Answer) -> AsyncIterator[str]:
    """Serve `answer` as the keys of an issuer; yield its URL."""
    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    async with serve_app(app) as port:
        yield f"http://127.0.0.1:{port}"


async def find_key(url: str, key_id: str = "good") -> Any:
    return await SigningKeys(key_fetcher(url, f"{url}/keys"), ManualClock()).find_key(key_id)


def respond(content: bytes, **headers: str) -> Answer:
    async def answer(_request: web.Request) -> web.Response:
        return web.Response(body=content, headers=headers)

    return answer


async def test_usable_keys_among_useless_ones_are_used() -> None:
    odd: list[object] = [
        None,
        1,
        [],
        {},
        {"kid": "x"},
        {"kty": "RSA", "kid": 5, "n": 7, "e": []},
        {"kty": "oct", "kid": "x"},
        {**json.loads(RS256.to_jwk(PRIVATE)), "kid": "x", "key_ops": ["verify"]},
    ]
    async with serve(respond(json.dumps({"keys": [*odd, GOOD]}).encode())) as url:
        assert await find_key(url) is not None
        assert await find_key(url, "x") is None


@pytest.mark.parametrize(
    "content",
    [
        json.dumps({"keys": [GOOD], "more": "x" * 300_000}).encode(),
        json.dumps({"keys": [{**GOOD, "kid": str(n)} for n in range(101)]}).encode(),
        b'{"keys": [' + b'{"a":' * 20_000 + b"1" + b"}" * 20_000 + b"]}",
        b"[" * 100_000,
        b"<html>sign in</html>",
        b"\xff\xfe{}",
        b"[]",
        b'"keys"',
        b"{}",
        b'{"keys": {}}',
        b'{"keys": []}',
        b'{"keys": [1]}',
    ],
    ids=["large", "many keys", "deep", "deep lists", "HTML", "no UTF-8", "list", "text", "empty", "no list", "no keys", "no key"],
)  # fmt: skip
async def test_an_answer_that_is_too_large_too_deep_or_no_set_of_keys_is_refused(
    content: bytes, capsys: pytest.CaptureFixture[str]
) -> None:
    async with serve(respond(content)) as url:
        with pytest.raises(ParleyError) as caught:
            await find_key(url, "good")
    assert caught.value.reason == "ISSUER_UNAVAILABLE"
    written = capsys.readouterr()
    assert "the token issuer's keys cannot be fetched" in written.out + written.err


async def test_an_answer_without_end_is_not_read_to_its_end() -> None:
    sent = 0

    async def answer(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        while sent < 64 * 1024 * 1024:
            await response.write(b" " * 65536)
            sent += 65536
        return response

    async with serve(answer) as url:
        with pytest.raises(ParleyError):
            await find_key(url)
    assert sent < 32 * 1024 * 1024


async def test_a_redirect_is_not_followed() -> None:
    asked = []

    async def answer(request: web.Request) -> web.StreamResponse:
        asked.append(request.path)
        if request.path == "/keys":
            raise web.HTTPFound("/elsewhere")
        return web.json_response({"keys": [GOOD]})

    async with serve(answer) as url:
        with pytest.raises(ParleyError):
            await find_key(url)
    assert asked == ["/keys"]


async def test_keys_that_drip_are_not_waited_for_without_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(signing_keys, "_FETCH_SECONDS", 0.3)
    ended = asyncio.Event()

    async def answer(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            while True:
                await response.write(b" ")
                await asyncio.sleep(0.01)
        finally:
            ended.set()

    async with serve(answer) as url:
        with pytest.raises(ParleyError):
            await find_key(url)
        await asyncio.wait_for(ended.wait(), 60)


async def test_a_caller_with_an_unknown_key_id_does_not_wait_for_a_slow_issuer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(signing_keys, "_FETCH_SECONDS", 600.0)
    monkeypatch.setattr(signing_keys, "_WAIT_SECONDS", 0.1)
    held, clock = asyncio.Event(), ManualClock()
    asked = 0

    async def answer(_request: web.Request) -> web.Response:
        nonlocal asked
        asked += 1
        if asked > 1:
            await held.wait()
        return web.json_response({"keys": [GOOD, {**GOOD, "kid": "new"}][:asked]})

    async with serve(answer) as url:
        keys = SigningKeys(key_fetcher(url, f"{url}/keys"), clock)
        assert await keys.find_key("good") is not None
        clock.advance(11)
        for _ in range(3):
            with pytest.raises(ParleyError, match="does not answer"):
                await keys.find_key("new")
        assert await keys.find_key("good") is not None, "what is known needs no issuer"
        assert asked == 2, "callers share a request"
        held.set()
        async with asyncio.timeout(60):
            while not await _is_known(keys, "new"):
                pass


async def _is_known(keys: SigningKeys, key_id: str) -> bool:
    try:
        return await keys.find_key(key_id) is not None
    except ParleyError:  # it waited for the fetch once more
        return False
