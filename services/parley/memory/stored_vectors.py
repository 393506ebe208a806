"""Vectors as they stand in documents, and how like they are."""

import base64
from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

Matrix = NDArray[np.float32]

_TYPE: Final = "<f4"


def encode_vector(vector: Sequence[float]) -> str:
    """Return a vector as text."""
    return base64.b64encode(np.array(vector, dtype=_TYPE).tobytes()).decode()


def decode_vector(text: object) -> Matrix:
    """Return the vector that `encode_vector` wrote. Raise ValueError if it is damaged."""
    vector = np.frombuffer(base64.b64decode(str(text)), dtype=_TYPE)
    if not np.isfinite(vector).all():
        raise ValueError("a stored vector holds a number that is not finite")
    return vector


def find_likeness(vector: Matrix, others: Sequence[Matrix]) -> Matrix:
    """Return the cosine of a vector with each other one; -1 with those of another length."""
    return np.array(
        [float(other @ vector) if len(other) == len(vector) else -1.0 for other in others], np.float32
    )
