"""The index of remembered debates: one collection of vectors for each embedding model."""

import asyncio
import re
from collections.abc import AsyncIterator, Sequence
from typing import Final

from parley.memory.debate import DEBATES, KIND, from_document, key_in_store, meaning_of, point_id
from parley.memory.meaning import Meaning, Meanings
from parley.runtime.unreadable import each_readable
from parley.storage.ports import Above, Document, Documents, Near, Order, Point, VectorCollection, Vectors

__all__ = ["DebateIndex"]

_PAGE: Final = 500
_EMBEDDED_AT_ONCE: Final = 16


class DebateIndex:
    """The debates by meaning. Made again from the documents wherever it holds fewer than they do."""

    def __init__(self, documents: Documents, vectors: Vectors, meanings: Meanings) -> None:
        self._documents = documents
        self._vectors = vectors
        self._meanings = meanings
        self._ready: dict[str, VectorCollection] = {}
        self._preparing = asyncio.Lock()

    async def add(self, document: Document, meaning: Meaning) -> None:
        """Add a debate; one that is there already is written again."""
        collection = await self._collection(meaning)
        await self._vectors.upsert(collection, [_point(document, meaning)])

    async def remove(self, document: Document) -> None:
        """Remove a debate; nothing happens where it is not there. One whose vector cannot be read is in no index."""
        for each in each_readable([document], meaning_of, KIND, key_in_store):
            collection = await self._collection(each)
            await self._vectors.delete(collection, [point_id(document.key)])

    async def nearest(
        self, meaning: Meaning, *, tenant: str, domain: str, excluded: Sequence[str], limit: int, floor: float
    ) -> Sequence[Near]:
        """Return the nearest debates of a tenant, best first; each one's `key` is among its fields."""
        where = {"tenant": tenant} | ({"domain": domain} if domain else {})
        return await self._vectors.search(
            await self._collection(meaning),
            meaning.vector,
            where=where,
            without=[point_id(key) for key in excluded],
            limit=limit,
            floor=floor,
        )

    async def rebuild(self, collection: VectorCollection, model: str) -> None:
        """Write every debate's vector; debates that another model embedded are embedded anew."""
        async for page in self._pages():
            points = []
            readable = list(each_readable(page, _checked, KIND, key_in_store))
            for start in range(0, len(readable), _EMBEDDED_AT_ONCE):
                part = readable[start : start + _EMBEDDED_AT_ONCE]
                meanings = await self._meanings_of(part, model, collection.size)
                points += [
                    _point(document, meaning) for document, meaning in zip(part, meanings, strict=True)
                ]
            await self._vectors.upsert(collection, points)

    async def _collection(self, meaning: Meaning) -> VectorCollection:
        """Return the model's collection, made and filled when it is first asked for."""
        if (ready := self._ready.get(meaning.model)) is not None:
            return ready
        async with self._preparing:
            if (ready := self._ready.get(meaning.model)) is not None:
                return ready
            name = "debates-" + re.sub(r"[^A-Za-z0-9._-]", "-", meaning.model)
            collection = VectorCollection(name, len(meaning.vector), ("tenant", "domain"))
            await self._vectors.prepare(collection)
            if await self._vectors.count(collection) < await self._remembered():
                await self.rebuild(collection, meaning.model)
            self._ready[meaning.model] = collection
            return collection

    async def _remembered(self) -> int:
        return sum([len(page) async for page in self._pages()])

    async def _pages(self) -> AsyncIterator[Sequence[Document]]:
        after = ""
        while page := await self._documents.find(
            DEBATES, {"key": Above(after)}, order=(Order("key"),), limit=_PAGE
        ):
            yield page
            after = str(page[-1].fields["key"])

    async def _meanings_of(self, documents: Sequence[Document], model: str, size: int) -> list[Meaning]:
        kept = {each.key: meaning_of(each) for each in documents}
        others = [
            each for each in documents if (kept[each.key].model, len(kept[each.key].vector)) != (model, size)
        ]
        if others:
            made = await self._meanings.of(*(from_document(each).text for each in others))
            kept |= {each.key: meaning for each, meaning in zip(others, made, strict=True)}
        return [kept[each.key] for each in documents]


def _checked(document: Document) -> Document:
    """Return a document that all can be read of. Raises what hinders that."""
    meaning_of(document)
    from_document(document)
    _ = [document.fields[name] for name in ("key", "tenant", "domain")]
    return document


def _point(document: Document, meaning: Meaning) -> Point:
    fields = {name: str(document.fields[name]) for name in ("key", "tenant", "domain")}
    return Point(point_id(document.key), meaning.vector, fields)
