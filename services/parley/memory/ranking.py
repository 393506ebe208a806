"""The order in which debates are recalled: by meaning, words, importance, age and tier.

The weights are chosen on `tests/data/memory/recall-open.yaml`; `docs/architecture/memory.md` says what each is worth.
"""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from msgspec import Struct

from parley.memory.stored_vectors import to_vector
from parley.memory.traces import Trace
from parley.v1.memory_pb2 import Relevance

CANDIDATES: Final = 50
"""How many of the debates nearest in meaning are ranked, unless more are asked for."""
_WORDS: Final = 0.1
_CROWDING: Final = 0.2
_COMPANY: Final = 0.2
_IMPORTANCE: Final = 0.02
_FRESHNESS: Final = 0.02
_PRESENCE: Final = 0.02
_FRESHNESS_HALF_LIFE_SECONDS: Final = 365 * 86400.0
_CROWD: Final = 5
"""How many of the others say how crowded the place of a candidate is."""
_FLOOR_OF_COMPANIONS: Final = 0.5
"""The likeness to the text that a debate on the matter of the best one needs, as a share of the floor."""
_SAME_MATTER: Final = 0.5
"""The cosine from which on two debates are taken to be on one matter."""

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    _Array: TypeAlias = NDArray[np.float64]
else:
    _Array = Any  # numpy is imported by what computes: the service starts without it


class Candidate(Struct, frozen=True):
    """A debate that may be recalled; `similarity` is the cosine of its vector, of length 1, and the text's.

    Attributes:
        presence: How present it is in the tiers, 0 to 1.
    """

    key: str
    similarity: float
    vector: Sequence[float]
    trace: Trace
    presence: float = 0.0


class Ranked(Struct, frozen=True):
    """A candidate that is recalled, and why.

    Attributes:
        similarity: The cosine of its vector and the text's.
        share: What share of the text's words it has, 0 to 1.
        score: By which it has its place.
    """

    key: str
    similarity: float
    share: float
    score: float

    @property
    def relevance(self) -> Relevance:
        """Why it is recalled, as it is shown."""
        return Relevance(
            similarity_percent=100 * min(max(self.similarity, 0.0), 1.0),
            words_percent=100 * min(self.share, 1.0),
            score=self.score,
        )


def lowest_similarity(floor: float) -> float:
    """Return the least cosine of a candidate that can be recalled with this floor."""
    return floor * _FLOOR_OF_COMPANIONS


def rank(words: Sequence[str], candidates: Sequence[Candidate], floor: float, now: float) -> list[Ranked]:
    """Return the debates that are recalled for a text with these words, best first.

    None if none of them is as similar as the floor. Those below it are recalled if they are on the matter of the best one.
    `now` is in seconds of Unix time.
    """
    import numpy as np

    similarities = np.array([each.similarity for each in candidates])
    if not candidates or similarities.max() < floor:
        return []
    vectors = np.stack([to_vector(each.vector) for each in candidates])
    # without the threads that `@` wakes
    likeness = np.einsum("ik,jk->ij", vectors, vectors).astype(np.float64)
    shares = _share_words(words, candidates)
    scores = (
        similarities
        + _WORDS * shares
        - _CROWDING * _measure_crowding(likeness)
        + _IMPORTANCE * np.array([each.trace.importance for each in candidates])
        + _FRESHNESS * _measure_freshness(candidates, now)
        + _PRESENCE * np.array([each.presence for each in candidates])
    )
    best = int(scores.argmax())
    scores = scores + _COMPANY * likeness[best]
    kept = (similarities >= floor) | (likeness[best] >= _SAME_MATTER)
    return [
        Ranked(candidates[place].key, similarities[place], shares[place], scores[place])
        for place in np.argsort(-scores, kind="stable")
        if kept[place]
    ]


def _share_words(words: Sequence[str], candidates: Sequence[Candidate]) -> _Array:
    """Return what share of the words each candidate has, 0 to 1; a word counts for more the fewer candidates have it."""
    import numpy as np

    held = np.array([[word in each.trace.words for word in words] for each in candidates])
    having = held.sum(axis=0)
    weights = np.log1p((len(candidates) - having + 0.5) / (having + 0.5))
    return np.asarray((held * weights).sum(axis=1) / (weights.sum() or 1.0))


def _measure_crowding(likeness: _Array) -> _Array:
    """Return how alike each candidate is to the five others that are most like it.

    What many debates are like is near to every text, and says less about this one.
    """
    import numpy as np

    count = min(_CROWD, len(likeness) - 1)
    if not count:
        return np.zeros(len(likeness))
    others: Any = likeness.copy()
    np.fill_diagonal(others, -1.0)
    return np.asarray(np.sort(others, axis=1)[:, -count:].mean(axis=1))


def _measure_freshness(candidates: Sequence[Candidate], now: float) -> _Array:
    import numpy as np

    ages = np.array([max(now - each.trace.concluded, 0.0) for each in candidates])
    return np.asarray(np.exp2(-ages / _FRESHNESS_HALF_LIFE_SECONDS))
