"""An embeddings endpoint that repeats its key: no caller, and no debate's log, gets to see it."""

import base64

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from parley.convergence.endpoint import EndpointEmbedder
from parley.runtime.errors import ParleyError

KEY = "embeddings-0123456789-key"
ENCODED = base64.b64encode(f"user:{KEY}".encode()).decode()


async def read_error(answer: web.Response, path: str = "/v1") -> str:
    async def say(_: web.Request) -> web.Response:
        return web.Response(status=answer.status, headers=answer.headers, body=answer.body)

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", say)
    async with TestServer(application) as server:
        embedder = EndpointEmbedder(str(server.make_url(path)), KEY, "m")
        try:
            with pytest.raises(ParleyError) as raised:
                await embedder.embed(["a text"])
        finally:
            await embedder.close()
    return raised.value.message


@pytest.mark.parametrize(
    "words",
    [
        f"wrong key {KEY}",
        f"wrong header Basic {ENCODED}",
        f"{'x' * 120}{KEY}{'y' * 400}",
        f"see https://h/?key={KEY}",
        f"\x1b[31m{KEY}\x07\r\nINJECTED",
    ],
    ids=["plain", "base64", "at the cut", "url", "escapes"],
)
async def test_an_endpoints_error_is_one_short_clean_line_without_the_key(words: str) -> None:
    message = await read_error(web.json_response({"error": {"message": words}}, status=400))
    assert KEY[:12] not in message
    assert ENCODED[8:20] not in message
    assert message.isprintable()
    assert len(message) <= 300


async def test_numbers_that_are_none_are_not_repeated() -> None:
    data = {"data": [{"index": 0, "embedding": [KEY]}], "model": "m", "object": "list"}
    assert KEY not in await read_error(web.json_response(data))


async def test_no_redirect_is_followed() -> None:
    moved = web.Response(status=307, headers={"Location": "http://127.0.0.1:9/x"})
    assert "redirects elsewhere" in await read_error(moved)
