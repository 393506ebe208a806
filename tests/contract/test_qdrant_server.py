"""A Qdrant server as its clients meet it: TLS, an API key and a version."""

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from pathlib import Path
from uuid import uuid4

import pytest
from structlog.testing import capture_logs

from parley.memory.settings import MemorySettings
from parley.runtime.errors import ConfigurationError
from parley.storage.opening import open_vectors
from parley.storage.ports import Point, StorageError, StoreUnavailableError, VectorCollection
from tests.support.certificates import Authority

_KEY = "0123456789abcdef"
_COLLECTION = VectorCollection("kept", 3)
_CLIENT = version("qdrant-client")


@asynccontextmanager
async def run_qdrant(authority: Authority, server_version: str = _CLIENT) -> AsyncIterator[str]:
    """Run a server with a certificate of the authority; yield its URL. Only who runs a test loads its library."""
    from tests.support import qdrant_server

    async with qdrant_server.run_qdrant(authority, _KEY, _COLLECTION, server_version) as url:
        yield url


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


async def test_an_answer_that_the_client_does_not_know_is_a_failure_of_the_store(tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    async with run_qdrant(authority) as url, open_vectors(url, api_key=_KEY, ca=authority.file) as vectors:
        with pytest.raises(StoreUnavailableError, match="answered what this client does not know"):
            await vectors.upsert(_COLLECTION, [Point(uuid4(), (1.0, 0.0, 0.0), {})])


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
