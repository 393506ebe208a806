"""Vectors in this process: Qdrant's own engine on a thread of its own.

Its Python binding keeps the interpreter's lock through every call. This decides three things: searches are scans, of short codes, after
which the nearest few are compared exactly; a collection is several shards (*parts*), searched one after
the other, so that no call keeps the lock for longer than a part takes; and `optimize`, which would build an
index, is never called, since it would stop the process for a second or more per 1,000 vectors.

Its files are sparse and mapped into memory: on a full disk, writing to them is SIGBUS, which ends the process. So
nothing is opened or written without enough free space. Its content can be built again from the documents: a damaged
collection is deleted.
"""

import asyncio
import errno
import re
import shutil
from array import array
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import asynccontextmanager, suppress
from functools import partial
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
    QuantizationSearchParams,
    Query,
    ScoredPoint,
    SearchParams,
    SearchRequest,
    TurboQuantBitSize,
    TurboQuantQuantizationConfig,
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
_PART: Final = 25_000
"""Points from which on a collection gets another part: a search of one takes some 2 ms."""
_CODES: Final = TurboQuantQuantizationConfig(bits=TurboQuantBitSize.Bits4)
"""A code is written beside each vector: a scan of codes reads an eighth of the memory."""
_BY_CODES: Final = SearchParams(quantization=QuantizationSearchParams(rescore=True, oversampling=4.0))
"""Four times as many as asked for are taken by their codes; the vectors themselves decide among these."""
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
        self._parts: dict[str, list[EdgeShard]] = {}
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

        await self._run_in(
            collection, lambda parts: self._upsert(collection, parts, edge_points), writes=True
        )

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
            params=_BY_CODES,
            with_payload=True,
            with_vector=with_vectors,
            score_threshold=floor,
        )
        found: list[Neighbor] = []
        for number in range(len(self._get_parts(collection))):
            # Each in a call of its own: between two, other threads have the interpreter's lock.
            found += await self._run_in(collection, partial(_search_part, number, request))
        found.sort(key=lambda each: -each.score)
        return found[:limit]

    async def delete(self, collection: VectorCollection, ids: Sequence[UUID]) -> None:
        """Delete points."""
        if ids:
            operation = UpdateOperation.delete_points(list(ids))
            await self._run_in(collection, partial(_update_all, operation), writes=True)

    async def count(self, collection: VectorCollection, where: Mapping[str, str] | None = None) -> int:
        """Count the points whose fields equal `where`."""
        request = CountRequest(filter=_filter(where, ()))
        return await self._run_in(collection, lambda parts: sum(part.count(request) for part in parts))

    async def ping(self) -> None:
        """Return at once: the engine is in this process."""

    async def close(self) -> None:
        """Close the collections after the running work."""

        def close() -> None:
            for name in list(self._parts):
                self._close_parts(name)

        await asyncio.shield(asyncio.get_running_loop().run_in_executor(self._thread, close))
        self._thread.shutdown()

    def _get_parts(self, collection: VectorCollection) -> list[EdgeShard]:
        parts = self._parts.get(collection.name)
        if parts is None:
            raise StorageError(f"the vector collection {collection.name} was not prepared")
        return parts

    def _open(self, collection: VectorCollection) -> None:
        if collection.name not in self._parts:
            self._require_room()
            self._parts[collection.name] = self._load(collection) or [self._create(collection)]
            self._sizes[collection.name] = collection.size
        self._check_size(collection, self._sizes[collection.name])

    def _load(self, collection: VectorCollection) -> list[EdgeShard]:
        """Return the stored parts of a collection, or none if there are none or one of them cannot be read."""
        size_file = self._size_file(collection.name)
        if not size_file.exists():
            return []
        parts: list[EdgeShard] = []
        try:
            size = int(size_file.read_text())
            self._check_size(collection, size)
            for path in self._paths(collection.name):
                parts.append(EdgeShard.load(str(path), _config(collection)))  # noqa: PERF401 - those that were read are closed
        except StorageError:
            raise
        except BaseException as error:
            if not _is_damage(error):
                raise
            _log_damage(collection, error)
            _close(parts)
            return []
        return parts

    def _create(self, collection: VectorCollection) -> EdgeShard:
        # The size is written last: a folder without it is incomplete, and holds no points yet.
        self._remove(collection.name)
        part = self._create_part(collection, 0)
        self._size_file(collection.name).write_text(str(collection.size))
        return part

    def _create_part(self, collection: VectorCollection, number: int) -> EdgeShard:
        path = self._path(collection.name, number)
        path.mkdir(mode=0o700)
        part = EdgeShard.create(str(path), _config(collection))
        for name in collection.fields:
            part.update(UpdateOperation.create_field_index(name, PayloadSchemaType.Keyword))
        return part

    def _upsert(self, collection: VectorCollection, parts: list[EdgeShard], points: list[EdgePoint]) -> None:
        """Write each point to the part that has it; a new one to the last part, after which a full one gets a successor."""
        left = {_uuid(each.id): each for each in points}
        for part in parts[:-1]:
            known = part.retrieve(list(left), with_payload=False, with_vector=False)
            if known:
                part.update(UpdateOperation.upsert_points([left.pop(_uuid(each.id)) for each in known]))
        if left:
            parts[-1].update(UpdateOperation.upsert_points(list(left.values())))
            if parts[-1].count(CountRequest()) >= _PART:
                parts.append(self._create_part(collection, len(parts)))

    def _path(self, name: str, number: int) -> Path:
        """Return the folder of a part. The first one has the collection's name, in which there is no `~`."""
        return self._folder / (f"{name}~{number}" if number else name)

    def _paths(self, name: str) -> list[Path]:
        paths = [self._path(name, 0)]
        while (path := self._path(name, len(paths))).exists():
            paths.append(path)
        return paths

    def _size_file(self, name: str) -> Path:
        return (self._folder / name).with_suffix(".size")

    def _remove(self, name: str) -> None:
        self._size_file(name).unlink(missing_ok=True)
        for path in reversed(self._paths(name)):  # the last one first, so that none is left behind a gap
            shutil.rmtree(path, ignore_errors=True)

    def _close_parts(self, name: str) -> None:
        _close(self._parts.pop(name))

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
        self, collection: VectorCollection, work: Callable[[list[EdgeShard]], T], *, writes: bool = False
    ) -> T:
        """Run `work` on a collection's parts; delete the collection if one of them is damaged."""

        def run_guarded() -> T:
            parts = self._get_parts(collection)
            if writes:
                self._require_room()
            try:
                return work(parts)
            except BaseException as error:
                if not _is_damage(error):
                    raise
                _log_damage(collection, error)
                with suppress(KeyError):
                    self._close_parts(collection.name)
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
    return EdgeConfig(
        vectors=EdgeVectorParams(size=collection.size, distance=Distance.Cosine, quantization_config=_CODES),
        max_search_threads=1,  # more would find nothing to read in a part, and look for it for 2 ms a debate
    )


def _close(parts: Sequence[EdgeShard]) -> None:
    for part in parts:
        try:
            part.close()
        except BaseException as error:
            if not _is_engine_error(error):
                raise
            _logger.warning("the embedded vector store could not be closed cleanly", error=str(error))


def _search_part(number: int, request: SearchRequest, parts: Sequence[EdgeShard]) -> list[Neighbor]:
    """Search a part, if it is still there: a damaged collection begins again with one."""
    found = _search(parts[number], request) if number < len(parts) else []
    return [
        Neighbor(_uuid(each.id), each.score, dict(each.payload or {}), _only_vector(each.vector))
        for each in found
    ]


def _update_all(operation: UpdateOperation, parts: Sequence[EdgeShard]) -> None:
    for part in parts:
        part.update(operation)


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
    """Return a point's vector; collections have no named ones. An array: a list is slow to read and to free for who asked."""
    return array("f", vector) if isinstance(vector, list) else ()


def _uuid(point_id: int | str | UUID) -> UUID:
    return point_id if isinstance(point_id, UUID) else UUID(str(point_id))
