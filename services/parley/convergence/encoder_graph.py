"""An encoder's ONNX graph as it is used: with input of any length, the pooled vector as output, and exact products."""

from pathlib import Path
from typing import Any, Final

import onnx

from parley.convergence.eight_bit_products import clips_products, make_weights_unsigned

POOLED: Final = "pooled"
"""The output: the input vector of the last layer."""

_MATRIX_PRODUCTS: Final = frozenset({"Gemm", "MatMul", "MatMulInteger"})
_QUANTIZERS: Final = frozenset({"DynamicQuantizeLinear", "QuantizeLinear", "DequantizeLinear"})


def load_pooled_graph(file: Path) -> bytes:
    """Return the model of a file with a free input length; its output is the input vector of its last layer."""
    model = onnx.load(str(file))
    graph = model.graph
    source = _find_before_last_layer(graph)
    for given in graph.input:
        given.type.tensor_type.shape.dim[1].dim_param = "length"
    del graph.value_info[:]  # shapes that hold for the fixed length alone
    graph.node.append(onnx.helper.make_node("Identity", [source], [POOLED]))
    del graph.output[:]
    graph.output.append(onnx.helper.make_tensor_value_info(POOLED, onnx.TensorProto.FLOAT, None))
    if clips_products():
        make_weights_unsigned(graph)
    return model.SerializeToString()


def _find_before_last_layer(graph: Any) -> str:
    makers = _map_makers(graph)
    node = makers[graph.output[0].name]
    while node.op_type not in _MATRIX_PRODUCTS:
        # Towards the input, past scales and shifts of the product: the first input that a node makes.
        node = makers[next(name for name in node.input if name in makers)]
    source: str = node.input[0]
    while source in makers and makers[source].op_type in _QUANTIZERS:
        source = makers[source].input[0]
    return source


def _map_makers(graph: Any) -> dict[str, Any]:
    return {name: node for node in graph.node for name in node.output}
