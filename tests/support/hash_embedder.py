"""A tiny embedder for tests: texts that share words are near. No meaning, no files, always the same."""

import hashlib
import re
from collections.abc import Sequence
from functools import cache

import numpy as np

from parley.convergence.embeddings import Embeddings
from parley.convergence.vectors import Vector, unit


class HashEmbedder:
    """Embeds a text as the sum of its words' hashed directions; counts what it is asked for."""

    def __init__(self, name: str = "hash-64", size: int = 64) -> None:
        self.name = name
        self.batches: list[list[str]] = []
        self._size = size

    async def embed(self, texts: Sequence[str]) -> list[Vector]:
        self.batches.append(list(texts))
        return [self.vector(text) for text in texts]

    def vector(self, text: str) -> Vector:
        total = np.zeros(self._size, np.float32)
        for word in re.findall(r"\w+", text.lower()):
            total += _find_direction(word, self._size)
        return unit(total)

    async def close(self) -> None:
        """Holds nothing."""


@cache
def _find_direction(word: str, size: int) -> Vector:
    seed = int.from_bytes(hashlib.blake2b(word.encode(), digest_size=8).digest())
    return np.random.default_rng(seed).standard_normal(size).astype(np.float32)


async def embed_one(embeddings: Embeddings, text: str) -> Vector:
    """Return the vector of one text alone."""
    (vector,) = await embeddings.embed([text])
    return vector
