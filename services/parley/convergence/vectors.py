"""Vectors of texts, and the combination of windows of a long text."""

from collections.abc import Sequence
from math import ceil
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vector: TypeAlias = NDArray[np.float32]
    """Of length 1, so that a product of two is their cosine."""
else:
    Vector = Any  # numpy is imported by what computes: a service starts without it

MAX_WINDOWS: Final = 64
"""A limit, so that no text blocks a model for seconds; texts above some 30,000 characters would need more."""


def unit(vector: Vector) -> Vector:
    """Return the vector's direction. The null vector stays unchanged."""
    import numpy as np

    length = float(np.linalg.norm(vector))
    return (vector / length if length > 0 else vector).astype(np.float32)


def center(vector: Vector, question: Vector) -> Vector:
    """Return the direction from the question to a text: its content beyond the common topic."""
    return unit(vector - question)


def cosine(one: Vector, other: Vector) -> float:
    """Return the cosine of two directions, -1 to 1."""
    return float(one @ other)


def mean_direction(vectors: Sequence[Vector]) -> Vector:
    """Return the direction of the mean of several directions."""
    import numpy as np

    return vectors[0] if len(vectors) == 1 else unit(np.mean(np.stack(vectors), axis=0))


def group_by_length(lengths: Sequence[int], most: int) -> list[list[int]]:
    """Return the places of equal lengths together, in groups whose lengths add up to `most` at most, or of one place."""
    by_length: dict[int, list[int]] = {}
    for place, length in enumerate(lengths):
        by_length.setdefault(length, []).append(place)
    groups: list[list[int]] = []
    for length, places in by_length.items():
        size = max(most // max(length, 1), 1)
        groups += [places[start : start + size] for start in range(0, len(places), size)]
    return groups


def windows(length: int, most: int, overlap: int = 0) -> list[tuple[int, int]]:
    """Cut `length` units into windows of at most `most` that overlap by at least `overlap`, each a start and an end.

    They are as few as possible and of one size, so that none repeats most of the one before. Of more than `MAX_WINDOWS`, that many
    are kept, evenly spread, the first and the last among them.
    """
    if length <= most:
        return [(0, length)]
    count = ceil((length - overlap) / (most - overlap))
    size = ceil((length - overlap) / count) + overlap
    last = min(count, MAX_WINDOWS) - 1
    starts = [round(place * (length - size) / last) for place in range(last + 1)]
    return [(start, start + size) for start in starts]
