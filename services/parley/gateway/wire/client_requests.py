"""Requests by an `openai` client: its address, headers, connections and errors, without its own way of building each one.

The client builds a request from pydantic models, merges its headers and its address anew and wraps the answer in a stream of
its own: a third of what a short call takes, and the same each time. So headers and addresses are taken from it once.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from contextlib import suppress
from typing import Any, Final

import httpx2

from parley.gateway.wire.openai_parts import APIConnectionError, APIStatusError, AsyncOpenAI, Omit


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
        self._headers: httpx2.Headers | None = None
        self._urls: dict[str, httpx2.URL] = {}
        self._connect_seconds: Final = connect_seconds

    async def aclose(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def send(
        self,
        method: str,
        path: str,
        content: bytes | AsyncIterator[bytes] | None = None,
        headers: Mapping[str, str] | None = None,
        *,
        silence_seconds: float | None = None,
    ) -> httpx2.Response:
        """Return the answer, of which nothing is read yet; close it. `silence_seconds` is how long it may be silent.

        Raises:
            APIStatusError: the status is none of success; the answer is read and closed.
            APIConnectionError: the way to the endpoint is broken.
        """
        request = httpx2.Request(
            method,
            self._url(path),
            headers=await self._create_headers(headers or {}),
            content=content,
            extensions={
                "timeout": {
                    "connect": self._connect_seconds,
                    "read": silence_seconds,
                    "pool": silence_seconds,
                }
            },
        )
        try:
            response = await self._connections.send(request, stream=True)
            if response.is_success:
                return response
            try:
                await response.aread()
            finally:
                await response.aclose()
        except Exception as error:
            raise APIConnectionError(request=request) from error
        raise _status_error(response)

    def _url(self, path: str) -> httpx2.URL:
        if path not in self._urls:
            base = self._client.base_url  # ends with a slash
            self._urls[path] = base.copy_with(raw_path=base.raw_path + path.lstrip("/").encode())
        return self._urls[path]

    async def _create_headers(self, of_request: Mapping[str, str]) -> httpx2.Headers:
        if self._headers is None:
            # In a thread: the client looks at the machine that it names in its headers.
            self._headers = await asyncio.to_thread(self._read_headers)
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


def _status_error(response: httpx2.Response) -> APIStatusError:
    """Return the client's error for an answer that was read."""
    said: object = response.text.strip()
    with suppress(ValueError, RecursionError):
        said = json.loads(str(said))
    error = said.get("error", said) if isinstance(said, dict) else said
    return APIStatusError(f"Error code: {response.status_code}", response=response, body=error)
