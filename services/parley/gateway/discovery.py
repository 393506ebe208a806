"""Model servers on this machine, for use if no key, base URL or provider is set.

Each is asked for its models on the port that its kind usually has, on both loopback addresses and all at the same time. Whatever
else answers there is passed over.
"""

import asyncio
import json
from collections.abc import Iterable
from typing import Final

import aiohttp
from msgspec import Struct

from parley.gateway.wire.endpoint import text_models
from parley.v1.gateway_pb2 import FoundServer

_HOSTS: Final = ("127.0.0.1", "[::1]")
_SECONDS: Final = 1.0
"""How long a server may take to list its models. One that is there and idle takes milliseconds."""
_MAX_BYTES: Final = 1024 * 1024


class UsualServer(Struct, frozen=True):
    """A kind of model server: the provider that stands for it, what people call it, and the port it usually has."""

    provider: str
    title: str
    port: int


USUAL_SERVERS: Final = (
    UsualServer("ollama", "Ollama", 11434),
    UsualServer("lm-studio", "LM Studio", 1234),
    UsualServer("vllm", "vLLM", 8000),
    UsualServer("llama-cpp", "llama.cpp", 8080),
)
"""In the order in which they are preferred."""


def servers_on(ports: Iterable[int]) -> tuple[UsualServer, ...]:
    """Return what to look for on these ports: the kind that usually has the port, or else any server."""
    usual = {each.port: each for each in USUAL_SERVERS}
    unusual = (UsualServer(f"port-{port}", "a model server", port) for port in ports)
    return tuple(usual.get(each.port, each) for each in unusual)


async def find_servers(servers: Iterable[UsualServer]) -> tuple[FoundServer, ...]:
    """Return those of the servers that answer now and list a model that writes text, in the same order."""
    timeout = aiohttp.ClientTimeout(total=_SECONDS)
    async with aiohttp.ClientSession(timeout=timeout) as session:
        found = await asyncio.gather(*(_find_server(session, each) for each in servers))
    return tuple(each for each in found if each is not None)


async def _find_server(session: aiohttp.ClientSession, server: UsualServer) -> FoundServer | None:
    urls = [f"http://{host}:{server.port}/v1" for host in _HOSTS]
    listed = await asyncio.gather(*(_list_models(session, url) for url in urls))
    for url, models in zip(urls, listed, strict=True):
        if models:
            return FoundServer(provider=server.provider, title=server.title, base_url=url, models=models)
    return None


async def _list_models(session: aiohttp.ClientSession, base_url: str) -> tuple[str, ...]:
    """Return the models that are listed at a URL; none if no model server answers."""
    try:
        # What is no model server may send us anywhere: only this machine is asked.
        async with session.get(f"{base_url}/models", allow_redirects=False) as response:
            if response.status != 200:
                return ()
            listing = json.loads(await _read_body(response))
            return tuple(each.name for each in text_models(listing))
    except (aiohttp.ClientError, TimeoutError, OSError, ValueError, RecursionError):
        return ()


async def _read_body(response: aiohttp.ClientResponse) -> bytes:
    """Return the body. Raise ValueError if it is larger than any list of models."""
    body = bytearray()
    async for chunk in response.content.iter_chunked(64 * 1024):
        body += chunk
        if len(body) > _MAX_BYTES:
            raise ValueError("too large")
    return bytes(body)
