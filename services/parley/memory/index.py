"""The index of remembered debates: one vector collection for each embedding model, built in the background."""

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import suppress
from typing import Any, Final, TypeVar

from msgspec import Struct, field

from parley.memory.debate import (
    DEBATES,
    FILL_PROGRESS,
    KIND,
    from_document,
    is_forgetting,
    point_id,
    search_text,
    storage_key,
    stored_embedding,
)
from parley.memory.embedding import Embedding, EmbeddingClient, find_held
from parley.memory.writing import Write
from parley.runtime.backoff import Backoff
from parley.runtime.clock import Clock
from parley.runtime.errors import ParleyError
from parley.runtime.logs import get_logger
from parley.runtime.unreadable import skip_unreadable
from parley.storage.ports import (
    Above,
    Document,
    Documents,
    DuplicateError,
    Fields,
    Neighbor,
    Order,
    Point,
    StorageError,
    VectorCollection,
    Vectors,
    VectorsLostError,
)
from parley.storage.scan import find_by_keys
from parley.v1.memory_pb2 import RecordDebateRequest

T = TypeVar("T")

_PREPARE_SECONDS: Final = 0.25
"""From the first text that is expected until the index is prepared: a debate that begins has sent its first requests by then."""
_MAX_WAIT_SECONDS: Final = 2.0
"""Seconds from its first use on that searches wait for an index under construction; then they use what is there."""
_RETRY_BACKOFF: Final = Backoff(first=1.0, maximum=60.0, jitter=0.2)

_logger = get_logger(__name__)
_PAGE: Final = 500
_EMBED_BATCH: Final = 16
_LOOKED_UP_AT_ONCE: Final = 100


class _Index(Struct, frozen=True):
    """A model's collection; `complete` is set as soon as nothing is known to be missing.

    Attributes:
        waits_until: When searches stop to wait for that, in seconds of the loop's time: it may be far off.
    """

    collection: VectorCollection
    model: str
    waits_until: float
    complete: asyncio.Event = field(default_factory=asyncio.Event)


class DebateIndex:
    """The index of debates; a record's vector is one of its effects.

    While `run` runs, the index is built again from the documents if debates are missing in it.
    """

    def __init__(self, documents: Documents, vectors: Vectors, meanings: EmbeddingClient) -> None:
        self._documents = documents
        self._vectors = vectors
        self._meanings = meanings
        self._filler = Filler(documents, vectors, meanings)
        self._indexes: dict[str, _Index] = {}
        self._preparing = asyncio.Lock()
        self._to_fill: asyncio.Queue[_Index] = asyncio.Queue()

    async def prepare(self, clock: Clock) -> None:
        """Load the model and open its index once a text is expected, while agents write: who waits for the end of a debate waits less."""
        await self._meanings.wait_until_expected()
        await clock.sleep(_PREPARE_SECONDS)
        with suppress(ParleyError, StorageError):  # then that is done when it is needed
            await self._open_index()

    async def _open_index(self) -> None:
        """Open the index of the model that is in use."""
        (meaning,) = await self._meanings.embed("a text")
        await self._get_index(meaning)

    async def run(self) -> None:
        """Fill one index after the other; retry while a service or a store does not answer."""
        while True:
            await self._fill(await self._to_fill.get())

    async def apply(self, tenant: str, record: RecordDebateRequest, write: Write) -> None:
        """Write a debate's vector: that of its document, unless its text was just embedded for that."""
        meaning = find_held(search_text(record.debate)) or await self._find_stored(tenant, record)
        if meaning is not None:
            key = storage_key(tenant, record.debate.debate_id)
            points = [create_point(key, tenant, record.debate.domain, meaning)]
            await write(
                self._run_in_collection(meaning, lambda index: self._vectors.upsert(index.collection, points))
            )

    async def remove(self, tenant: str, record: RecordDebateRequest) -> None:
        """Delete a debate's vector from every index that this process knows, and from that of the model in its document.

        Without a document, and before this process knows an index: from that of the model in use.
        """
        ids = [point_id(storage_key(tenant, record.debate.debate_id))]
        meaning = await self._find_stored(tenant, record)
        if meaning is not None:
            await self._get_index(meaning)
        elif not self._indexes:
            await self._open_index()
        for index in list(self._indexes.values()):
            try:
                await self._vectors.delete(index.collection, ids)
            except VectorsLostError:
                self._forget(index)

    async def _find_stored(self, tenant: str, record: RecordDebateRequest) -> Embedding | None:
        found = await self._documents.get(DEBATES, storage_key(tenant, record.debate.debate_id))
        return next(skip_unreadable([found] if found else [], stored_embedding, KIND), None)

    async def find_nearest(
        self,
        meaning: Embedding,
        *,
        tenant: str,
        domain: str,
        excluded: Sequence[str],
        limit: int,
        floor: float,
    ) -> Sequence[Neighbor]:
        """Return the nearest debates of a tenant, best first; each with its vector, and its `key` among its fields.

        An index that is being made is waited for a little; then what is there is searched.
        """
        where = {"tenant": tenant} | ({"domain": domain} if domain else {})

        async def search(index: _Index) -> Sequence[Neighbor]:
            try:
                async with asyncio.timeout_at(index.waits_until):
                    await index.complete.wait()
            except TimeoutError:
                _logger.debug(
                    "memory's index is being made; what is there is searched", index=index.collection.name
                )
            return await self._vectors.search(
                index.collection,
                meaning.vector.tolist(),
                where=where,
                without=[point_id(key) for key in excluded],
                limit=limit,
                floor=floor,
                with_vectors=True,
            )

        return await self._run_in_collection(meaning, search)

    async def _run_in_collection(self, meaning: Embedding, work: Callable[[_Index], Awaitable[T]]) -> T:
        """Run `work` on the model's collection; if the collection is damaged, once more on the new one."""
        index = await self._get_index(meaning)
        try:
            return await work(index)
        except VectorsLostError:
            self._forget(index)
            return await work(await self._get_index(meaning))

    async def _get_index(self, meaning: Embedding) -> _Index:
        """Return the model's index. The first call creates it; then it is filled in the background."""
        async with self._preparing:
            index = self._indexes.get(meaning.model)
            if index is None:
                name = "debates-" + re.sub(r"[^A-Za-z0-9._-]", "-", meaning.model)
                collection = VectorCollection(name, len(meaning.vector), ("tenant", "domain"))
                await self._vectors.prepare(collection)
                # Asked before this process writes to it: what is lost must not be made up for by what is new.
                is_complete = await self._filler.is_still_complete(collection)
                waits_until = asyncio.get_running_loop().time() + _MAX_WAIT_SECONDS
                index = self._indexes[meaning.model] = _Index(collection, meaning.model, waits_until)
                if is_complete:
                    index.complete.set()  # no search waits while the documents are counted
                self._to_fill.put_nowait(index)
            return index

    def _forget(self, index: _Index) -> None:
        if self._indexes.get(index.model) is index:
            del self._indexes[index.model]

    async def _fill(self, index: _Index) -> None:
        pauses = _RETRY_BACKOFF.pauses()
        while True:
            try:
                await self._filler.fill(index.collection, index.model)
            except ModelChangedError:
                _logger.info(
                    "the embedding model has changed; its index is no longer filled",
                    index=index.collection.name,
                )
                self._forget(index)  # if the model comes back, its index is checked again
            except (StorageError, ParleyError) as error:
                pause = next(pauses)
                _logger.warning(
                    "memory's index cannot be built yet", error=str(error), again_in_seconds=pause
                )
                await asyncio.sleep(pause)
                continue
            index.complete.set()
            return


class ModelChangedError(Exception):
    """The convergence service now uses another model."""


class _Progress(Struct, frozen=True):
    """The last key, in their order, whose debate was written to the index; empty: there is no run to go on with.

    `complete` is how many debates it had when it was last complete; 0: it never was.
    """

    after: str = ""
    complete: int = 0


class Filler:
    """Fills collections that hold fewer debates than there are documents."""

    def __init__(self, documents: Documents, vectors: Vectors, meanings: EmbeddingClient) -> None:
        self._documents = documents
        self._vectors = vectors
        self._meanings = meanings

    async def is_still_complete(self, collection: VectorCollection) -> bool:
        """Return whether the index was complete once and has lost nothing since, as far as its size tells.

        One that has is not complete again before it is filled.
        """
        progress = await self._load_progress(collection)
        if progress.complete <= await self._vectors.count(collection):
            return progress.complete > 0
        await self._save_progress(collection, _Progress())
        return False

    async def fill(self, collection: VectorCollection, model: str) -> None:
        """Write the missing vectors; embed debates of another model again.

        Written vectors are kept: after an error, or in the next process, this continues where it stopped.

        Raises:
            ModelChangedError: the convergence service no longer uses `model`.
            ParleyError: the convergence service does not answer.
            StorageError: a store failed.
        """
        await self._vectors.prepare(collection)
        progress = await self._load_progress(collection)
        held = await self._vectors.count(collection)
        if not progress.after and await self._documents.count(DEBATES, {}) <= held:
            if held != progress.complete:
                await self._save_progress(collection, _Progress(complete=held))
            return
        _logger.info("memory's index is being built", index=collection.name, holds=held)
        await self._write_pages(collection, model, progress.after)
        if progress.after and await self._is_short(collection):
            await self._write_pages(collection, model, "")  # what was written before was lost since
        complete = await self._vectors.count(collection)
        await self._save_progress(collection, _Progress(complete=complete))
        _logger.info("memory's index is complete", index=collection.name)

    async def _is_short(self, collection: VectorCollection) -> bool:
        # The vectors first: a debate that is recorded meanwhile must not make up for one that is missing.
        held = await self._vectors.count(collection)
        return held < await self._documents.count(DEBATES, {})

    async def _write_pages(self, collection: VectorCollection, model: str, after: str) -> None:
        async for page in self._read_pages(after):
            await self._write(collection, model, page)
            await self._save_progress(collection, _Progress(page[-1].key))

    async def _write(self, collection: VectorCollection, model: str, page: Sequence[Document]) -> None:
        # On a thread: a page of records takes a tenth of a second.
        readable = await asyncio.to_thread(lambda: list(skip_unreadable(page, _require_readable, KIND)))
        for start in range(0, len(readable), _EMBED_BATCH):
            part = readable[start : start + _EMBED_BATCH]
            meanings = await self._embed(part, model, collection.size)
            points = [_to_point(each, meaning) for each, meaning in zip(part, meanings, strict=True)]
            await self._vectors.upsert(collection, points)
        await self._delete_forgotten(collection, [each.key for each in readable])

    async def _delete_forgotten(self, collection: VectorCollection, keys: Sequence[str]) -> None:
        """Delete the vectors of debates that were forgotten after they were read and before their vectors were written."""
        for start in range(0, len(keys), _LOOKED_UP_AT_ONCE):
            part = keys[start : start + _LOOKED_UP_AT_ONCE]
            found = await find_by_keys(self._documents, DEBATES, part)
            kept = {each.key for each in found if not is_forgetting(each)}
            await self._vectors.delete(collection, [point_id(key) for key in part if key not in kept])

    async def _load_progress(self, collection: VectorCollection) -> _Progress:
        found = await self._documents.get(FILL_PROGRESS, collection.name)
        fields: Any = found.fields if found is not None else {}
        return _Progress(str(fields.get("after", "")), int(fields.get("complete", 0)))

    async def _save_progress(self, collection: VectorCollection, progress: _Progress) -> None:
        fields: Fields = {"after": progress.after, "complete": progress.complete}
        if not await self._documents.update(FILL_PROGRESS, collection.name, fields):
            try:
                await self._documents.insert(FILL_PROGRESS, collection.name, fields)
            except DuplicateError:  # another replica was faster; its vectors are in the index too
                return

    async def _read_pages(self, after: str) -> AsyncIterator[Sequence[Document]]:
        while page := await self._documents.find(
            DEBATES, {"key": Above(after)}, order=(Order("key"),), limit=_PAGE
        ):
            yield page
            after = page[-1].key

    async def _embed(self, documents: Sequence[Document], model: str, size: int) -> list[Embedding]:
        kept = {each.key: stored_embedding(each) for each in documents}
        others = [
            each for each in documents if (kept[each.key].model, len(kept[each.key].vector)) != (model, size)
        ]
        if others:
            made = await self._meanings.embed(*(search_text(from_document(each).debate) for each in others))
            if any((each.model, len(each.vector)) != (model, size) for each in made):
                raise ModelChangedError(model)
            kept |= {each.key: meaning for each, meaning in zip(others, made, strict=True)}
        return [kept[each.key] for each in documents]


def create_point(key: str, tenant: str, domain: str, meaning: Embedding) -> Point:
    """Return a debate's vector as a point of the index."""
    return Point(point_id(key), meaning.vector.tolist(), {"key": key, "tenant": tenant, "domain": domain})


def _to_point(document: Document, meaning: Embedding) -> Point:
    tenant, domain = (str(document.fields[name]) for name in ("tenant", "domain"))
    return create_point(document.key, tenant, domain, meaning)


def _require_readable(document: Document) -> Document:
    """Return the document if all of it can be read, else raise the error."""
    stored_embedding(document)
    from_document(document)
    _ = [document.fields[name] for name in ("tenant", "domain")]
    return document
