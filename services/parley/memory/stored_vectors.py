"""Vectors as they stand in documents, and how like they are."""

import asyncio
import base64
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Matrix: TypeAlias = NDArray[np.float32]
else:
    Matrix = Any  # numpy is imported by what computes: the service starts without it

_WHOLE: Final = "<f4"
_HALF: Final = "<f2"
_MARK: Final = "2:"
"""Before a vector whose numbers have two bytes: half as long, and cosines stay the same to four digits. Without it they have four, as an
earlier version wrote them."""


async def import_numpy() -> None:
    """Import numpy on a thread, unless it is imported: on the event loop this would stop all else for 50 ms."""
    if "numpy" not in sys.modules:
        await asyncio.to_thread(import_module, "numpy")


def to_vector(numbers: Sequence[float]) -> Matrix:
    """Return numbers as a vector."""
    import numpy as np

    return np.array(numbers, np.float32)


def is_whole(vector: Matrix) -> bool:
    """Return whether a vector has numbers, all of them finite."""
    import numpy as np

    return len(vector) > 0 and bool(np.isfinite(vector).all())


def encode_vector(vector: Matrix) -> str:
    """Return a vector as text."""
    import numpy as np

    return _MARK + base64.b64encode(np.array(vector, dtype=_HALF).tobytes()).decode()


def decode_vector(text: object) -> Matrix:
    """Return the vector that `encode_vector` wrote. Raise ValueError if it is damaged."""
    import numpy as np

    numbers = str(text).removeprefix(_MARK)
    kind = _WHOLE if numbers == text else _HALF
    vector = np.frombuffer(base64.b64decode(numbers), dtype=kind).astype(np.float32)
    if not np.isfinite(vector).all():
        raise ValueError("a stored vector holds a number that is not finite")
    return vector


def measure_likeness(one: Matrix, other: Matrix) -> float:
    """Return the cosine of two vectors; -1 if they have different lengths."""
    return float(one @ other) if len(one) == len(other) else -1.0


def find_likeness(vectors: Sequence[Matrix], others: Sequence[Matrix]) -> Matrix:
    """Return the cosine of each vector with each other one, in a row for each vector; -1 for two of different lengths."""
    import numpy as np

    likeness = np.full((len(vectors), len(others)), -1.0, np.float32)
    for size in {len(each) for each in vectors}:
        rows = [place for place, each in enumerate(vectors) if len(each) == size]
        columns = [place for place, each in enumerate(others) if len(each) == size]
        if columns:
            ours, theirs = (
                np.stack([vectors[row] for row in rows]),
                np.stack([others[each] for each in columns]),
            )
            # `@` would wake the threads of the library for linear algebra.
            likeness[np.ix_(rows, columns)] = np.einsum("ik,jk->ij", ours, theirs)
    return likeness
