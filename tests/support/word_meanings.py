"""Meanings for tests of the memory: texts that share one of the chosen words mean the same, all others differ."""

from collections.abc import Sequence

from parley.memory.embedding import Embedding, EmbeddingClient
from parley.memory.stored_vectors import to_vector
from parley.runtime.errors import unavailable


class WordMeanings(EmbeddingClient):
    """Embeds a text by the first of `words` that is in it. It needs no service; `away` is as if that did not answer."""

    def __init__(self, words: Sequence[str]) -> None:
        self._words = words
        self.model = "words"
        self.away = False
        self.embedded: list[str] = []

    async def embed(self, *texts: str) -> list[Embedding]:
        if self.away:
            raise unavailable("CONVERGENCE_UNAVAILABLE", "away")
        self.embedded += texts
        return [Embedding(to_vector(self._vector(each)), self.model) for each in texts]

    def _vector(self, text: str) -> list[float]:
        place = next((n for n, word in enumerate(self._words) if word in text.lower()), len(self._words))
        return [float(number == place) for number in range(len(self._words) + 1)]
