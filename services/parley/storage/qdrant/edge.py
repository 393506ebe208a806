"""Vectors in this process: Qdrant's own engine, one shard a collection, on a thread of its own.

Its Python binding keeps the interpreter's lock through every call. That decides two things here: searches are exact
scans, which take 0.3 ms for each 1,000 vectors of 384 numbers that they look at, and `optimize`, which would build an
index, is never called, since it would stop the process for a second or more per 1,000 vectors.
"""

import asyncio
import shutil
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar
from uuid import UUID

from qdrant_edge import (
    CountRequest,
    Distance,
    EdgeConfig,
    EdgeShard,
    EdgeVectorParams,
    FieldCondition,
    Filter,
    HasIdCondition,
    MatchValue,
    PayloadSchemaType,
    Query,
    SearchRequest,
    UpdateOperation,
)
from qdrant_edge import Point as EdgePoint

from parley.storage.checks import check_vector
from parley.storage.folder import FolderLock
from parley.storage.ports import Near, Point, StorageError, StoreUnavailableError, VectorCollection

__all__ = ["EdgeVectors", "open_edge"]

T = TypeVar("T")


class EdgeVectors:
    """Collections as folders of one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shards: dict[str, EdgeShard] = {}
        self._sizes: dict[str, int] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="vectors")

    async def prepare(self, collection: VectorCollection) -> None:
        """Make the collection where it is missing."""
        await self._do(lambda: self._open(collection))

    async def upsert(self, collection: VectorCollection, points: Sequence[Point]) -> None:
        """Store points, each in place of one with its id. Raises ValueError for a number that is not finite."""
        if not points:
            return
        for each in points:
            check_vector(each.vector, f"point {each.id}")
        edge_points = [EdgePoint(each.id, list(each.vector), dict(each.fields)) for each in points]

        operation = UpdateOperation.upsert_points(edge_points)
        await self._do(lambda: self._shard(collection).update(operation))

    async def search(
        self,
        collection: VectorCollection,
        vector: Sequence[float],
        *,
        where: Mapping[str, str] | None = None,
        without: Sequence[UUID] = (),
        limit: int = 10,
        floor: float | None = None,
    ) -> Sequence[Near]:
        """Return the points nearest to `vector`, nearest first."""
        check_vector(vector, "the search")
        request = SearchRequest(
            query=Query.Nearest(list(vector)),
            limit=limit,
            filter=_filter(where, without),
            with_payload=True,
            score_threshold=floor,
        )
        found = await self._do(lambda: self._shard(collection).search(request))
        return [Near(_uuid(each.id), each.score, dict(each.payload or {})) for each in found]

    async def delete(self, collection: VectorCollection, ids: Sequence[UUID]) -> None:
        """Remove points."""
        if ids:
            await self._do(lambda: self._shard(collection).update(UpdateOperation.delete_points(list(ids))))

    async def count(self, collection: VectorCollection, where: Mapping[str, str] | None = None) -> int:
        """Count the points whose fields equal `where`."""
        return await self._do(lambda: self._shard(collection).count(CountRequest(filter=_filter(where, ()))))

    async def close(self) -> None:
        """Let go of the folder after what is being done."""

        def close() -> None:
            for shard in self._shards.values():
                shard.flush()
                shard.close()
            self._shards.clear()

        await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._thread, close))
        self._thread.shutdown()

    def _shard(self, collection: VectorCollection) -> EdgeShard:
        shard = self._shards.get(collection.name)
        if shard is None:
            raise StorageError(f"the vector collection {collection.name} was not prepared")
        return shard

    def _open(self, collection: VectorCollection) -> None:
        if collection.name in self._shards:
            self._check_size(collection, self._sizes[collection.name])
            return
        path = self._folder / collection.name
        config = EdgeConfig(vectors=EdgeVectorParams(size=collection.size, distance=Distance.Cosine))
        size_file = path.with_suffix(".size")
        if size_file.exists():
            self._check_size(collection, int(size_file.read_text()))
            shard = EdgeShard.load(str(path), config)
        else:
            # The size is written last: a folder without it was not finished, and nothing was stored in it yet.
            shutil.rmtree(path, ignore_errors=True)
            path.mkdir()
            shard = EdgeShard.create(str(path), config)
            for name in collection.fields:
                shard.update(UpdateOperation.create_field_index(name, PayloadSchemaType.Keyword))
            size_file.write_text(str(collection.size))
        self._shards[collection.name] = shard
        self._sizes[collection.name] = collection.size

    def _check_size(self, collection: VectorCollection, size: int) -> None:
        if size != collection.size:
            raise StorageError(
                f"the vector collection {collection.name} in {self._folder} holds vectors of {size} numbers, "
                f"not {collection.size}; give it another name or remove its folder"
            )

    async def _do(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except StorageError:
            raise
        except Exception as error:  # the engine raises its own, of no common class
            raise StoreUnavailableError(f"the embedded vector store failed: {error}") from error


@asynccontextmanager
async def open_edge(path: str) -> AsyncGenerator[EdgeVectors, None]:
    """Open the vectors of a folder, making it where it is missing.

    Raises:
        StorageError: the folder cannot be made or written to, or another process uses it.
    """
    folder = _home(path)
    with _locked(folder):
        vectors = EdgeVectors(folder)
        try:
            yield vectors
        finally:
            await vectors.close()


def _home(path: str) -> Path:
    return Path(path).expanduser()


def _locked(folder: Path) -> FolderLock:
    try:
        lock = FolderLock.acquire(folder)
    except OSError as error:
        raise StorageError(f"PARLEY_VECTORS: the folder {folder} cannot be used: {error.strerror}") from error
    if lock is None:
        raise StorageError(
            f"PARLEY_VECTORS: another process uses the folder {folder}; stop it or name another folder"
        )
    return lock


def _filter(where: Mapping[str, str] | None, without: Sequence[UUID]) -> Filter | None:
    if not where and not without:
        return None
    return Filter(
        must=[FieldCondition(name, match=MatchValue(value)) for name, value in (where or {}).items()],
        must_not=[HasIdCondition(set(without))] if without else [],
    )


def _uuid(point_id: int | str | UUID) -> UUID:
    return point_id if isinstance(point_id, UUID) else UUID(str(point_id))
