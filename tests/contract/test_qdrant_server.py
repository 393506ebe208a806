"""A Qdrant server as its clients meet it: TLS, an API key and a version. It knows the calls that open a collection."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any

import grpc
import pytest
from qdrant_client import grpc as qdrant
from structlog.testing import capture_logs

from parley.memory.settings import MemorySettings
from parley.runtime.errors import ConfigurationError
from parley.storage.opening import open_vectors
from parley.storage.ports import StorageError, StoreUnavailableError, VectorCollection
from tests.support.certificates import Authority

_KEY = "0123456789abcdef"
_COLLECTION = VectorCollection("kept", 3)
_CLIENT = version("qdrant-client")


class _Qdrant(qdrant.QdrantServicer, qdrant.CollectionsServicer):
    """Answers who shows the key. It has one collection, of vectors of three numbers."""

    def __init__(self, server_version: str) -> None:
        self._version = server_version

    async def HealthCheck(self, _: Any, context: Any) -> Any:  # noqa: N802
        await _require_key(context)
        return qdrant.HealthCheckReply(title="qdrant", version=self._version)

    async def CollectionExists(self, _: Any, context: Any) -> Any:  # noqa: N802
        await _require_key(context)
        return qdrant.CollectionExistsResponse(result=qdrant.CollectionExists(exists=True))

    async def Get(self, _: Any, context: Any) -> Any:  # noqa: N802
        await _require_key(context)
        size = qdrant.VectorParams(size=_COLLECTION.size, distance=qdrant.Distance.Cosine)
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


async def _require_key(context: Any) -> None:
    if ("api-key", _KEY) not in [tuple(each) for each in context.invocation_metadata()]:
        await context.abort(grpc.StatusCode.UNAUTHENTICATED, "Must provide an API key")


@asynccontextmanager
async def run_qdrant(authority: Authority, server_version: str = _CLIENT) -> AsyncIterator[str]:
    """Run it with a certificate of the authority; yield its URL."""
    certificate, key = authority.sign("qdrant")
    credentials = grpc.ssl_server_credentials([(key.read_bytes(), certificate.read_bytes())])
    server = grpc.aio.server()
    servicer = _Qdrant(server_version)
    qdrant.add_QdrantServicer_to_server(servicer, server)  # type: ignore[no-untyped-call]
    qdrant.add_CollectionsServicer_to_server(servicer, server)  # type: ignore[no-untyped-call]
    port = server.add_secure_port("127.0.0.1:0", credentials)
    await server.start()
    try:
        yield f"https://127.0.0.1:{port}"
    finally:
        await server.stop(None)


async def test_a_server_is_reached_over_tls_with_the_key_and_the_authority_of_the_settings(
    tmp_path: Path,
) -> None:
    authority = Authority(tmp_path)
    async with run_qdrant(authority) as url, open_vectors(url, api_key=_KEY, ca=authority.file) as vectors:
        await vectors.ping()
        await vectors.prepare(_COLLECTION)
        with pytest.raises(StorageError, match="holds vectors of 3 numbers, not 4"):
            await vectors.prepare(VectorCollection("kept", 4))


async def test_another_authority_or_key_is_refused_and_the_error_says_which_setting_to_check(
    tmp_path: Path,
) -> None:
    authority, other = Authority(tmp_path), Authority(tmp_path, "other")
    async with run_qdrant(authority) as url:
        for key in (None, "another"):
            async with open_vectors(url, api_key=key, ca=authority.file) as vectors:
                with pytest.raises(StoreUnavailableError, match="check PARLEY_VECTORS_API_KEY"):
                    await vectors.ping()
        for ca in (None, other.file):
            async with open_vectors(url, api_key=_KEY, ca=ca) as vectors:
                with pytest.raises(StoreUnavailableError, match="CERTIFICATE_VERIFY_FAILED"):
                    await vectors.ping()


@pytest.mark.parametrize("apart", [0, 1, 2])
async def test_a_server_more_than_one_minor_version_apart_is_warned_of_once(
    apart: int, tmp_path: Path
) -> None:
    major, minor, *_ = _CLIENT.split(".")
    authority = Authority(tmp_path)
    async with (
        run_qdrant(authority, f"{major}.{int(minor) - apart}.3") as url,
        open_vectors(url, api_key=_KEY, ca=authority.file) as vectors,
    ):
        with capture_logs() as logged:
            await vectors.prepare(_COLLECTION)
            await vectors.prepare(_COLLECTION)
    warned = [each for each in logged if "more than one minor version apart" in each["event"]]
    assert len(warned) == (1 if apart > 1 else 0)


@pytest.mark.parametrize("content", [None, "no certificate"])
async def test_an_authority_that_cannot_be_read_is_refused_by_its_setting(
    content: str | None, tmp_path: Path
) -> None:
    ca = tmp_path / "ca.pem"
    if content:
        ca.write_text(content)
    with pytest.raises(ConfigurationError, match="PARLEY_VECTORS_CA"):
        async with open_vectors("https://127.0.0.1:9", ca=ca):
            pass


@pytest.mark.parametrize(
    ("variables", "problem"),
    [
        ({"VECTORS": "http://qdrant:6334", "VECTORS_API_KEY": _KEY}, "would be sent in plaintext"),
        ({"VECTORS": "edge:data", "VECTORS_API_KEY": _KEY}, "PARLEY_VECTORS_API_KEY needs https"),
        ({"VECTORS": "http://qdrant:6334", "VECTORS_CA": "/ca.pem"}, "PARLEY_VECTORS_CA needs https"),
        ({"VECTORS": "https://qdrant:6334", "VECTORS_API_KEY": _KEY, "VECTORS_CA": "/ca.pem"}, ""),
        ({"VECTORS": "http://127.0.0.1:6334", "VECTORS_API_KEY": _KEY}, ""),
        ({"VECTORS": "http://qdrant:6334", "VECTORS_API_KEY": _KEY, "TLS": "off"}, ""),
    ],
)
def test_a_key_goes_out_in_plaintext_only_if_a_setting_allows_it(
    variables: Mapping[str, str], problem: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in variables.items():
        monkeypatch.setenv(f"PARLEY_{name}", value)
    if not problem:
        assert MemorySettings.load().vectors == variables["VECTORS"]
        return
    with pytest.raises(ConfigurationError, match=problem) as refused:
        MemorySettings.load()
    assert _KEY not in str(refused.value)
