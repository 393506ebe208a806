"""Whether something that was said supports a claim: the encoder reads the claim with the passages that are most like it."""

import asyncio
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Final

from msgspec import Struct

from parley.convergence.embeddings import Embeddings
from parley.convergence.encoder_threads import EncoderThreads
from parley.convergence.head import EncoderHead, to_probability
from parley.convergence.rounds import sentences
from parley.convergence.vectors import Vector, cosine
from parley.runtime.large_texts import in_thread_if_large

if TYPE_CHECKING:
    from parley.convergence.encoder import CrossEncoder

READ_PASSAGES: Final = {2: 5, 3: 3}
"""How many passages of two and of three sentences are read with a claim, the most alike ones. A sentence alone often says `it` and `they`."""
CANDIDATES: Final = {2: 24, 3: 24}
"""How many of them are compared by their finer vectors, which cost ten milliseconds each."""
_SUPPORTED_FROM: Final = 0.5
_AT_ONCE: Final = 256
"""Passages that are handed over to be embedded at a time, so that other work of the loop gets its turn."""


class Support(Struct, frozen=True):
    """What was said for a claim.

    Attributes:
        probability: That a text supports it, 0 to 1; None: its language is unknown, or no text has a sentence.
        texts: The places of the texts that support it, from 0, the best first.
    """

    probability: float | None
    texts: tuple[int, ...]


class SupportModel:
    """Finds what supports claims. Passages are chosen by `fast`, whose vectors cost almost nothing, and of those by `fine`."""

    def __init__(
        self, fine: Embeddings, fast: Embeddings, encoder: EncoderThreads, head: EncoderHead
    ) -> None:
        """Raise ConfigurationError if the head was trained for another encoder."""
        encoder.check_head(head, "support-head")
        self._fine = fine
        self._fast = fast
        self._encoder = encoder
        self._head = head

    async def find(self, claims: Sequence[str], texts: Sequence[str]) -> list[Support]:
        """Return what supports each claim.

        Raises:
            ParleyError: UNAVAILABLE `AGREEMENT_MODEL_UNAVAILABLE`, `EMBEDDINGS_UNAVAILABLE`.
        """
        passages = await in_thread_if_large(sum(map(len, texts)), lambda: split_passages(texts))
        near = await self._choose(self._fast, claims, [passages] * len(claims), CANDIDATES)
        chosen = await self._choose(self._fine, claims, near, READ_PASSAGES)
        return list(await asyncio.gather(*map(self._read, claims, chosen)))

    async def _choose(
        self,
        embeddings: Embeddings,
        claims: Sequence[str],
        candidates: Sequence[Sequence["Passage"]],
        most: Mapping[int, int],
    ) -> list[list["Passage"]]:
        """Return which of the candidates of each claim are most like it, `most` of each size."""
        texts = await asyncio.to_thread(lambda: list({each.text for group in candidates for each in group}))
        vectors: dict[str, Vector] = {}
        for start in range(0, len(texts), _AT_ONCE):
            part = texts[start : start + _AT_ONCE]
            vectors |= zip(part, await embeddings.embed(part), strict=True)
        asked = await embeddings.embed(claims)

        def choose() -> list[list[Passage]]:
            return [
                choose_passages(claim, given, vectors, most)
                for claim, given in zip(asked, candidates, strict=True)
            ]

        return await asyncio.to_thread(choose)

    async def _read(self, claim: str, passages: Sequence["Passage"]) -> Support:
        reading = (self._encoder.run(partial(self._score, claim, each)) for each in passages)
        found = await asyncio.gather(*reading)
        known = [
            (score, each.place) for score, each in zip(found, passages, strict=True) if score is not None
        ]
        if not known:
            return Support(None, ())
        best = sorted(known, key=lambda each: -each[0])
        supporting = dict.fromkeys(place for score, place in best if score >= _SUPPORTED_FROM)
        return Support(best[0][0], tuple(supporting))

    def _score(self, claim: str, passage: "Passage", encoder: "CrossEncoder") -> float | None:
        if not encoder.knows_language(claim, self._head.known_words):
            return None
        return to_probability(self._head.score(encoder.read(passage.text, claim)))


class Passage(Struct, frozen=True):
    """Successive sentences of a text.

    Attributes:
        place: Of the text, from 0.
        size: How many sentences were wanted; a shorter text is a passage as a whole.
    """

    place: int
    size: int
    text: str


def split_passages(texts: Sequence[str]) -> list[Passage]:
    """Return each run of two and of three sentences of each text."""
    return [
        Passage(place, size, " ".join(said[start : start + size]))
        for place, text in enumerate(texts)
        if (said := sentences(text))
        for size in READ_PASSAGES
        for start in range(max(len(said) - size + 1, 1))
    ]


def choose_passages(
    claim: Vector, passages: Sequence[Passage], vectors: Mapping[str, Vector], most: Mapping[int, int]
) -> list[Passage]:
    """Return the passages that are most like a claim, `most` of each size; `vectors` has one for each text."""
    order = sorted(passages, key=lambda each: -cosine(claim, vectors[each.text]))
    chosen = ([each for each in order if each.size == size][:count] for size, count in most.items())
    return list({(each.place, each.text): each for group in chosen for each in group}.values())
