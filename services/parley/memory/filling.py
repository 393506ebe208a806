"""Making an index again from the documents, from where it was left the last time."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

from parley.memory.debate import (
    DEBATES,
    FILLINGS,
    KIND,
    from_document,
    key_in_store,
    meaning_of,
    point_id,
)
from parley.memory.meaning import Meaning, Meanings
from parley.runtime.logs import get_logger
from parley.runtime.unreadable import skip_unreadable
from parley.storage.ports import (
    Above,
    Document,
    Documents,
    DuplicateError,
    Fields,
    Order,
    Point,
    VectorCollection,
    Vectors,
)

__all__ = ["Filler", "ModelGoneError", "point"]

_PAGE: Final = 500
_EMBEDDED_AT_ONCE: Final = 16

_logger = get_logger(__name__)


class ModelGoneError(Exception):
    """The convergence service embeds with another model now."""


@dataclass(frozen=True, slots=True)
class _Progress:
    """Up to which key, in their order, debates are in the index, and how many it held then at least."""

    after: str = ""
    written: int = 0


class Filler:
    """Fills collections that hold fewer debates than there are documents."""

    def __init__(self, documents: Documents, vectors: Vectors, meanings: Meanings) -> None:
        self._documents = documents
        self._vectors = vectors
        self._meanings = meanings

    async def fill(self, collection: VectorCollection, model: str) -> None:
        """Write the vectors that are missing; debates that another model embedded are embedded anew.

        What is written is kept: after an error, or in the next process, this goes on where it was left.

        Raises:
            ModelGoneError: what is to be embedded anew is not embedded by `model` any more.
            ParleyError: the convergence service does not answer.
            StorageError: a store failed.
        """
        await self._vectors.prepare(collection)
        progress = await self._progress(collection)
        held = await self._vectors.count(collection)
        if held < progress.written:  # the index was lost since
            progress = _Progress()
        if not progress.after and held >= await self._remembered():
            return
        _logger.info("memory's index is being made", index=collection.name, holds=held)
        async for page in self._pages(progress.after):
            written = await self._write(collection, model, page)
            progress = _Progress(str(page[-1].fields["key"]), progress.written + written)
            await self._keep(collection, progress)
        await self._keep(collection, _Progress())
        _logger.info("memory's index is whole", index=collection.name)

    async def _write(self, collection: VectorCollection, model: str, page: Sequence[Document]) -> int:
        readable = list(skip_unreadable(page, _checked, KIND, key_in_store))
        for start in range(0, len(readable), _EMBEDDED_AT_ONCE):
            part = readable[start : start + _EMBEDDED_AT_ONCE]
            meanings = await self._meanings_of(part, model, collection.size)
            points = [point(document, meaning) for document, meaning in zip(part, meanings, strict=True)]
            await self._vectors.upsert(collection, points)
        return len(readable)

    async def _progress(self, collection: VectorCollection) -> _Progress:
        found = await self._documents.get(FILLINGS, collection.name)
        fields: Any = found.fields if found is not None else {}
        return _Progress(str(fields.get("after", "")), int(fields.get("written", 0)))

    async def _keep(self, collection: VectorCollection, progress: _Progress) -> None:
        fields: Fields = {"after": progress.after, "written": progress.written}
        if not await self._documents.update(FILLINGS, collection.name, fields):
            try:
                await self._documents.insert(FILLINGS, collection.name, fields)
            except DuplicateError:  # another replica was faster; what it has written is in the index too
                return

    async def _remembered(self) -> int:
        return sum([len(page) async for page in self._pages("")])

    async def _pages(self, after: str) -> AsyncIterator[Sequence[Document]]:
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
            if any((each.model, len(each.vector)) != (model, size) for each in made):
                raise ModelGoneError(model)
            kept |= {each.key: meaning for each, meaning in zip(others, made, strict=True)}
        return [kept[each.key] for each in documents]


def point(document: Document, meaning: Meaning) -> Point:
    """Return a debate's vector as it stands in the index."""
    fields = {name: str(document.fields[name]) for name in ("key", "tenant", "domain")}
    return Point(point_id(document.key), meaning.vector, fields)


def _checked(document: Document) -> Document:
    """Return a document that all can be read of. Raises what hinders that."""
    meaning_of(document)
    from_document(document)
    _ = [document.fields[name] for name in ("key", "tenant", "domain")]
    return document
