"""An encoder's ONNX graph as it is used: with input of any length, the pooled vector as output, and exact products.

It takes the package `onnx`, which the extra `encoder` installs.
"""

from functools import cache
from pathlib import Path
from typing import Any, Final

from parley.convergence.session import onnx_session

POOLED: Final = "pooled"
"""The output: the input vector of the last layer."""

_MATRIX_PRODUCTS: Final = frozenset({"Gemm", "MatMul", "MatMulInteger"})
_QUANTIZERS: Final = frozenset({"DynamicQuantizeLinear", "QuantizeLinear", "DequantizeLinear"})
_WEIGHTS: Final = 1
_ZERO_POINT: Final = 3
"""Places of a MatMulInteger's inputs."""


def load_pooled_graph(file: Path) -> bytes:
    """Return the model of a file with a free input length; its output is the input vector of its last layer."""
    import onnx

    model = onnx.load(str(file))
    graph = model.graph
    source = _before_last_layer(graph)
    for given in graph.input:
        given.type.tensor_type.shape.dim[1].dim_param = "length"
    del graph.value_info[:]  # shapes that hold for the fixed length alone
    graph.node.append(onnx.helper.make_node("Identity", [source], [POOLED]))
    del graph.output[:]
    graph.output.append(onnx.helper.make_tensor_value_info(POOLED, onnx.TensorProto.FLOAT, None))
    if clips_products():
        make_weights_unsigned(graph)
    return model.SerializeToString()


def _before_last_layer(graph: Any) -> str:
    makers = _makers(graph)
    node = makers[graph.output[0].name]
    while node.op_type not in _MATRIX_PRODUCTS:
        # Towards the input, past scales and shifts of the product: the first input that a node makes.
        node = makers[next(name for name in node.input if name in makers)]
    source: str = node.input[0]
    while source in makers and makers[source].op_type in _QUANTIZERS:
        source = makers[source].input[0]
    return source


def _makers(graph: Any) -> dict[str, Any]:
    return {name: node for node in graph.node for name in node.output}


@cache
def clips_products() -> bool:
    """Return whether this processor clips products of unsigned and signed numbers; it computes one to find out."""
    import numpy as np
    from onnx import TensorProto, helper, numpy_helper

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
    (product,) = onnx_session(model.SerializeToString()).run(None, {"given": given})
    return int(product[0, 0]) != 2 * 255 * 127


def make_weights_unsigned(graph: Any) -> None:
    """Add 128 to signed weights and to their zero points: the products are the same, and no processor clips them.

    They take longer: 1.6 times the whole encoder's time on a processor with instructions for signed ones.
    """
    import numpy as np
    from onnx import TensorProto, numpy_helper

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
