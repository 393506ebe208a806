"""The guarded fetcher: reads one page of the web for a debate, from hosts that may be reached, within bounds of size and time."""

import asyncio
import zlib
from contextlib import suppress
from typing import Final

import aiohttp
from msgspec import Struct, field
from yarl import URL

from parley.orchestrator.outgoing.guard import Guard, describe_failure
from parley.orchestrator.outgoing.reach import Reach
from parley.orchestrator.outgoing.resolving import Resolve, resolve_host
from parley.orchestrator.outgoing.web_address import AddressError, parse_address
from parley.orchestrator.research.errors import FetchError

_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_MAX_REDIRECTS: Final = 5
_CHUNK_BYTES: Final = 64 * 1024
_TYPES: Final = frozenset(
    {
        "application/atom+xml",
        "application/feed+json",
        "application/json",
        "application/rss+xml",
        "application/xhtml+xml",
        "application/xml",
        "text/html",
        "text/plain",
        "text/xml",
    }
)
_HEADERS: Final = {
    "Accept": "text/html, text/plain, application/xml;q=0.9, application/json;q=0.9, */*;q=0.1",
    "Accept-Encoding": "gzip",
    "User-Agent": "parley",
}


class Page(Struct, frozen=True):
    """A page as it was read.

    Attributes:
        url: Its address, after redirects.
        content_type: Its media type, in lower case, without parameters.
        charset: The character set that the server names; empty if it names none.
        body: Its bytes, decompressed.
    """

    url: str
    content_type: str
    charset: str
    body: bytes


class Fetcher(Struct, frozen=True):
    """Reads pages.

    Each address, also one that a page redirects to, goes through the guard.

    Attributes:
        reach: What may be reached.
        seconds: How long a page may take, with all its redirects.
        max_bytes: How large a page may be, compressed and decompressed.
        max_redirects: How many redirects are followed.
        resolve: What finds the addresses of a host.
    """

    reach: Reach = field(default_factory=Reach)
    seconds: float = 10.0
    max_bytes: int = 2 * 1024 * 1024
    max_redirects: int = _MAX_REDIRECTS
    resolve: Resolve = resolve_host

    async def fetch(self, url: str) -> Page:
        """Return the page at a URL.

        Raises:
            FetchError: it cannot be read, or may not be.
        """
        try:
            async with asyncio.timeout(self.seconds):
                return await self._follow(parse_address(url))
        except TimeoutError:
            raise FetchError(f"it did not answer within {self.seconds:g} s") from None
        except AddressError as error:
            raise FetchError(str(error)) from None
        except (aiohttp.ClientError, OSError, ValueError) as error:
            raise FetchError(f"it could not be read: {describe_failure(error)}") from error

    async def _follow(self, url: URL) -> Page:
        for _ in range(self.max_redirects + 1):
            found = await self._get(url)
            if isinstance(found, Page):
                return found
            url = found
        raise FetchError(f"it redirects more than {self.max_redirects} times")

    async def _get(self, url: URL) -> Page | URL:
        """Return the page at a URL, or where it redirects to."""
        guard = Guard(self.reach, self.resolve)
        async with guard.request("GET", url, headers=_HEADERS, seconds=self.seconds) as response:
            if response.status in _REDIRECTS:
                return _follow_redirect(url, response.headers.get("Location", ""))
            if response.status != 200:
                raise FetchError(f"it answered with status {response.status}")
            if response.content_type.lower() not in _TYPES:
                raise FetchError(f"it is no text, HTML, XML or JSON but {response.content_type[:80]!r}")
            body = await self._read(response)
            return Page(str(url), response.content_type.lower(), _charset_of(response), body)

    async def _read(self, response: aiohttp.ClientResponse) -> bytes:
        encoding = response.headers.get("Content-Encoding", "identity").strip().lower()
        if encoding not in {"identity", "", "gzip", "x-gzip"}:
            raise FetchError(f"its encoding {encoding[:40]!r} is not read")
        inflated = zlib.decompressobj(16 + zlib.MAX_WBITS) if "gzip" in encoding else None
        body, read = bytearray(), 0
        async for chunk in response.content.iter_chunked(_CHUNK_BYTES):
            read += len(chunk)
            body += chunk if inflated is None else self._inflate(inflated, chunk, len(body))
            if max(read, len(body)) > self.max_bytes:
                raise FetchError(f"it is larger than {self.max_bytes} bytes")
        if inflated is not None and not inflated.eof:
            raise FetchError("its compressed text is cut off")
        return bytes(body)

    def _inflate(self, inflated: "zlib._Decompress", chunk: bytes, size: int) -> bytes:
        """Return at most one byte more than may follow: a small chunk can stand for gigabytes."""
        try:
            return inflated.decompress(chunk, self.max_bytes - size + 1)
        except zlib.error:
            raise FetchError("its compressed text is broken") from None


def _follow_redirect(url: URL, location: str) -> URL:
    if not location:
        raise FetchError("it redirects to nowhere")
    return url.join(parse_address(location)).with_fragment(None)


def _charset_of(response: aiohttp.ClientResponse) -> str:
    charset = ""
    with suppress(LookupError, ValueError):
        charset = response.charset or ""
    return charset.lower()[:40]
