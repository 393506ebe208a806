"""Vectors as they stand in documents."""

import base64

import numpy as np
import pytest

from parley.memory.stored_vectors import decode_vector, encode_vector, measure_likeness

RANDOM = np.random.default_rng(7)


def unit_vector() -> np.ndarray:
    vector = RANDOM.normal(size=384).astype(np.float32)
    return vector / np.linalg.norm(vector)


def test_a_stored_vector_takes_half_as_much_and_is_as_like_to_others_as_before() -> None:
    one, other = unit_vector(), unit_vector()
    text = encode_vector(one)
    assert len(text) <= len(base64.b64encode(one.tobytes())) / 2 + 2
    read = decode_vector(text)
    assert read.dtype == np.float32
    assert measure_likeness(read, one) == pytest.approx(1.0, abs=1e-4)
    assert measure_likeness(read, other) == pytest.approx(measure_likeness(one, other), abs=1e-4)


def test_a_vector_that_an_earlier_version_stored_is_read() -> None:
    vector = unit_vector()
    assert decode_vector(base64.b64encode(vector.tobytes()).decode()).tolist() == vector.tolist()


@pytest.mark.parametrize("text", ["2:AHw=", "AACAfw==", "2:A", None])
def test_a_damaged_vector_is_an_error(text: object) -> None:
    with pytest.raises(ValueError):
        decode_vector(text)
