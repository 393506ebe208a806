"""Embeddings for all callers: equal texts are embedded once, waiting texts share a batch, recent vectors are cached."""

import asyncio
import hashlib
from collections import OrderedDict
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final

from msgspec import Struct

from parley.convergence.embedder import Embedder
from parley.convergence.vectors import Vector

_BATCH: Final = 32


class _PendingText(Struct):
    """A text that waits to be embedded, and its number of callers."""

    text: str
    vector: asyncio.Future[Vector]
    callers: int = 0


class AskedText(Struct, frozen=True):
    """A text that one caller has asked for."""

    _found: Vector | _PendingText

    async def wait(self) -> Vector:
        """Return its vector; errors as with `Embeddings.vectors`."""
        if not isinstance(self._found, _PendingText):
            return self._found
        # Shielded: other callers may wait for the same text.
        return await asyncio.shield(self._found.vector)

    def leave(self) -> None:
        """Wait for it no more; a text without callers is not embedded."""
        if isinstance(self._found, _PendingText):
            self._found.callers -= 1


class Embeddings:
    """The vectors of texts.

    A batch is what waits when a worker is free, up to 32 texts. No text waits for a full batch: it fills while the
    one before is embedded.
    """

    def __init__(self, embedder: Embedder, *, cache: int) -> None:
        self.name: Final = embedder.name
        self._embedder = embedder
        self._cache_size = cache
        self._cache: OrderedDict[bytes, Vector] = OrderedDict()
        self._pending: dict[bytes, _PendingText] = {}
        self._queue: asyncio.Queue[bytes] = asyncio.Queue()

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Return the vectors of texts, in their order. Raise ParleyError: UNAVAILABLE `EMBEDDINGS_UNAVAILABLE`."""
        asked = [self.ask(text) for text in texts]
        try:
            return [await each.wait() for each in asked]
        finally:
            for each in asked:
                each.leave()

    def ask(self, text: str) -> AskedText:
        """Ask for the vector of a text without waiting for it. Whoever asks leaves in the end."""
        key = hashlib.blake2b(text.encode(), digest_size=16).digest()
        if (vector := self._cache.get(key)) is not None:
            self._cache.move_to_end(key)
            return AskedText(vector)
        if (pending := self._pending.get(key)) is None:
            future: asyncio.Future[Vector] = asyncio.get_running_loop().create_future()
            # All its callers may be gone when it fails; then no caller gets the error.
            future.add_done_callback(lambda done: done.cancelled() or done.exception())
            pending = self._pending[key] = _PendingText(text, future)
            self._queue.put_nowait(key)
        pending.callers += 1
        return AskedText(pending)

    async def run_worker(self) -> None:
        """Embed waiting texts, forever."""
        while True:
            batch = await self._take_batch()
            try:
                vectors = await self._embedder.embed([self._pending[key].text for key in batch])
            except Exception as error:  # noqa: BLE001 (the callers of these texts get it)
                for key in batch:
                    self._pending.pop(key).vector.set_exception(error)
                continue
            for key, vector in zip(batch, vectors, strict=True):
                self._store(key, vector)
                self._pending.pop(key).vector.set_result(vector)

    def cancel_pending(self) -> None:
        """Cancel the waiting texts; no worker runs any more."""
        for wanted in self._pending.values():
            wanted.vector.cancel()

    async def _take_batch(self) -> list[bytes]:
        """Wait for texts and take up to 32, without those whose callers are all gone."""
        batch: list[bytes] = []
        while not batch or (len(batch) < _BATCH and not self._queue.empty()):
            key = await self._queue.get()
            if self._pending[key].callers:
                batch.append(key)
            else:
                self._pending.pop(key).vector.cancel()
        return batch

    def _store(self, key: bytes, vector: Vector) -> None:
        if self._cache_size:
            self._cache[key] = vector
            if len(self._cache) > self._cache_size:
                self._cache.popitem(last=False)


@asynccontextmanager
async def open_embeddings(
    embedder: Embedder, *, cache: int = 8192, workers: int = 1
) -> AsyncIterator[Embeddings]:
    """Open the embeddings of an embedder with `workers` concurrent workers; close it at the end."""
    shared = Embeddings(embedder, cache=cache)
    working = [asyncio.create_task(shared.run_worker()) for _ in range(workers)]
    try:
        yield shared
    finally:
        for task in working:
            task.cancel()
        await asyncio.gather(*working, return_exceptions=True)
        shared.cancel_pending()
        await embedder.close()
