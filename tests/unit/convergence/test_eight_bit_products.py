"""Products of eight-bit numbers are exact on every processor."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor_value_info

from parley.convergence.eight_bit_products import clips_products, make_weights_unsigned
from parley.convergence.session import create_session

GIVEN = np.array([[255, 255, 0, 9], [1, 128, 255, 255]], np.uint8)
ZERO = np.array(5, np.uint8)
WEIGHTS = np.array([[127, -128], [127, -128], [3, 100], [-90, 127]], np.int8)


def graph_of(weights: Any, zero_point: Any, *inputs: str) -> Any:
    return make_graph(
        [make_node("MatMulInteger", ["given", "weights", *inputs], ["product"])],
        "graph",
        [make_tensor_value_info("given", TensorProto.UINT8, ["rows", 4])],
        [make_tensor_value_info("product", TensorProto.INT32, None)],
        [
            numpy_helper.from_array(value, name)
            for name, value in (("weights", weights), ("zero", ZERO), ("zero of weights", zero_point))
        ],
    )


def product(graph: Any) -> Any:
    model = make_model(graph, opset_imports=[make_opsetid("", 13)], ir_version=8)
    return create_session(model.SerializeToString()).run(None, {"given": GIVEN})[0]


def exact(weights: Any, zero_point: Any) -> Any:
    return (GIVEN.astype(int) - ZERO) @ (weights.astype(int) - zero_point.astype(int))


@pytest.mark.parametrize("zero_point", [np.array(0, np.int8), np.array([-7, 20], np.int8)])
def test_products_with_weights_made_unsigned_are_exact(zero_point: Any) -> None:
    graph = graph_of(WEIGHTS, zero_point, "zero", "zero of weights")
    make_weights_unsigned(graph)
    assert np.array_equal(product(graph), exact(WEIGHTS, zero_point))


def test_a_processor_that_is_said_to_be_exact_is() -> None:
    zero_point = np.array(0, np.int8)
    computed = product(graph_of(WEIGHTS, zero_point, "zero", "zero of weights"))
    assert np.array_equal(computed, exact(WEIGHTS, zero_point)) is not clips_products()


def test_weights_that_are_unsigned_stay_as_they_are() -> None:
    weights, zero_point = WEIGHTS.view(np.uint8), np.array(3, np.uint8)
    graph = graph_of(weights, zero_point, "zero", "zero of weights")
    make_weights_unsigned(graph)
    assert np.array_equal(product(graph), exact(weights, zero_point))


def test_a_product_without_zero_points_stays_as_it_is() -> None:
    graph = graph_of(WEIGHTS, np.array(0, np.int8))
    before = graph.SerializeToString()
    make_weights_unsigned(graph)
    assert graph.SerializeToString() == before
