"""A model that repeats the key it is asked with: what the gateway passes on, and so every output, has no key."""

import json

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from pydantic import SecretStr

from parley.gateway.settings import GatewaySettings
from tests.integration.gateway.harness import make_structured_request, request, run_gateway

KEY = "house-key-0123456789"


async def repeat_key(asked: web.Request) -> web.StreamResponse:
    sent = asked.headers["Authorization"].removeprefix("Bearer ")
    given = json.loads(await asked.text())
    is_object = "response_format" in given
    text = (
        json.dumps({"stand": f"it is {sent}", "confidence": 1})
        if is_object
        else f"Your key is {sent}, keep it."
    )
    if not given.get("stream"):
        choice = {"index": 0, "message": {"content": text}, "finish_reason": "stop"}
        return web.json_response({"model": f"m-{sent}", "choices": [choice]})
    response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
    await response.prepare(asked)
    for piece in (text[at : at + 3] for at in range(0, len(text), 3)):
        choice = {"index": 0, "delta": {"content": piece}}
        await response.write(f"data: {json.dumps({'model': f'm-{sent}', 'choices': [choice]})}\n\n".encode())
    end = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}
    await response.write(f"data: {json.dumps(end)}\n\ndata: [DONE]\n\n".encode())
    return response


@pytest.mark.parametrize("is_structured", [False, True])
async def test_the_key_is_in_no_piece_and_no_answer(is_structured: bool) -> None:
    application = web.Application()
    application.router.add_post("/v1/chat/completions", repeat_key)
    async with TestServer(application) as endpoint:
        settings = GatewaySettings(
            model="m",
            local_model="off",
            openai_base_url=str(endpoint.make_url("/v1")),
            openai_api_key=SecretStr(KEY),
            openrouter_api_key=None,
        )
        async with run_gateway(settings) as gateway:
            heard = await gateway.ask(make_structured_request() if is_structured else request())
    assert "***" in heard.answer.text
    assert "***" in heard.answer.model
    assert KEY not in str(heard)
    assert KEY not in "".join(each.text for each in heard.deltas)
