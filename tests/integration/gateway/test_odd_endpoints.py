"""What endpoints send that nobody promised: streams in every form, names and headers that make no sense."""

import asyncio
import errno
import json
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import grpc
import pytest
from aiohttp import web

from parley.gateway.settings import GatewaySettings
from parley.gateway.wire import client_requests
from parley.gateway.wire.api import Api
from tests.integration.gateway.harness import Gateway, failure_of, kinds_with, request, run_gateway
from tests.support.http_server import serve_app

MODEL = "m\x1b[2J\u202e" + "y" * 5000


def piece(text: str, **more: Any) -> str:
    event = {"model": MODEL, "choices": [{"index": 0, "delta": {"content": text}}], **more}
    return f"data: {json.dumps(event)}\n\n"


@asynccontextmanager
async def endpoint(
    body: bytes, *, status: int = 200, stays_open: bool = False, headers: Mapping[str, str] | None = None
) -> AsyncIterator[Gateway]:
    """A gateway whose only provider says this to every chat request."""

    async def say(asked: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(status=status, headers=headers or {"content-type": "text/event-stream"})
        await response.prepare(asked)
        await response.write(body)
        if stays_open:
            await asyncio.sleep(60)
        return response

    async with serve_answer(say) as gateway:
        yield gateway


@asynccontextmanager
async def serve_answer(say: Callable[[web.Request], Awaitable[web.StreamResponse]]) -> AsyncIterator[Gateway]:
    """A gateway whose only provider answers every chat request by this."""
    app = web.Application()
    app.router.add_post("/v1/chat/completions", say)
    async with serve_app(app) as port:
        url = f"http://127.0.0.1:{port}/v1"
        settings = GatewaySettings(openai_base_url=url, model="m-1", local_model="off", grace_seconds=1.0)
        async with run_gateway(settings, kinds=kinds_with(api=Api.CHAT)) as gateway:
            yield gateway


@pytest.mark.parametrize(
    "body",
    [
        piece("Yes.") + "data: [DONE]\n\n",
        "\ufeff" + piece("Yes.") + "data: [DONE]\n\n",
        (piece("Yes.") + "data: [DONE]\n\n").replace("\n", "\r"),
        (piece("Yes.") + "data: [DONE]\n\n").replace("\n", "\r\n") + "data: {broken\r\n\r\n",
        piece("Yes.").replace(', "choices"', '\ndata: , "choices"') + "data: [DONE]\n\n",
        piece("Yes.") + "data: [DONE]\n\n" + piece(" And more."),
    ],
    ids=["no finish reason", "mark", "CR", "CRLF and more", "several lines", "more after the end"],
)
@pytest.mark.parametrize("kind", ["text/event-stream", "Text/Event-Stream; Charset=UTF-8"])
async def test_a_stream_ends_with_its_last_word_in_whatever_form_though_the_connection_stays(
    body: str, kind: str
) -> None:
    async with (
        endpoint(body.encode(), stays_open=True, headers={"content-type": kind}) as gateway,
        asyncio.timeout(20),
    ):
        assert (await gateway.ask(request(timeout=15))).answer.text == "Yes."


async def test_the_models_name_is_bounded_and_printable() -> None:
    async with endpoint((piece("Yes.") + "data: [DONE]\n\n").encode()) as gateway:
        model = (await gateway.ask()).answer.model
        assert model.startswith("m[2Jyyy")
        assert len(model) <= 200


async def test_usage_as_floats_is_read_and_absurd_usage_is_estimated() -> None:
    said = piece("Yes.", usage={"prompt_tokens": 12.0, "completion_tokens": 10**18, "total_tokens": 1e308})
    async with endpoint((said + "data: [DONE]\n\n").encode()) as gateway:
        usage = (await gateway.ask()).answer.usage
        assert usage.input_tokens == 12
        assert usage.output_tokens < 100


async def test_a_gateway_without_files_left_says_so_of_itself_and_not_of_the_provider(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def refuse(*_: object, **__: object) -> None:
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    async with endpoint((piece("Yes.") + "data: [DONE]\n\n").encode()) as gateway:
        with monkeypatch.context() as full:
            full.setattr("aiohttp.connector.aiohappyeyeballs.start_connection", refuse)
            for _ in range(2):
                failed = await failure_of(gateway, request(timeout=60))
                assert (failed.code, failed.reason) == (grpc.StatusCode.UNAVAILABLE, "GATEWAY_UNAVAILABLE")
                assert "too many open files" in failed.message
        assert await gateway.breaker("openai/m-1") == "CLOSED"
        assert (await gateway.ask()).answer.text == "Yes."


@pytest.mark.parametrize(
    "wait", ["1e300", "9" * 400, "Mon, 01 Jan 2024 00:00:00 +99999999999999", "soon", "nan", "-1e300", "\xff"]
)
async def test_a_retry_after_that_makes_no_sense_is_a_rate_limit_like_any_other(wait: str) -> None:
    headers = {"retry-after": wait, "content-type": "application/json"}
    async with endpoint(b'{"error": {"message": "slow down"}}', status=429, headers=headers) as gateway:
        failed = await failure_of(gateway, request(timeout=30))
    assert (failed.code, failed.reason) == (grpc.StatusCode.RESOURCE_EXHAUSTED, "PROVIDER_RATE_LIMIT")
    assert failed.retry_after is None or 0 <= failed.retry_after <= 86_400


async def test_an_endpoint_whose_body_ends_after_its_last_event_gets_the_next_call_by_the_same_connection() -> (
    None
):
    is_answered, peers = asyncio.Event(), set[object]()

    async def say(asked: web.Request) -> web.StreamResponse:
        assert asked.transport is not None
        peers.add(asked.transport.get_extra_info("peername"))
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(asked)
        await response.write(f"{piece('hello')}data: [DONE]\n\n".encode())
        await is_answered.wait()
        return response

    async with serve_answer(say) as gateway:
        for calls in range(1, 21):
            is_answered.clear()
            assert (await gateway.ask()).answer.text == "hello"
            is_answered.set()
            if len(peers) < calls:  # the end of an answer may come after the next call began
                return
    pytest.fail("each call took a connection of its own")


async def test_an_endpoint_that_writes_more_than_an_answer_may_have_is_left_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(client_requests, "_END_SECONDS", 3600.0)
    is_left = asyncio.Event()

    async def say(asked: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"content-type": "text/event-stream"})
        await response.prepare(asked)
        try:
            while True:
                await response.write(piece("word " * 10_000).encode())
        except ConnectionError:
            is_left.set()
            raise

    async with asyncio.timeout(30), serve_answer(say) as gateway:
        assert (await gateway.ask()).answer.truncated
        await is_left.wait()
