"""MiniLM with products of eight-bit numbers gives the vectors that it has with floats."""

from typing import Any

import numpy as np
import onnx
import pytest
from numpy.typing import NDArray
from onnx import numpy_helper

from parley.convergence.eight_bit_products import clips_products
from parley.convergence.minilm_graph import ATTENDED, CONTEXT, RAISED, STATES
from parley.convergence.model_files import MINILM_WEIGHTS, verified_file
from parley.convergence.models import MiniLm

TEXTS = [
    "",
    "No.",
    "!!!!!!",
    "日本語のテキスト",
    "Use Kafka for the order pipeline, since orders have to be replayed.",
    "Keep the monolith until its build takes more than ten minutes. " * 20,
]
LENGTH = np.sqrt(384)
"""Of a normalized vector, before its weights and its bias."""
LEAST_GELU = -0.16998


@pytest.mark.parametrize("text", TEXTS)
def test_a_text_has_the_vector_that_products_of_floats_give(
    minilm: MiniLm, minilm_of_floats: MiniLm, text: str
) -> None:
    one, other = (each.embed(text).astype(np.float64) for each in (minilm, minilm_of_floats))
    assert 1 - one @ other / np.linalg.norm(one) / np.linalg.norm(other) < 1e-5


def test_only_a_processor_that_clips_products_of_eight_bits_has_the_graph_of_floats(
    minilm: MiniLm, minilm_of_floats: MiniLm
) -> None:
    assert "token_type_ids" in minilm_of_floats._inputs
    assert ("token_type_ids" in minilm._inputs) is clips_products()


class Weights:
    """The weights of MiniLM's file as floats."""

    def __init__(self) -> None:
        graph = onnx.load(str(verified_file(*MINILM_WEIGHTS))).graph
        self._values = {each.name: numpy_helper.to_array(each) for each in graph.initializer}
        self._matrices = [each for each in self._values if each.startswith("val_") and each.endswith("_q")]

    def vector(self, name: str) -> NDArray[Any]:
        return self._values[f"inner.{name}"]

    def matrix(self, layer: int, place: int) -> NDArray[Any]:
        name = self._matrices[6 * layer + place]
        return np.asarray(self._values[name] * self._values[name.removesuffix("q") + "scale"])

    def bound_normalized(self, name: str) -> float:
        return float((LENGTH * abs(self.vector(f"{name}.weight")) + abs(self.vector(f"{name}.bias"))).max())

    def bound_product(self, name: str, matrix: NDArray[Any], bias: str) -> tuple[float, float]:
        """Return the least and the most that a product of a normalized vector can have, as Cauchy and Schwarz bound it."""
        radius = LENGTH * np.linalg.norm(self.vector(f"{name}.weight")[:, None] * matrix, axis=0)
        middle = self.vector(f"{name}.bias") @ matrix + self.vector(bias)
        return float((middle - radius).min()), float((middle + radius).max())


def test_no_text_has_numbers_beyond_what_the_two_parts_can_hold() -> None:
    weights = Weights()
    states = "embeddings.LayerNorm"
    for layer in range(6):
        name = f"encoder.layer.{layer}"
        attended = f"{name}.attention.output.LayerNorm"
        assert weights.bound_normalized(states) <= STATES.most == -STATES.least
        least, most = weights.bound_product(
            states, weights.matrix(layer, 2), f"{name}.attention.self.value.bias"
        )
        assert CONTEXT.least <= least <= most <= CONTEXT.most, "a mean of values is none of the extremes"
        assert weights.bound_normalized(attended) <= ATTENDED.most == -ATTENDED.least
        _, most = weights.bound_product(attended, weights.matrix(layer, 4), f"{name}.intermediate.dense.bias")
        assert RAISED.least <= LEAST_GELU
        assert most <= RAISED.most
        states = f"{name}.output.LayerNorm"
