"""The embedder of an OpenAI-compatible endpoint."""

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

import httpx2
import numpy as np
import openai
from pydantic import BaseModel, ValidationError

from parley.convergence.vectors import Vector, mean_direction, unit, windows
from parley.runtime.errors import internal, unavailable
from parley.runtime.redaction import Redaction
from parley.runtime.unpacking import ACCEPT_GZIP, truncate, unpack
from parley.runtime.watched_files import WatchedFiles

_KEY_FILE: Final = "PARLEY_EMBEDDING_API_KEY_FILE"
_MAX_READ: Final = 16 * 1024
_MAX_ERROR: Final = 200
_MAX_ANSWER: Final = 4 * 1024 * 1024
"""Bytes of an answer; 32 vectors of 4,096 numbers have up to three million."""
_MAX_BYTES: Final = 16 * 1024


class _EmbeddingItem(BaseModel):
    index: int
    embedding: list[float]


class _Answer(BaseModel):
    data: list[_EmbeddingItem]


class EndpointEmbedder:
    """An OpenAI-compatible embeddings endpoint.

    A text longer than 8,000 characters is cut into windows of at most 8,000 that overlap by 800, all of one size.
    """

    _WINDOW: Final = 8_000
    _OVERLAP: Final = 800
    _BATCH: Final = 32

    def __init__(self, base_url: str, api_key: str | Callable[[], str], model: str) -> None:
        """Use a model at a base URL. A key that may change is a callable, which is called before each request."""
        self.name: Final = model
        self._key = api_key if callable(api_key) else lambda: api_key
        self._client = openai.AsyncOpenAI(
            base_url=base_url,
            api_key="none",  # each request sets its own
            timeout=30.0,
            max_retries=2,
            default_headers=ACCEPT_GZIP,
            http_client=openai.DefaultAioHttpClient(
                follow_redirects=False, event_hooks={"response": [unpack, _limit_size]}
            ),
        )

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Embed texts, at most 32 windows a request."""
        cuts = [windows(len(text), self._WINDOW, self._OVERLAP) for text in texts]
        pieces = [text[start:end] for text, cut in zip(texts, cuts, strict=True) for start, end in cut]
        vectors: list[Vector] = []
        for start in range(0, len(pieces), self._BATCH):
            vectors += await self._request(pieces[start : start + self._BATCH])
        remaining = iter(vectors)
        return [mean_direction([next(remaining) for _ in cut]) for cut in cuts]

    async def _request(self, pieces: list[str]) -> list[Vector]:
        key = self._key()
        try:
            answer = await self._client.embeddings.with_raw_response.create(
                input=pieces,
                model=self.name,
                encoding_format="float",
                extra_headers={"Authorization": f"Bearer {key or 'none'}"},
            )
        except openai.OpenAIError as error:
            message = f"the embeddings endpoint failed: {_error_text(error, key)}"
            raise unavailable("EMBEDDINGS_UNAVAILABLE", message, retry_after=1.0) from None
        return await asyncio.to_thread(_read_answer, answer.content, len(pieces))

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()


async def _limit_size(response: httpx2.Response) -> None:
    truncate(response, _MAX_ANSWER)


def _read_answer(answer: bytes, texts: int) -> list[Vector]:
    """Return the vectors of an answer in the order of the texts, one for each."""
    try:
        data = _Answer.model_validate_json(answer).data
    except ValidationError:  # its words may repeat what was answered
        problem = "no vectors of numbers" if len(answer) < _MAX_ANSWER else f"more than {_MAX_ANSWER} bytes"
        raise unavailable("EMBEDDINGS_UNAVAILABLE", f"the embeddings endpoint answered {problem}") from None
    if sorted(each.index for each in data) != list(range(texts)):
        raise internal(f"the embeddings endpoint answered {len(data)} vectors for {texts} texts")
    return parse_vectors([each.embedding for each in sorted(data, key=lambda each: each.index)])


def parse_vectors(answered: Sequence[Sequence[float]]) -> list[Vector]:
    """Return the directions of what an endpoint answered, all of one length and finite."""
    try:
        with np.errstate(over="ignore"):  # what is too large becomes infinite, and is refused below
            vectors = np.array(answered, dtype=np.float32)
    except (TypeError, ValueError, OverflowError):  # its words may repeat what was answered
        raise unavailable(
            "EMBEDDINGS_UNAVAILABLE", "the embeddings endpoint answered no vectors of numbers"
        ) from None
    if vectors.ndim != 2 or not vectors.shape[1] or not np.isfinite(vectors).all():
        message = "the embeddings endpoint answered vectors with numbers that are not finite, or with none"
        raise unavailable("EMBEDDINGS_UNAVAILABLE", message)
    return [unit(each) for each in vectors]


def _error_text(error: openai.OpenAIError, key: str) -> str:
    """Return what is said of an error as one short line without the key: it may stand in a debate's log for good."""
    if isinstance(error, openai.APIStatusError) and 300 <= error.status_code < 400:
        return f"{error.status_code} it redirects elsewhere; PARLEY_EMBEDDING_BASE_URL must be the address itself"
    words = "".join(each if each.isprintable() else " " for each in str(error)[:_MAX_READ])
    redacted = Redaction(key)
    # Hidden before it is shortened too: what is cut within a key is no key that could be found.
    shown = redacted(" ".join(redacted(words).split()))
    return shown if len(shown) <= _MAX_ERROR else f"{shown[: _MAX_ERROR - 1]}…"


def key_reader(path: Path) -> Callable[[], str]:
    """Return a function that reads the current key from a file, without a line end.

    Raises:
        ConfigurationError: the file cannot be read or has no key. Later, the last good key is used.
    """
    files = WatchedFiles({_KEY_FILE: path}, lambda held: _check_key(path, held[0]))
    return lambda: files.contents()[0].decode("ascii").strip()


def _check_key(path: Path, held: bytes) -> None:
    key = held.strip()
    if not key:
        raise ValueError(f"{_KEY_FILE}: {path} holds no key")
    if len(held) > _MAX_BYTES or not (held.isascii() and key.decode("ascii").isprintable()):
        raise ValueError(f"{_KEY_FILE}: {path} holds what is no key")
