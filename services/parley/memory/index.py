"""The index of remembered debates: one collection of vectors for each embedding model, filled in the background."""

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeVar

from parley.memory.debate import KIND, key_in_store, meaning_of, point_id
from parley.memory.filling import Filler, ModelGoneError, point
from parley.memory.meaning import Meaning, Meanings
from parley.runtime.backoff import Backoff
from parley.runtime.errors import ParleyError
from parley.runtime.logs import get_logger
from parley.runtime.unreadable import skip_unreadable
from parley.storage.ports import (
    Document,
    Documents,
    Near,
    StorageError,
    VectorCollection,
    Vectors,
    VectorsLostError,
)

__all__ = ["DebateIndex"]

T = TypeVar("T")

_PATIENCE: Final = 2.0
"""Seconds that a search waits for an index that is being made, before it uses what is there."""
_AFTER_TROUBLE: Final = Backoff(first=1.0, maximum=60.0, jitter=0.2)

_logger = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class _Index:
    """A model's collection; `whole` is set once nothing is known to be missing from it."""

    collection: VectorCollection
    model: str
    whole: asyncio.Event = field(default_factory=asyncio.Event)


class DebateIndex:
    """The debates by meaning. Made again from the documents wherever it holds fewer than they do, while `run` runs."""

    def __init__(self, documents: Documents, vectors: Vectors, meanings: Meanings) -> None:
        self._vectors = vectors
        self._filler = Filler(documents, vectors, meanings)
        self._known: dict[str, _Index] = {}
        self._preparing = asyncio.Lock()
        self._to_fill: asyncio.Queue[_Index] = asyncio.Queue()

    async def run(self) -> None:
        """Fill one index after the other; one that a service or a store away keeps from it is tried again."""
        while True:
            await self._fill(await self._to_fill.get())

    async def add(self, document: Document, meaning: Meaning) -> None:
        """Add a debate; one that is there already is written again."""
        points = [point(document, meaning)]
        await self._in_collection(meaning, lambda index: self._vectors.upsert(index.collection, points))

    async def remove(self, document: Document) -> None:
        """Remove a debate; nothing happens where it is not there. One whose vector cannot be read is in no index."""
        ids = [point_id(document.key)]
        for meaning in skip_unreadable([document], meaning_of, KIND, key_in_store):
            await self._in_collection(meaning, lambda index: self._vectors.delete(index.collection, ids))

    async def nearest(
        self, meaning: Meaning, *, tenant: str, domain: str, excluded: Sequence[str], limit: int, floor: float
    ) -> Sequence[Near]:
        """Return the nearest debates of a tenant, best first; each one's `key` is among its fields.

        An index that is being made is waited for a little; then what is there is searched.
        """
        where = {"tenant": tenant} | ({"domain": domain} if domain else {})

        async def search(index: _Index) -> Sequence[Near]:
            try:
                async with asyncio.timeout(_PATIENCE):
                    await index.whole.wait()
            except TimeoutError:
                _logger.info(
                    "memory's index is being made; what is there is searched", index=index.collection.name
                )
            return await self._vectors.search(
                index.collection,
                meaning.vector,
                where=where,
                without=[point_id(key) for key in excluded],
                limit=limit,
                floor=floor,
            )

        return await self._in_collection(meaning, search)

    async def _in_collection(self, meaning: Meaning, work: Callable[[_Index], Awaitable[T]]) -> T:
        """Do the work in the model's collection; where that was damaged, once more in the new one."""
        index = await self._index(meaning)
        try:
            return await work(index)
        except VectorsLostError:
            self._forget(index)
            return await work(await self._index(meaning))

    async def _index(self, meaning: Meaning) -> _Index:
        """Return the model's index. When it is first asked for it is made, and then filled beside."""
        async with self._preparing:
            index = self._known.get(meaning.model)
            if index is None:
                name = "debates-" + re.sub(r"[^A-Za-z0-9._-]", "-", meaning.model)
                collection = VectorCollection(name, len(meaning.vector), ("tenant", "domain"))
                await self._vectors.prepare(collection)
                index = self._known[meaning.model] = _Index(collection, meaning.model)
                self._to_fill.put_nowait(index)
            return index

    def _forget(self, index: _Index) -> None:
        if self._known.get(index.model) is index:
            del self._known[index.model]

    async def _fill(self, index: _Index) -> None:
        pauses = _AFTER_TROUBLE.pauses()
        while True:
            try:
                await self._filler.fill(index.collection, index.model)
            except ModelGoneError:
                _logger.info(
                    "the embedding model has changed; its index is left", index=index.collection.name
                )
                self._forget(index)  # if the model comes back, its index is looked at again
            except (StorageError, ParleyError) as error:
                pause = next(pauses)
                _logger.warning("memory's index waits to be made", error=str(error), again_in_seconds=pause)
                await asyncio.sleep(pause)
                continue
            index.whole.set()
            return
