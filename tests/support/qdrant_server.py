"""A Qdrant server that knows the calls that open a collection, and answers one that writes with a status of its own. A test imports it when it runs: its library takes seconds to load."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import grpc
from qdrant_client import grpc as qdrant

from parley.storage.ports import VectorCollection
from tests.support.certificates import Authority


class _Qdrant(qdrant.QdrantServicer, qdrant.CollectionsServicer, qdrant.PointsServicer):
    """Answers who shows the key. It has one collection."""

    def __init__(self, key: str, collection: VectorCollection, server_version: str) -> None:
        self._key = key
        self._collection = collection
        self._version = server_version

    async def HealthCheck(self, _: Any, context: Any) -> Any:  # noqa: N802
        await self._require_key(context)
        return qdrant.HealthCheckReply(title="qdrant", version=self._version)

    async def CollectionExists(self, _: Any, context: Any) -> Any:  # noqa: N802
        await self._require_key(context)
        return qdrant.CollectionExistsResponse(result=qdrant.CollectionExists(exists=True))

    async def Get(self, _: Any, context: Any) -> Any:  # noqa: N802
        await self._require_key(context)
        size = qdrant.VectorParams(size=self._collection.size, distance=qdrant.Distance.Cosine)
        parameters = qdrant.CollectionParams(vectors_config=qdrant.VectorsConfig(params=size))
        config = qdrant.CollectionConfig(
            params=parameters,
            hnsw_config=qdrant.HnswConfigDiff(m=16, ef_construct=100, full_scan_threshold=10_000),
            optimizer_config=qdrant.OptimizersConfigDiff(
                deleted_threshold=0.2,
                vacuum_min_vector_number=1000,
                default_segment_number=0,
                flush_interval_sec=5,
            ),
            wal_config=qdrant.WalConfigDiff(wal_capacity_mb=32, wal_segments_ahead=0),
        )
        return qdrant.GetCollectionInfoResponse(
            result=qdrant.CollectionInfo(status=qdrant.CollectionStatus.Green, config=config)
        )

    async def Upsert(self, _: Any, context: Any) -> Any:  # noqa: N802
        await self._require_key(context)
        result = qdrant.UpdateResult(status=99)  # type: ignore[arg-type]
        return qdrant.PointsOperationResponse(result=result)

    async def _require_key(self, context: Any) -> None:
        if ("api-key", self._key) not in [tuple(each) for each in context.invocation_metadata()]:
            await context.abort(grpc.StatusCode.UNAUTHENTICATED, "Must provide an API key")


@asynccontextmanager
async def run_qdrant(
    authority: Authority, key: str, collection: VectorCollection, server_version: str
) -> AsyncIterator[str]:
    """Run it with a certificate of the authority; yield its URL."""
    certificate, private_key = authority.sign("qdrant")
    credentials = grpc.ssl_server_credentials([(private_key.read_bytes(), certificate.read_bytes())])
    server = grpc.aio.server()
    servicer = _Qdrant(key, collection, server_version)
    qdrant.add_QdrantServicer_to_server(servicer, server)  # type: ignore[no-untyped-call]
    qdrant.add_CollectionsServicer_to_server(servicer, server)  # type: ignore[no-untyped-call]
    qdrant.add_PointsServicer_to_server(servicer, server)  # type: ignore[no-untyped-call]
    port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    try:
        yield f"https://127.0.0.1:{port}"
    finally:
        await server.stop(None)
