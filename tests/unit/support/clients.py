from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from openai import AsyncOpenAI, DefaultAioHttpClient

from tests.support.model_server import ModelServer


@asynccontextmanager
async def client_of(
    server: ModelServer, key: str = "any", *, within: float = 10, strict: bool = True
) -> AsyncIterator[AsyncOpenAI]:
    """The real client on its aiohttp transport, checking every answer against its own types."""
    async with (
        DefaultAioHttpClient() as transport,
        AsyncOpenAI(
            base_url=server.base_url,
            api_key=key,
            http_client=transport,
            max_retries=0,
            timeout=within,
            _strict_response_validation=strict,
        ) as client,
    ):
        yield client


@pytest.fixture
async def openai_client(model_server: ModelServer) -> AsyncIterator[AsyncOpenAI]:
    async with client_of(model_server) as client:
        yield client


async def ask(client: AsyncOpenAI, api: str, prompt: str = "Shall we split the service?") -> str:
    """Ask without streaming, by `responses` or `chat`."""
    if api == "responses":
        return (await client.responses.create(model="small", input=prompt)).output_text
    answer = await client.chat.completions.create(
        model="small", messages=[{"role": "user", "content": prompt}]
    )
    return answer.choices[0].message.content or ""


async def deltas(
    client: AsyncOpenAI, api: str, prompt: str = "Shall we split the service?"
) -> AsyncIterator[str]:
    """Ask with streaming and yield the text as it comes."""
    if api == "responses":
        async for event in await client.responses.create(model="small", input=prompt, stream=True):
            if event.type == "response.output_text.delta":
                yield event.delta
        return
    async for chunk in await client.chat.completions.create(
        model="small", messages=[{"role": "user", "content": prompt}], stream=True
    ):
        if chunk.choices and chunk.choices[0].delta.content:
            yield chunk.choices[0].delta.content


async def stream_text(client: AsyncOpenAI, api: str, prompt: str = "Shall we split the service?") -> str:
    """Ask with streaming and return the whole text."""
    return "".join([delta async for delta in deltas(client, api, prompt)])


Asking = Callable[[AsyncOpenAI, str], Awaitable[str]]
"""Either of `ask` and `stream_text`."""
