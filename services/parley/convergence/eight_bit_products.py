"""Products of unsigned and signed numbers of eight bits, which some processors clip."""

from functools import cache
from typing import Any, Final

import numpy as np
from onnx import TensorProto, helper, numpy_helper

from parley.convergence.session import create_session

_WEIGHTS: Final = 1
_ZERO_POINT: Final = 3
"""Places of a MatMulInteger's inputs."""


@cache
def clips_products() -> bool:
    """Return whether this processor clips products of unsigned and signed numbers; it computes one to find out.

    One that does not has instructions for them (VNNI), with which they take less time than products of floats.
    """
    large = numpy_helper.from_array(np.full((2, 1), 127, np.int8), "large")
    graph = helper.make_graph(
        [helper.make_node("MatMulInteger", ["given", "large"], ["product"])],
        "two products",
        [helper.make_tensor_value_info("given", TensorProto.UINT8, [1, 2])],
        [helper.make_tensor_value_info("product", TensorProto.INT32, [1, 1])],
        [large],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 13)], ir_version=8)
    given = np.full((1, 2), 255, np.uint8)
    (product,) = create_session(model.SerializeToString()).run(None, {"given": given})
    return int(product[0, 0]) != 2 * 255 * 127


def make_weights_unsigned(graph: Any) -> None:
    """Add 128 to signed weights and to their zero points: the products are the same, and no processor clips them.

    They take longer: 1.6 times the whole encoder's time on a processor with instructions for signed ones.
    """
    constants = {each.name: each for each in graph.initializer}
    unsigned: dict[str, str] = {}
    for product in graph.node:
        if product.op_type != "MatMulInteger" or len(product.input) < _ZERO_POINT + 1:
            continue
        read = [product.input[place] for place in (_WEIGHTS, _ZERO_POINT)]
        if any(name not in constants or constants[name].data_type != TensorProto.INT8 for name in read):
            continue
        for name in read:
            if name not in unsigned:
                unsigned[name] = f"{name}/unsigned"
                shifted = numpy_helper.to_array(constants[name]).astype(np.int16) + 128
                graph.initializer.append(numpy_helper.from_array(shifted.astype(np.uint8), unsigned[name]))
        product.input[_WEIGHTS], product.input[_ZERO_POINT] = (unsigned[name] for name in read)
