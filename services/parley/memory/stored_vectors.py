"""Vectors as they stand in documents, and how like they are."""

import base64
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix: TypeAlias = NDArray[np.float32]
else:
    Matrix = Any  # numpy is imported by what computes: the service starts without it

_TYPE: Final = "<f4"


def to_vector(numbers: Sequence[float]) -> Matrix:
    """Return numbers as a vector."""
    import numpy as np

    return np.array(numbers, np.float32)


def encode_vector(vector: Sequence[float]) -> str:
    """Return a vector as text."""
    import numpy as np

    return base64.b64encode(np.array(vector, dtype=_TYPE).tobytes()).decode()


def decode_vector(text: object) -> Matrix:
    """Return the vector that `encode_vector` wrote. Raise ValueError if it is damaged."""
    import numpy as np

    vector = np.frombuffer(base64.b64decode(str(text)), dtype=_TYPE)
    if not np.isfinite(vector).all():
        raise ValueError("a stored vector holds a number that is not finite")
    return vector


def find_likeness(vector: Matrix, others: Sequence[Matrix]) -> Matrix:
    """Return the cosine of a vector with each other one; -1 with those of another length."""
    return to_vector([float(other @ vector) if len(other) == len(vector) else -1.0 for other in others])
