"""The real model in its child process. Needs the packages of `parley[model]`."""

import asyncio
import json
from collections.abc import AsyncIterator
from typing import Any

import pytest
import pytest_asyncio
from openai import AsyncOpenAI, BadRequestError, DefaultAioHttpClient

from parley.gateway.local_model.model import LocalModel, local_model, why_unavailable
from parley.gateway.tracing import TraceLabels
from parley.gateway.usage import RouteUsage
from parley.gateway.wire.api import Api, ModelRequest
from parley.gateway.wire.endpoint import EndpointLimits, Provider
from parley.gateway.wire.openai_endpoint import OpenAIEndpoint
from tests.support.prompt_parts import assistant, user

pytestmark = [
    pytest.mark.model,
    pytest.mark.skipif(why_unavailable() is not None, reason=str(why_unavailable())),
    pytest.mark.asyncio(loop_scope="module"),
]

QUESTION: list[Any] = [
    {"role": "system", "content": "You are a careful engineer. Answer in two short sentences."},
    {"role": "user", "content": "Should a team write its tests before the code?"},
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def model() -> AsyncIterator[LocalModel]:
    async with local_model() as started:
        yield started


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def client(model: LocalModel) -> AsyncIterator[AsyncOpenAI]:
    # It may close a connection that was kept after a streamed answer: one connection a call.
    headers = {"Connection": "close"}
    async with AsyncOpenAI(
        base_url=model.base_url,
        api_key="none",
        http_client=DefaultAioHttpClient(),
        default_headers=headers,
        max_retries=0,
    ) as made:
        yield made


async def test_it_answers_on_loopback_and_counts_tokens(model: LocalModel, client: AsyncOpenAI) -> None:
    assert model.base_url.startswith("http://127.0.0.1:")
    answer = await client.chat.completions.create(model=model.model, messages=QUESTION, max_tokens=24)
    assert answer.choices[0].message.content
    assert answer.usage is not None
    assert 0 < answer.usage.completion_tokens <= 24


async def test_four_streams_at_once_end_whole_and_with_usage(model: LocalModel, client: AsyncOpenAI) -> None:
    async def stream() -> tuple[str, int]:
        text, tokens = "", 0
        chunks = await client.chat.completions.create(
            model=model.model,
            messages=QUESTION,
            max_tokens=16,
            stream=True,
            stream_options={"include_usage": True},
        )
        async for chunk in chunks:
            text += (chunk.choices[0].delta.content or "") if chunk.choices else ""
            tokens = chunk.usage.completion_tokens if chunk.usage else tokens
        return text, tokens

    for text, tokens in await asyncio.gather(*(stream() for _ in range(model.slots))):
        assert text
        assert 0 < tokens <= 16


async def test_a_schema_with_bounded_texts_is_obeyed(model: LocalModel, client: AsyncOpenAI) -> None:
    schema = {
        "type": "object",
        "additionalProperties": False,
        "required": ["position", "confidence", "points"],
        "properties": {
            "position": {"type": "string", "maxLength": 80},
            "confidence": {"type": "number", "minimum": 0, "maximum": 1},
            "points": {"type": "array", "maxItems": 2, "items": {"type": "string", "maxLength": 60}},
        },
    }
    answer = await client.chat.completions.create(
        model=model.model,
        messages=QUESTION,
        max_tokens=300,
        response_format={
            "type": "json_schema",
            "json_schema": {"name": "vote", "schema": schema, "strict": True},
        },
    )
    content = json.loads(answer.choices[0].message.content or "")
    assert set(content) == {"position", "confidence", "points"}
    assert len(content["position"]) <= 80
    assert len(content["points"]) <= 2


async def test_a_prompt_over_a_slot_is_refused_with_its_size(model: LocalModel, client: AsyncOpenAI) -> None:
    with pytest.raises(BadRequestError) as caught:
        await client.chat.completions.create(
            model=model.model, messages=[{"role": "user", "content": "word " * 2500}]
        )
    assert isinstance(caught.value.body, dict)
    assert caught.value.body["type"] == "exceed_context_size_error"
    assert caught.value.body["n_ctx"] == model.context_tokens


async def test_what_it_said_before_is_taken_by_its_responses_api(model: LocalModel) -> None:
    provider = Provider("llama", "openai-compatible", model.base_url, api=Api.RESPONSES, keep_alive=False)
    endpoint = OpenAIEndpoint(provider, EndpointLimits())
    messages = (
        user("Is water wet?"),
        assistant("It is."),
        user("Are you sure?"),
    )
    try:
        request = ModelRequest(model.model, messages, max_output_tokens=8)
        reply = await endpoint.complete(request, RouteUsage(), TraceLabels())
    finally:
        await endpoint.aclose()
    assert reply.text
