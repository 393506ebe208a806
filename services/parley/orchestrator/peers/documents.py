"""Documents on their way to the gateway: named by digests, and sent if a replica of the gateway does not have them."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Final
from weakref import WeakValueDictionary

import grpc

from parley.orchestrator.model.tasks import held_text_of
from parley.runtime.byte_budget import ByteBudget, Share
from parley.runtime.errors import from_rpc_error
from parley.v1.gateway_pb2 import GenerateRequest

MAX_INLINE_BYTES: Final = 64 * 1024
"""Documents up to this size go with every prompt: to name them would only cost a second call."""
_DOCUMENTS_MISSING: Final = "DOCUMENTS_MISSING"
_UPLOAD_BYTES: Final = 24 * 1024 * 1024
"""Of documents that are sent at a time. Each takes its size three times meanwhile."""


def size_of_documents(request: GenerateRequest) -> int:
    """Return the bytes of the documents that a request names."""
    return sum(len(held_text_of(part).utf8) for part in request.prompt if part.digest)


def fill_in_documents(request: GenerateRequest, *, keep_digests: bool = True) -> None:
    """Set the texts of the documents that a request names. With their digests, the gateway keeps them for other calls."""
    for part in request.prompt:
        if part.digest:
            part.text = held_text_of(part).text
            if not keep_digests:
                part.ClearField("digest")


def with_documents(request: GenerateRequest) -> GenerateRequest:
    """Return a copy of a request with the texts of its documents."""
    whole = GenerateRequest()
    whole.CopyFrom(request)
    fill_in_documents(whole)
    return whole


def is_documents_missing(error: grpc.aio.AioRpcError) -> bool:
    """Return whether the gateway does not have a document that a request named."""
    return (
        error.code() is grpc.StatusCode.FAILED_PRECONDITION
        and from_rpc_error(error).reason == _DOCUMENTS_MISSING
    )


class Uploads:
    """The turns of calls that send documents: one call at a time for the same documents, and a bound on the bytes of all."""

    def __init__(self) -> None:
        """Start with nothing on its way."""
        self._budget = ByteBudget(_UPLOAD_BYTES)
        self._locks: WeakValueDictionary[frozenset[str], asyncio.Lock] = WeakValueDictionary()

    @asynccontextmanager
    async def wait_for_turn(self, request: GenerateRequest) -> AsyncGenerator["Turn", None]:
        """Wait until no other call sends these documents and there is room for them. The turn ends with the block at the latest."""
        names = frozenset(part.digest for part in request.prompt if part.digest)
        lock = self._locks.setdefault(names, asyncio.Lock())
        await lock.acquire()
        try:
            share = await self._budget.take(size_of_documents(request))
        except BaseException:
            lock.release()
            raise
        turn = Turn(lock, share)
        try:
            yield turn
        finally:
            turn.end()


class Turn:
    """The turn of one call."""

    def __init__(self, lock: asyncio.Lock, share: Share) -> None:
        """Start a turn that has the lock and its share of the bytes."""
        self._lock = lock
        self._share = share
        self._is_over = False

    def end(self) -> None:
        """End the turn, so that the next call has its turn. A second call does nothing."""
        if not self._is_over:
            self._is_over = True
            self._share.release()
            self._lock.release()
