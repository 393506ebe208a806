"""An encoder's ONNX graph as it is used: its input of any length, its pooled vector as output, and no work that nobody reads or that is done already."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any, Final

from parley.convergence.eight_bit_products import make_weights_unsigned, products_are_cut_off
from parley.convergence.merged_graph import merge_equal_nodes

__all__ = ["POOLED", "pooled_graph"]

POOLED: Final = "pooled"
"""The output: the vector that goes into the last layer."""

_MATRIX_PRODUCTS: Final = frozenset({"Gemm", "MatMul", "MatMulInteger"})
_QUANTIZERS: Final = frozenset({"DynamicQuantizeLinear", "QuantizeLinear", "DequantizeLinear"})
_ONE: Final = "pooled/one"
_ROWS: Final = "pooled/rows"


def pooled_graph(file: Path) -> bytes:
    """Return the model of a file with a free input length, and with the vector that goes into its last layer as its output."""
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
    _leave_out_unread_positions(graph)
    if products_are_cut_off():
        make_weights_unsigned(graph)
    merge_equal_nodes(graph)
    return model.SerializeToString()


def _before_last_layer(graph: Any) -> str:
    makers = _makers(graph)
    node = makers[graph.output[0].name]
    while node.op_type not in _MATRIX_PRODUCTS:
        # Towards the input through what scales and shifts the product: the first of its inputs that a node makes.
        node = makers[next(name for name in node.input if name in makers)]
    source: str = node.input[0]
    while source in makers and makers[source].op_type in _QUANTIZERS:
        source = makers[source].input[0]
    return source


def _leave_out_unread_positions(graph: Any) -> None:
    """Let attention compute the distances that occur in a text, and not all 512 of DeBERTa's table, of which it then picks.

    Each number that is picked is the very one that it was. An encoder that does it in another way is left as it is.
    """
    import numpy as np
    from onnx import numpy_helper

    makers, added = _makers(graph), []
    readers: dict[str, list[Any]] = defaultdict(list)
    for node in graph.node:
        for name in _read(node):
            readers[name].append(node)
    for picked in [node for node in graph.node if node.op_type == "GatherElements"]:
        table = _made_by(makers, picked.input[0], ("MatMul", 1), ("Transpose", 0), ("Tile", 0))
        index = _made_by(
            makers, picked.input[1], ("Expand", 0), ("Squeeze", 0), ("Clip", 0)
        )  # so that none is below 0
        if (
            table
            and index
            and all(_is_for_one(node.output[0], readers, makers) for node in (*table, index[0]))
        ):
            added += _only_between(picked.output[0], repeated=table[-1], spread=index[0])
    if added:
        graph.initializer.append(numpy_helper.from_array(np.array([1], np.int64), _ONE))
        graph.initializer.append(numpy_helper.from_array(np.array([-2], np.int64), _ROWS))
        _order(graph, [*graph.node, *added])


def _made_by(makers: Mapping[str, Any], name: str, *steps: tuple[str, int]) -> list[Any]:
    """Return the nodes of these kinds that make something, last first, each by so manyth input; none where others make it."""
    found = []
    for kind, place in steps:
        node = makers.get(name)
        if node is None or node.op_type != kind:
            return []
        found.append(node)
        name = node.input[place]
    return found


def _is_for_one(name: str, readers: Mapping[str, Sequence[Any]], makers: Mapping[str, Any]) -> bool:
    """Return whether one node reads this, but for those that ask how long its rows are, which a cut does not change."""
    others = [node for node in readers[name] if node.op_type == "Shape"]
    lengths = [each for node in others for each in readers[node.output[0]]]
    return len(readers[name]) - len(others) == 1 and all(_takes_last(each, makers) for each in lengths)


def _takes_last(node: Any, makers: Mapping[str, Any]) -> bool:
    from onnx import numpy_helper

    start = makers.get(node.input[1]) if node.op_type == "Slice" else None
    if start is None or start.op_type != "Constant":
        return False
    return bool(numpy_helper.to_array(start.attribute[0].t).tolist() == [-1])


def _only_between(name: str, *, repeated: Any, spread: Any) -> list[Any]:
    """Cut the table to the rows from the first to the last that are picked, and count from there; return the nodes for it."""
    from onnx.helper import make_node

    index, table = spread.input[0], repeated.input[0]
    first, end, least, last, most = (f"{name}/{each}" for each in ("first", "end", "least", "last", "most"))
    spread.input[0], repeated.input[0] = f"{name}/index", f"{name}/table"
    return [
        make_node("ReduceMin", [index], [least], keepdims=0),
        make_node("Reshape", [least, _ONE], [first]),
        make_node("ReduceMax", [index], [most], keepdims=0),
        make_node("Reshape", [most, _ONE], [last]),
        make_node("Add", [last, _ONE], [end]),
        make_node("Sub", [index, first], [f"{name}/index"]),
        make_node("Slice", [table, first, end, _ROWS], [f"{name}/table"]),
    ]


def _order(graph: Any, nodes: list[Any]) -> None:
    """Put nodes into a graph so that each stands behind those that it reads, as ONNX wants it."""
    by_name = {name: place for place, node in enumerate(nodes) for name in node.output}
    before = {
        place: {by_name[name] for name in _read(node) if name in by_name} for place, node in enumerate(nodes)
    }
    ordered = [nodes[place] for place in TopologicalSorter(before).static_order()]
    del graph.node[:]
    graph.node.extend(ordered)


def _read(node: Any) -> set[str]:
    """Return what a node reads, in its branches too."""
    branches = [each.g for each in node.attribute if each.HasField("g")]
    return set(node.input).union(*(_read(inner) for branch in branches for inner in branch.node))


def _makers(graph: Any) -> dict[str, Any]:
    return {name: node for node in graph.node for name in node.output}
