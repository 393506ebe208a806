"""Whether two positions are the same answer: the agreement model, and a cache of its results."""

import asyncio
import re
from collections import OrderedDict
from collections.abc import Sequence
from enum import Enum
from functools import lru_cache
from operator import ne
from typing import TYPE_CHECKING, Final, Protocol

from msgspec import Struct

from parley.convergence.encoder_threads import EncoderThreads
from parley.convergence.head import EncoderHead

if TYPE_CHECKING:
    from parley.convergence.encoder import CrossEncoder

_SAME_FROM: Final = 0.7
_APART_UP_TO: Final = 0.3
_EMPHASIS: Final = re.compile(r"(?<![\w*`])[*`]+|(?<![*`])[*`]+(?![\w*`])")
"""Markdown around words; between two it may be a product or a power. Each run of marks is looked at once, however long it is."""
_UNIT: Final = re.compile(r"\d\s?([^\W\d_]{1,3})(?!\w)")
"""What a number counts: `mW` is not `MW`."""
_WORD: Final = re.compile(r"\w+")
_QUOTES: Final = " \"'"
_EDGES: Final = f"{_QUOTES}.,;:!?"

Pair = tuple[str, str]
"""Two positions."""


class Relation(Enum):
    """The relation of two positions."""

    SAME = "same"
    APART = "apart"
    UNSURE = "unsure"


def relation(probability: float | None) -> Relation:
    """Return the relation for the probability that two positions are one answer; None: unknown."""
    if probability is None or _APART_UP_TO < probability < _SAME_FROM:
        return Relation.UNSURE
    return Relation.SAME if probability >= _SAME_FROM else Relation.APART


def pair_relation(pair: Pair, probability: float | None) -> Relation:
    """Return the relation of two positions. Two positions that differ in one word are never taken for the same answer.

    "The metal is iron" and "The metal is copper" read alike, and models take one such pair in twenty for the same.
    """
    found = relation(probability)
    return Relation.UNSURE if found is Relation.SAME and _differs_in_one_word(*pair) else found


def _differs_in_one_word(one: str, other: str) -> bool:
    words, others = (_WORD.findall(each.casefold()) for each in (one, other))
    return len(words) == len(others) and sum(map(ne, words, others)) == 1


class AgreementModel(Protocol):
    """A model that reads two positions together."""

    async def estimate_probability(self, one: str, other: str) -> float | None:
        """Return the probability that two positions are the same answer, or None if the model cannot tell.

        It depends neither on their order nor on other pairs.

        Raises:
            ParleyError: UNAVAILABLE `AGREEMENT_MODEL_UNAVAILABLE`.
        """


class NliAgreement:
    """A cross-encoder with a trained head, on threads of its own.

    Pairs are spread over the threads, since a round waits for all of them. Each is read alone: padding would change what is read.
    A pair in a language that the encoder does not know has no probability.
    """

    def __init__(self, encoder: EncoderThreads, head: EncoderHead) -> None:
        """Raise ConfigurationError if the head was trained for another encoder."""
        encoder.check_head(head, "agreement-head")
        self._encoder = encoder
        self._head = head

    async def estimate_probability(self, one: str, other: str) -> float | None:
        """Read a pair as soon as a thread is free."""
        return await self._encoder.run(lambda encoder: self._read_pair(encoder, one, other))

    def _read_pair(self, encoder: "CrossEncoder", one: str, other: str) -> float | None:
        if not all(encoder.knows_language(each, self._head.known_words) for each in (one, other)):
            return None
        return self._head.probability(encoder.read, one, other)


class _PendingPair(Struct, eq=False):
    """A pair that is being read or waits for it, and its number of callers."""

    result: asyncio.Task[float | None]
    callers: int = 0


class Agreements:
    """Probabilities that positions are one answer; recent ones are cached, and a pair is read once for all its callers.

    Without a model, they are known only of positions with the same words.
    """

    def __init__(self, model: AgreementModel | None, *, cache: int) -> None:
        self._model = model
        self._cache_size = cache
        self._cache: OrderedDict[Pair, float | None] = OrderedDict()
        self._pending_pairs: dict[Pair, _PendingPair] = {}

    async def estimate_probabilities(self, pairs: Sequence[Pair]) -> list[float | None]:
        """Return the probabilities of pairs, in their order.

        The same words are the same answer in any language. The result is None if a position is empty.

        Raises:
            ParleyError: UNAVAILABLE `AGREEMENT_MODEL_UNAVAILABLE`.
        """
        keys = [_pair_key(*pair) for pair in pairs]
        found = {key: self._lookup(key) for key in keys if self._needs_no_reading(key)}
        missing = {key: self._find_or_start(key) for key in keys if key not in found}
        for each in missing.values():
            each.callers += 1
        try:
            # Shielded: other callers may wait for the same pair.
            results = await asyncio.gather(*(asyncio.shield(each.result) for each in missing.values()))
        finally:
            for key, each in missing.items():
                self._release(key, each)
        found |= zip(missing, results, strict=True)
        return [found[key] for key in keys]

    def _find_or_start(self, key: Pair) -> _PendingPair:
        if key not in self._pending_pairs:
            self._pending_pairs[key] = _PendingPair(asyncio.create_task(self._read(key)))
        return self._pending_pairs[key]

    def _needs_no_reading(self, key: Pair) -> bool:
        return self._model is None or key in self._cache or not all(key) or _words(key[0]) == _words(key[1])

    async def _read(self, key: Pair) -> float | None:
        assert self._model is not None
        probability = await self._model.estimate_probability(*key)
        self._store(key, probability)
        return probability

    def _release(self, key: Pair, reading: _PendingPair) -> None:
        """Remove one caller; cancel a pair without callers."""
        reading.callers -= 1
        if not reading.callers:
            reading.result.cancel()
            del self._pending_pairs[key]

    def _lookup(self, key: Pair) -> float | None:
        if not all(key):
            return None
        if _words(key[0]) == _words(key[1]):
            return 1.0
        if self._model is None:
            return None
        self._cache.move_to_end(key)
        return self._cache[key]

    def _store(self, key: Pair, probability: float | None) -> None:
        if self._cache_size:
            self._cache[key] = probability
            self._cache.move_to_end(key)
            if len(self._cache) > self._cache_size:
                self._cache.popitem(last=False)


def _pair_key(one: str, other: str) -> Pair:
    first, second = sorted((" ".join(one.split()), " ".join(other.split())))
    return first, second


def words_key(one: str, other: str) -> Pair:
    """Return the words of two positions, in the order of the alphabet."""
    first, second = sorted((_words(one), _words(other)))
    return first, second


@lru_cache(256)  # each position is compared with all the others
def _words(position: str) -> str:
    """Return the words of a position, without case, extra spaces and marks around it; then its units, in which case tells."""
    plain = " ".join(_EMPHASIS.sub("", position).split()).lstrip(_QUOTES).rstrip(_EDGES)
    return "\n".join([plain.casefold(), *_UNIT.findall(plain)])
