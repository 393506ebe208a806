"""The key of the embeddings endpoint in a file: changed without a restart."""

from pathlib import Path

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from pydantic import SecretStr, ValidationError

from parley.convergence.endpoint import EndpointEmbedder, key_reader
from parley.convergence.settings import ConvergenceSettings
from parley.runtime import watched_files
from parley.runtime.errors import ConfigurationError, ParleyError

OLD, NEW = "embeddings-old-0123456789", "embeddings-new-0123456789"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(watched_files, "_CHECK_SECONDS", 0.0)
    path = tmp_path / "key"
    path.write_text(f"{OLD}\n")
    return path


def put(file: Path, key: str) -> None:
    file.write_text(key)


async def test_a_new_key_in_the_file_goes_out_with_the_next_request(file: Path) -> None:
    sent: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        sent.append(request.headers["Authorization"])
        return web.json_response({"data": [{"index": 0, "embedding": [1.0]}], "model": "m", "object": "list"})

    application = web.Application()
    application.router.add_post("/v1/embeddings", answer)
    async with TestServer(application) as server:
        embedder = EndpointEmbedder(str(server.make_url("/v1")), key_reader(file), "m")
        try:
            await embedder.embed(["a text"])
            put(file, f"{NEW} \r\n")
            await embedder.embed(["a text"])
        finally:
            await embedder.close()
    assert sent == [f"Bearer {OLD}", f"Bearer {NEW}"]


async def test_the_key_that_was_sent_is_hidden_though_it_has_changed_since(file: Path) -> None:
    async def refuse(_: web.Request) -> web.Response:
        put(file, NEW)
        return web.json_response({"error": {"message": f"wrong key {OLD}"}}, status=400)

    application = web.Application()
    application.router.add_post("/v1/embeddings", refuse)
    async with TestServer(application) as server:
        embedder = EndpointEmbedder(str(server.make_url("/v1")), key_reader(file), "m")
        try:
            with pytest.raises(ParleyError) as raised:
                await embedder.embed(["a text"])
        finally:
            await embedder.close()
    assert OLD not in raised.value.message


@pytest.mark.parametrize("held", [b"", b" \n", b"two\nlines", "ключ".encode(), b"k" * 20_000])
def test_a_file_without_a_key_is_refused_and_never_repeated(file: Path, held: bytes) -> None:
    key = key_reader(file)
    file.write_bytes(held)
    assert key() == OLD
    with pytest.raises(ConfigurationError, match="PARLEY_EMBEDDING_API_KEY_FILE") as raised:
        key_reader(file)
    assert "two" not in str(raised.value)


def test_a_key_stands_in_one_place(file: Path) -> None:
    with pytest.raises(ValidationError, match="either it or PARLEY_EMBEDDING_API_KEY"):
        ConvergenceSettings(embedding_api_key=SecretStr(OLD), embedding_api_key_file=file)
