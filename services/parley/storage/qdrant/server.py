"""Vectors on a Qdrant server, over gRPC."""

from collections.abc import AsyncGenerator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import urlsplit
from uuid import UUID

import grpc
from qdrant_client import AsyncQdrantClient, models
from qdrant_client.common.version_check import is_compatible
from qdrant_client.http.exceptions import ApiException

from parley.runtime.logs import get_logger
from parley.runtime.watched_files import WatchedFiles
from parley.storage.checks import check_vector
from parley.storage.ports import Neighbor, Point, StorageError, StoreUnavailableError, VectorCollection

T = TypeVar("T")

_GRPC_PORT: Final = 6334
_TIMEOUT_SECONDS: Final = 30
_BATCH: Final = 256
_NO_COLLECTION: Final = "no-such-collection"
_REFUSED: Final = frozenset({grpc.StatusCode.UNAUTHENTICATED, grpc.StatusCode.PERMISSION_DENIED})

_logger = get_logger(__name__)


class ServerVectors:
    """Collections of a Qdrant client."""

    def __init__(self, client: AsyncQdrantClient) -> None:
        self._client = client
        self._version_is_checked = False

    async def prepare(self, collection: VectorCollection) -> None:
        """Create the collection if it is missing."""
        if not self._version_is_checked:
            await self._check_version()
            self._version_is_checked = True
        if not await _call(self._client.collection_exists(collection.name)):
            await self._create(collection)
        found = await _call(self._client.get_collection(collection.name))
        parameters = found.config.params.vectors
        size = parameters.size if isinstance(parameters, models.VectorParams) else None
        if size != collection.size:
            raise StorageError(
                f"the vector collection {collection.name} of the Qdrant server holds vectors of {size} numbers, "
                f"not {collection.size}; give it another name or remove it"
            )
        for name in collection.fields:
            await _call(
                self._client.create_payload_index(
                    collection.name, name, field_schema=models.PayloadSchemaType.KEYWORD, wait=True
                )
            )

    async def upsert(self, collection: VectorCollection, points: Sequence[Point]) -> None:
        """Store points; a point replaces one with the same id. Raise ValueError for a number that is not finite."""
        for each in points:
            check_vector(each.vector, f"point {each.id}")
        for start in range(0, len(points), _BATCH):
            batch = [
                models.PointStruct(id=str(each.id), vector=list(each.vector), payload=dict(each.fields))
                for each in points[start : start + _BATCH]
            ]
            await _call(self._client.upsert(collection.name, batch, wait=True))

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
        found = await _call(
            self._client.query_points(
                collection.name,
                query=list(vector),
                query_filter=_filter(where, without),
                limit=limit,
                score_threshold=floor,
                with_payload=True,
                with_vectors=with_vectors,
            )
        )
        return [
            Neighbor(UUID(str(each.id)), each.score, dict(each.payload or {}), _only_vector(each.vector))
            for each in found.points
        ]

    async def delete(self, collection: VectorCollection, ids: Sequence[UUID]) -> None:
        """Delete points."""
        if ids:
            selector = models.PointIdsList(points=[str(each) for each in ids])
            await _call(self._client.delete(collection.name, selector, wait=True))

    async def count(self, collection: VectorCollection, where: Mapping[str, str] | None = None) -> int:
        """Count the points whose fields equal `where`."""
        counted = await _call(self._client.count(collection.name, _filter(where, ()), exact=True))
        return counted.count

    async def ping(self) -> None:
        """Return if the server answers."""
        await _call(self._client.collection_exists(_NO_COLLECTION))

    async def _check_version(self) -> None:
        """Log a warning if client and server are more than one minor version apart."""
        server, client = (await _call(self._client.info())).version, version("qdrant-client")
        if not is_compatible(client, server):
            _logger.warning(
                "the Qdrant server and Parley's client are more than one minor version apart, which Qdrant does not support",
                server=server,
                client=client,
            )

    async def _create(self, collection: VectorCollection) -> None:
        parameters = models.VectorParams(size=collection.size, distance=models.Distance.COSINE)
        try:
            await _call(self._client.create_collection(collection.name, vectors_config=parameters))
        except StorageError:
            # Another replica may have created it in the meantime; if not, this error was the reason.
            if not await _call(self._client.collection_exists(collection.name)):
                raise


@asynccontextmanager
async def open_server(
    url: str, *, api_key: str | None, ca: Path | None
) -> AsyncGenerator[ServerVectors, None]:
    """Open the vectors of a Qdrant server by the URL of its gRPC port; it need not answer yet.

    Args:
        url: `http://HOST:PORT`, or `https://HOST:PORT` for TLS.
        api_key: Qdrant's API key.
        ca: The file of the authority that signs the server's certificate, in PEM; None: gRPC's own list of authorities.

    Raises:
        ConfigurationError: the file cannot be used.
    """
    address = urlsplit(url)
    client = AsyncQdrantClient(
        host=address.hostname or "localhost",
        grpc_port=address.port or _GRPC_PORT,
        prefer_grpc=True,
        https=address.scheme == "https",
        api_key=api_key,
        grpc_options={"root_certificates": _read_authority(ca)} if ca else None,
        timeout=_TIMEOUT_SECONDS,
        check_compatibility=False,  # it asks the port of HTTP, and trusts no authority of ours: see _check_version
    )
    try:
        yield ServerVectors(client)
    finally:
        await client.close()


def _read_authority(ca: Path) -> bytes:
    def check(contents: tuple[bytes, ...]) -> None:
        if b"-----BEGIN CERTIFICATE-----" not in contents[0]:
            raise ValueError(f"PARLEY_VECTORS_CA: {ca} must be a PEM file, with -----BEGIN CERTIFICATE-----")

    return WatchedFiles({"PARLEY_VECTORS_CA": ca}, check).contents()[0]


async def _call(call: Awaitable[T]) -> T:
    try:
        return await call
    except grpc.aio.AioRpcError as error:
        hint = "; check PARLEY_VECTORS_API_KEY" if error.code() in _REFUSED else ""
        raise StoreUnavailableError(f"the Qdrant server failed: {error.details()}{hint}") from error
    except (grpc.RpcError, ApiException, OSError) as error:
        raise StoreUnavailableError(f"the Qdrant server failed: {error}") from error
    except ValueError as error:  # a server of another version may know more than its client
        raise StoreUnavailableError(
            f"the Qdrant server answered what this client does not know: {error}"
        ) from error


def _only_vector(vector: Any) -> Sequence[float]:
    """Return a point's vector; collections have no named ones."""
    return vector if isinstance(vector, list) else ()


def _filter(where: Mapping[str, str] | None, without: Sequence[UUID]) -> models.Filter | None:
    if not where and not without:
        return None
    return models.Filter(
        must=[
            models.FieldCondition(key=name, match=models.MatchValue(value=value))
            for name, value in (where or {}).items()
        ],
        must_not=[models.HasIdCondition(has_id=[str(each) for each in without])] if without else None,
    )
