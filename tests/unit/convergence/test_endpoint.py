"""What an embeddings endpoint answers is vectors, or refused: one bad number would spoil every comparison."""

from typing import Any

import numpy as np
import pytest

from parley.convergence.endpoint import vectors_of
from parley.runtime.errors import ParleyError


def test_vectors_come_out_with_length_one() -> None:
    one, other = vectors_of([[3.0, 4.0], [0.0, 0.0]])
    assert one.tolist() == pytest.approx([0.6, 0.8])
    assert np.isfinite(other).all()


@pytest.mark.parametrize(
    "answered",
    [
        [[1.0, float("nan")]],
        [[float("inf"), 0.0]],
        [[1e39, 0.0]],
        [[]],
        [[1.0], [1.0, 2.0]],
        [["x"]],
        [None],
        [[None]],
    ],
    ids=["nan", "inf", "too large", "none", "of two lengths", "text", "null", "null inside"],
)
def test_what_is_no_vector_is_refused(answered: Any) -> None:
    with pytest.raises(ParleyError, match="embeddings endpoint") as raised:
        vectors_of(answered)
    assert raised.value.reason == "EMBEDDINGS_UNAVAILABLE"
