"""Requests by an `openai` client: its address, headers, connections and errors, without its own way of building each one.

The client builds a request from pydantic models, merges its headers and its address anew, has `httpx2` send it, and wraps the
answer in streams of both: most of what a short call takes, and the same each time. So headers, addresses and the `aiohttp`
session are taken from it once, and that session is asked.
"""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Mapping
from contextlib import suppress
from typing import Any, Final, Self

import httpx2
from aiohttp import ClientResponse, ClientSession, ClientTimeout, encode_basic_auth
from multidict import CIMultiDict
from yarl import URL

from parley.gateway.wire.openai_parts import (
    AiohttpTransport,
    APIConnectionError,
    APIStatusError,
    AsyncOpenAI,
    Omit,
    map_aiohttp_exceptions,
)
from parley.runtime.unpacking import is_gzip, unpack_gzip

_PIECE_BYTES: Final = 16 * 1024
_MAX_ERROR_BYTES: Final = 16 * 1024
_END_SECONDS: Final = 0.25
"""How long the end of an answer may come after its last event."""
_OF_THE_WIRE: Final = (b"content-encoding", b"content-length", b"transfer-encoding")
"""Headers that say how a body was sent, which an error's body has behind it."""


class Answer:
    """What an endpoint answers to a request. Close it.

    As an iterator it gives its body as it comes, in pieces of 16 KiB at most, with a turn for other tasks after each, and raises what
    `map_aiohttp_exceptions` makes of a broken way.
    """

    def __init__(self, response: ClientResponse) -> None:
        self._response = response
        self._is_read = self._owes_turn = False
        self._unpacked: AsyncGenerator[bytes, None] | None = None
        self.headers: Final[Mapping[str, str]] = response.headers

    def chunks(self) -> AsyncIterator[bytes]:
        """Return what comes of its body, unpacked if it is gzip."""
        if not is_gzip(self.headers):
            return self
        self._unpacked = unpack_gzip(self)
        return self._unpacked

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> bytes:
        if self._owes_turn:
            await asyncio.sleep(0)
        content = self._response.content
        try:
            chunk = content.read_nowait(_PIECE_BYTES)
            self._owes_turn = bool(chunk)  # nothing was waited for: others would not get their turn
            if not chunk:
                chunk = await content.read(_PIECE_BYTES)
        except Exception:
            with map_aiohttp_exceptions():
                raise
        if not chunk:
            raise StopAsyncIteration
        return chunk

    def let_end(self) -> None:
        """Note that all of interest is read. If its end comes within a moment, the connection serves others; nobody waits for that."""
        content, self._is_read = self._response.content, True
        if not content.is_eof():  # else the connection serves others already
            # The session takes the connection back by itself once the end is there.
            closing = asyncio.get_running_loop().call_later(_END_SECONDS, self._response.close)
            content.on_eof(closing.cancel)

    async def aclose(self) -> None:
        """Have no more of it sent, but for an end that may come, and let its connection serve others if all of it came."""
        if self._unpacked is not None:
            await self._unpacked.aclose()
        if self._is_read:
            return
        with map_aiohttp_exceptions():
            await self._response.__aexit__(None, None, None)


class ClientRequests:
    """Sends requests as a client does. `connections` are the client's own, and `headers` go with each request."""

    def __init__(
        self,
        client: AsyncOpenAI,
        connections: httpx2.AsyncClient,
        headers: Mapping[str, Any],
        connect_seconds: float,
    ) -> None:
        self._client = client
        self._connections = connections
        self._given = headers
        self._headers: CIMultiDict[str] | None = None
        self._urls: dict[str, URL] = {}
        self._transport: AiohttpTransport | None = None
        self._proxy: dict[str, Any] = {}
        self._credentials: dict[str, str] = {}
        self._connect_seconds: Final = connect_seconds
        self._patient = ClientTimeout(sock_connect=connect_seconds)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def send(
        self,
        method: str,
        path: str,
        content: bytes | AsyncIterable[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        silence_seconds: float | None = None,
    ) -> Answer:
        """Return the answer, of which nothing is read yet; close it. `silence_seconds` is how long it may be silent.

        Raises:
            APIStatusError: the status is none of success; the answer is read as far as it comes, 16 KiB of it at most, and closed.
            APIConnectionError: the way to the endpoint is broken.
        """
        timeout = self._patient
        if silence_seconds is not None:
            timeout = ClientTimeout(
                sock_connect=self._connect_seconds, sock_read=silence_seconds, connect=silence_seconds
            )
        try:
            with map_aiohttp_exceptions():
                response = await self._find_session().request(
                    method,
                    self._url(path),
                    data=content,
                    headers=await self._create_headers(headers),
                    allow_redirects=False,  # the prompt and a key in a header of its own would go wherever it says
                    auto_decompress=False,
                    timeout=timeout,
                    **self._proxy,
                )
            answer = Answer(response)
            if 200 <= response.status < 300:
                return answer
            said = await _read_error(answer)
        except Exception as error:
            raise APIConnectionError(request=self._describe(method, path)) from error
        raise _status_error(response, said, self._describe(method, path))

    def _find_session(self) -> ClientSession:
        """Return the session of the connections, through the proxy that the environment names if it names one."""
        if self._transport is None:
            # As the connections look for it at each of their own requests.
            transport = self._connections._transport_for_url(self._client.base_url)  # noqa: SLF001
            assert isinstance(transport, AiohttpTransport)
            self._transport = transport
            if (proxy := transport.proxy) is not None:
                credentials = {"Proxy-Authorization": encode_basic_auth(*proxy.auth)} if proxy.auth else {}
                self._proxy = {"proxy": str(proxy.url), "proxy_headers": {**proxy.headers, **credentials}}
                # The session sends those headers before a tunnel alone; a plain request goes to the proxy itself.
                if self._client.base_url.scheme == "http":
                    self._credentials = credentials
        if not isinstance(self._transport.client, ClientSession):
            self._transport.client = self._transport.get_client()
        return self._transport.client

    def _url(self, path: str) -> URL:
        if path not in self._urls:
            base = self._client.base_url  # ends with a slash
            self._urls[path] = URL(str(base.copy_with(raw_path=base.raw_path + path.lstrip("/").encode())))
        return self._urls[path]

    def _describe(self, method: str, path: str) -> httpx2.Request:
        """Return a request as the client's errors name it."""
        return httpx2.Request(method, str(self._url(path)))

    async def _create_headers(self, of_request: Mapping[str, str] | None) -> CIMultiDict[str]:
        if self._headers is None:
            # In a thread: the client looks at the machine that it names in its headers.
            read = await asyncio.to_thread(self._read_headers)
            self._headers = CIMultiDict([*read.items(), *self._credentials.items()])
        if not of_request:
            return self._headers
        headers = self._headers.copy()
        headers.update(of_request)
        return headers

    def _read_headers(self) -> httpx2.Headers:
        headers = self._connections.headers.copy()
        for given in (self._client.auth_headers, self._client.default_headers, self._given):
            for name, value in given.items():
                headers.pop(name, None)
                if not isinstance(value, Omit):
                    headers[name] = value
        return headers


async def _read_error(answer: Answer) -> bytes:
    """Return the beginning of what an endpoint says about an error, as far as it comes, and close the answer."""
    said = b""
    with suppress(httpx2.HTTPError):  # the status is known
        try:
            async for chunk in answer.chunks():
                said += chunk
                if len(said) >= _MAX_ERROR_BYTES:
                    break
        finally:
            await answer.aclose()
    return said[:_MAX_ERROR_BYTES]


def _status_error(response: ClientResponse, content: bytes, request: httpx2.Request) -> APIStatusError:
    """Return the client's error for an answer that was read."""
    headers = [each for each in response.raw_headers if each[0].lower() not in _OF_THE_WIRE]
    as_client_has_it = httpx2.Response(response.status, headers=headers, content=content, request=request)
    # Never as the charset of its headers: Python knows some that are none, such as bz2.
    text = content.decode("utf-8", "replace").strip()
    said: object = text
    with suppress(ValueError, RecursionError):
        said = json.loads(text)
    error = said.get("error", said) if isinstance(said, dict) else said
    return APIStatusError(f"Error code: {response.status}", response=as_client_has_it, body=error)
