"""Decompress answers of HTTP endpoints in small pieces and within bounds: a megabyte of gzip may be a gigabyte of text."""

import asyncio
import zlib
from collections.abc import AsyncGenerator, AsyncIterable, AsyncIterator, Mapping
from typing import Final

import httpx2

ACCEPT_GZIP: Final = {"Accept-Encoding": "gzip"}
"""The header for the encodings that this module decompresses."""
_ENCODING: Final = "content-encoding"
_PIECE_BYTES: Final = 16 * 1024


async def unpack(response: httpx2.Response) -> None:
    """Decompress a gzip answer in pieces of 16 KiB, with a turn for other tasks after each; an event hook of a client.

    An answer in another encoding is not decompressed.
    """
    packed = is_gzip(response.headers)
    response.headers.pop(_ENCODING, None)
    if packed and isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _UnpackedStream(response.stream)


def is_gzip(headers: Mapping[str, str]) -> bool:
    """Return whether an answer's body is gzip by its headers."""
    return headers.get(_ENCODING, "").strip().lower() in {"gzip", "x-gzip"}


async def unpack_gzip(packed: AsyncIterable[bytes]) -> AsyncGenerator[bytes, None]:
    """Yield what was packed, in pieces of 16 KiB at most, with a turn for other tasks after each. Raise DecodingError."""
    unpacker = zlib.decompressobj(zlib.MAX_WBITS | 16)
    async for chunk in packed:
        left = chunk
        while left and not unpacker.eof:
            try:
                piece = unpacker.decompress(left, _PIECE_BYTES)
            except zlib.error as error:
                raise httpx2.DecodingError(f"the answer is not gzip: {error}") from None
            left = unpacker.unconsumed_tail
            if piece:
                yield piece
                await asyncio.sleep(0)


def truncate(response: httpx2.Response, after: int) -> None:
    """End an answer after `after` bytes."""
    if isinstance(response.stream, httpx2.AsyncByteStream):
        response.stream = _TruncatedStream(response.stream, after)


class _TruncatedStream(httpx2.AsyncByteStream):
    def __init__(self, whole: httpx2.AsyncByteStream, size: int) -> None:
        self._whole = whole
        self._size = size

    async def __aiter__(self) -> AsyncIterator[bytes]:
        left = self._size
        async for chunk in self._whole:
            yield chunk[:left]
            left -= len(chunk)
            if left <= 0:
                return

    async def aclose(self) -> None:
        await self._whole.aclose()


class _UnpackedStream(httpx2.AsyncByteStream):
    def __init__(self, packed: httpx2.AsyncByteStream) -> None:
        self._packed = packed

    def __aiter__(self) -> AsyncIterator[bytes]:
        return unpack_gzip(self._packed)

    async def aclose(self) -> None:
        await self._packed.aclose()
