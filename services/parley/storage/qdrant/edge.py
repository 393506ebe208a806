"""Vectors in this process: Qdrant's own engine, one shard for each collection, on a thread of its own.

Its Python binding keeps the interpreter's lock through every call. This decides two things: searches are exact
scans, which take 0.3 ms for each 1,000 vectors of 384 numbers that they look at, and `optimize`, which would build an
index, is never called, since it would stop the process for a second or more per 1,000 vectors.

Its files are sparse and mapped into memory: on a full disk, writing to them is SIGBUS, which ends the process. So
nothing is opened or written without enough free space. Its content can be built again from the documents: a damaged
collection is deleted.
"""

import asyncio
import errno
import re
import shutil
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any, Final, TypeVar
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
    ScoredPoint,
    SearchRequest,
    UpdateOperation,
)
from qdrant_edge import Point as EdgePoint

from parley.runtime.logs import get_logger
from parley.storage.checks import check_vector
from parley.storage.folder_lock import FolderLock
from parley.storage.ports import (
    Neighbor,
    Point,
    StorageError,
    StoreUnavailableError,
    VectorCollection,
    VectorsLostError,
)

T = TypeVar("T")

_MIN_FREE_BYTES: Final = 32 * 1024 * 1024
"""The free space that a disk must have: several times what one write or a new collection takes."""
_MACHINE_ERRORS: Final = frozenset(
    {
        errno.EMFILE,
        errno.ENFILE,
        errno.ENOMEM,
        errno.ENOSPC,
        errno.EDQUOT,
        errno.EACCES,
        errno.EPERM,
        errno.EROFS,
    }
)
"""Errors of the machine, which say nothing about the stored data."""

_logger = get_logger(__name__)


class EdgeVectors:
    """Collections as folders of one folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._shards: dict[str, EdgeShard] = {}
        self._sizes: dict[str, int] = {}
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="vectors")

    async def prepare(self, collection: VectorCollection) -> None:
        """Create the collection if it is missing."""
        await self._run(lambda: self._open(collection))

    async def upsert(self, collection: VectorCollection, points: Sequence[Point]) -> None:
        """Store points; a point replaces one with the same id. Raise ValueError for a number that is not finite."""
        if not points:
            return
        for each in points:
            check_vector(each.vector, f"point {each.id}")
        edge_points = [EdgePoint(each.id, list(each.vector), dict(each.fields)) for each in points]

        operation = UpdateOperation.upsert_points(edge_points)
        await self._run_in(collection, lambda shard: shard.update(operation), writes=True)

    async def search(
        self,
        collection: VectorCollection,
        vector: Sequence[float],
        *,
        where: Mapping[str, str] | None = None,
        without: Sequence[UUID] = (),
        limit: int = 10,
        floor: float | None = None,
        with_vectors: bool = False,
    ) -> Sequence[Neighbor]:
        """Return the points nearest to `vector`, nearest first."""
        check_vector(vector, "the search")
        request = SearchRequest(
            query=Query.Nearest(list(vector)),
            limit=limit,
            filter=_filter(where, without),
            with_payload=True,
            with_vector=with_vectors,
            score_threshold=floor,
        )
        found = await self._run_in(collection, lambda shard: _search(shard, request))
        return [
            Neighbor(_uuid(each.id), each.score, dict(each.payload or {}), _only_vector(each.vector))
            for each in found
        ]

    async def delete(self, collection: VectorCollection, ids: Sequence[UUID]) -> None:
        """Delete points."""
        if ids:
            operation = UpdateOperation.delete_points(list(ids))
            await self._run_in(collection, lambda shard: shard.update(operation), writes=True)

    async def count(self, collection: VectorCollection, where: Mapping[str, str] | None = None) -> int:
        """Count the points whose fields equal `where`."""
        request = CountRequest(filter=_filter(where, ()))
        return await self._run_in(collection, lambda shard: shard.count(request))

    async def ping(self) -> None:
        """Return at once: the engine is in this process."""

    async def close(self) -> None:
        """Close the collections after the running work."""

        def close() -> None:
            for name in list(self._shards):
                self._close_shard(name)

        await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._thread, close))
        self._thread.shutdown()

    def _shard(self, collection: VectorCollection) -> EdgeShard:
        shard = self._shards.get(collection.name)
        if shard is None:
            raise StorageError(f"the vector collection {collection.name} was not prepared")
        return shard

    def _open(self, collection: VectorCollection) -> None:
        if collection.name not in self._shards:
            self._require_room()
            self._shards[collection.name] = self._load(collection) or self._create(collection)
            self._sizes[collection.name] = collection.size
        self._check_size(collection, self._sizes[collection.name])

    def _load(self, collection: VectorCollection) -> EdgeShard | None:
        """Return the stored collection, or None if there is none or it cannot be read."""
        path = self._folder / collection.name
        size_file = path.with_suffix(".size")
        if not size_file.exists():
            return None
        try:
            size = int(size_file.read_text())
            self._check_size(collection, size)
            return EdgeShard.load(str(path), _config(collection))
        except StorageError:
            raise
        except BaseException as error:
            if not _is_damage(error):
                raise
            _log_damage(collection, error)
            return None

    def _create(self, collection: VectorCollection) -> EdgeShard:
        # The size is written last: a folder without it is incomplete, and holds no points yet.
        path = self._folder / collection.name
        self._remove(collection.name)
        path.mkdir(mode=0o700)
        shard = EdgeShard.create(str(path), _config(collection))
        for name in collection.fields:
            shard.update(UpdateOperation.create_field_index(name, PayloadSchemaType.Keyword))
        path.with_suffix(".size").write_text(str(collection.size))
        return shard

    def _remove(self, name: str) -> None:
        path = self._folder / name
        path.with_suffix(".size").unlink(missing_ok=True)
        shutil.rmtree(path, ignore_errors=True)

    def _close_shard(self, name: str) -> None:
        shard = self._shards.pop(name)
        try:
            shard.flush()
            shard.close()
        except BaseException as error:
            if not _is_engine_error(error):
                raise
            _logger.warning("the embedded vector store could not be closed cleanly", error=str(error))

    def _require_room(self) -> None:
        free = shutil.disk_usage(self._folder).free
        if free < _MIN_FREE_BYTES:
            raise StoreUnavailableError(
                f"the disk of {self._folder} has {free // 1024**2} MiB left; "
                f"free some room: the embedded vector store needs {_MIN_FREE_BYTES // 1024**2} MiB to spare"
            )

    def _check_size(self, collection: VectorCollection, size: int) -> None:
        if size != collection.size:
            raise StorageError(
                f"the vector collection {collection.name} in {self._folder} holds vectors of {size} numbers, "
                f"not {collection.size}; give it another name or remove its folder"
            )

    async def _run_in(
        self, collection: VectorCollection, work: Callable[[EdgeShard], T], *, writes: bool = False
    ) -> T:
        """Run `work` on a collection; delete the collection if it is damaged."""

        def run_guarded() -> T:
            shard = self._shard(collection)
            if writes:
                self._require_room()
            try:
                return work(shard)
            except BaseException as error:
                if not _is_damage(error):
                    raise
                _log_damage(collection, error)
                with suppress(KeyError):
                    self._close_shard(collection.name)
                self._remove(collection.name)
                raise VectorsLostError(
                    f"the vector collection {collection.name} was damaged: {error}"
                ) from None

        return await self._run(run_guarded)

    async def _run(self, work: Callable[[], T]) -> T:
        try:
            return await asyncio.get_running_loop().run_in_executor(self._thread, work)
        except (StorageError, asyncio.CancelledError):
            raise
        except Exception as error:  # the engine's errors have no common class
            raise StoreUnavailableError(f"the embedded vector store failed: {error}") from error


def _config(collection: VectorCollection) -> EdgeConfig:
    return EdgeConfig(vectors=EdgeVectorParams(size=collection.size, distance=Distance.Cosine))


def _search(shard: EdgeShard, request: SearchRequest) -> list[ScoredPoint]:
    """Search; a test replaces this function, as it cannot replace a method of the engine's class."""
    return shard.search(request)


def _is_engine_error(error: BaseException) -> bool:
    """Return whether an error came from the engine; a panic of Rust is no Exception, and its class cannot be imported."""
    return isinstance(error, Exception) or type(error).__name__ == "PanicException"


def _is_damage(error: BaseException) -> bool:
    number = re.search(r"os error (\d+)", str(error))
    code = int(number[1]) if number else getattr(error, "errno", None)
    return _is_engine_error(error) and code not in _MACHINE_ERRORS


def _log_damage(collection: VectorCollection, error: BaseException) -> None:
    _logger.warning(
        "a damaged vector collection is deleted and built again", collection=collection.name, error=str(error)
    )


@asynccontextmanager
async def open_edge(path: str) -> AsyncGenerator[EdgeVectors, None]:
    """Open the vectors of a folder, creating it if it is missing.

    Raise StorageError if the folder cannot be created or written to, or another process uses it.
    """
    folder = _expand(path)
    with _lock_folder(folder):
        vectors = EdgeVectors(folder)
        try:
            yield vectors
        finally:
            await vectors.close()


def _expand(path: str) -> Path:
    return Path(path).expanduser()


def _lock_folder(folder: Path) -> FolderLock:
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


def _only_vector(vector: Any) -> Sequence[float]:
    """Return a point's vector; collections have no named ones."""
    return vector if isinstance(vector, list) else ()


def _uuid(point_id: int | str | UUID) -> UUID:
    return point_id if isinstance(point_id, UUID) else UUID(str(point_id))
