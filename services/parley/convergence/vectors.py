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


def group_by_length(lengths: Sequence[int], most: int, start: int) -> list[list[int]]:
    """Return places of lengths in the groups that take least together: each takes `start`, and the longest length for every place.

    A group has one place, or the lengths of its places, made equal, add up to `most` at most.
    """
    places = sorted(range(len(lengths)), key=lambda place: -lengths[place])
    # To group the first places, by how many they are: what that takes, and where the last group begins.
    ways = [(0, 0)]
    for end in range(1, len(places) + 1):
        found = []
        for begin in reversed(range(end)):
            size = (end - begin) * lengths[places[begin]]
            if size > most and end - begin > 1:
                break
            found.append((ways[begin][0] + start + size, begin))
        ways.append(min(found))
    groups, end = [], len(places)
    while end:
        begin = ways[end][1]
        groups.append(places[begin:end])
        end = begin
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
