"""The port of embedding models, and the embedder of a model in this process."""

import asyncio
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import Final, Protocol

from parley.convergence.local_model import LocalModel
from parley.convergence.vectors import Vector
from parley.runtime.errors import unavailable


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
        """Embed texts one after the other: batches are hardly faster with these models."""
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._embed, texts)

    async def close(self) -> None:
        """Stop the threads after their present texts."""
        self._closed.set()
        await asyncio.to_thread(self._threads.shutdown, cancel_futures=True)

    def _embed(self, texts: Sequence[str]) -> list[Vector]:
        vectors: list[Vector] = []
        for text in texts:
            if self._closed.is_set():
                raise unavailable("EMBEDDINGS_UNAVAILABLE", "the service is stopping", retry_after=1.0)
            vectors.append(self._model.embed(text))
        return vectors
