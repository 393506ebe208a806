"""The port of embedding models, and the embedder of a model in this process."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Final, Protocol

from parley.convergence.local_model import LocalModel
from parley.convergence.vectors import Vector
from parley.runtime.errors import unavailable

_PART_CHARACTERS: Final = 4_000
"""Of texts that a model gets at a time: some tenths of a second."""


class Embedder(Protocol):
    """A model that turns texts into vectors of length 1."""

    @property
    def name(self) -> str:
        """The model's name; vectors of two names cannot be compared."""

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Embed texts, in their order. A text's vector does not depend on the others.

        Raise ParleyError: UNAVAILABLE `EMBEDDINGS_UNAVAILABLE`.
        """

    async def close(self) -> None:
        """Stop the threads and close the connections."""


class LocalEmbedder:
    """A model in this process, on threads of its own so that it never blocks the event loop."""

    def __init__(self, model: LocalModel, threads: int = 1) -> None:
        self.name: Final = model.name
        self._model = model
        self._threads = ThreadPoolExecutor(threads, thread_name_prefix="embed")
        self._closed = Event()

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        """Embed texts on a thread of its own."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._embed, texts)

    async def close(self) -> None:
        """Stop the threads after their present texts, some thousand characters or one text."""
        self._closed.set()
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)

    def _embed(self, texts: Sequence[str]) -> list[Vector]:
        vectors: list[Vector] = []
        for part in _split(texts):
            if self._closed.is_set():
                raise unavailable("EMBEDDINGS_UNAVAILABLE", "the service is stopping", retry_after=1.0)
            vectors += self._model.embed_all(part)
        return vectors


def _split(texts: Sequence[str]) -> list[list[str]]:
    """Return texts in parts that a stop can wait for: short ones together, a long one alone."""
    parts: list[list[str]] = []
    room = 0
    for text in texts:
        room -= len(text)
        if not parts or room < 0:
            parts.append([])
            room = _PART_CHARACTERS - len(text)
        parts[-1].append(text)
    return parts
