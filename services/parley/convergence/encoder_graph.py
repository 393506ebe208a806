"""An encoder's ONNX graph as it is used: its input of any length, its pooled vector as output, and no work whose result is unused or that is done already."""

import re
from collections import defaultdict
from collections.abc import Hashable, Iterator, Mapping, Sequence
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from typing import Any, Final

from parley.convergence.session import onnx_session

POOLED: Final = "pooled"
"""The output: the input vector of the last layer."""

_MATRIX_PRODUCTS: Final = frozenset({"Gemm", "MatMul", "MatMulInteger"})
_QUANTIZERS: Final = frozenset({"DynamicQuantizeLinear", "QuantizeLinear", "DequantizeLinear"})
_ONE: Final = "pooled/one"
_ROWS: Final = "pooled/rows"
_LAYER: Final = re.compile(r"\blayer\.\d+\b")
_FIRST_LAYER: Final = "layer.0"
_FEW_NUMBERS: Final = 16
"""The largest size of constants that are compared; weights are larger, and none of them exists twice."""
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
    _drop_unread_positions(graph)
    if clips_products():
        make_weights_unsigned(graph)
    merge_equal_nodes(graph)
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


def _drop_unread_positions(graph: Any) -> None:
    """Compute attention only for the distances that occur in a text, instead of all 512 of DeBERTa's table.

    The picked numbers are the same. An encoder of another structure is left unchanged.
    """
    import numpy as np
    from onnx import numpy_helper

    makers, added = _makers(graph), []
    readers: dict[str, list[Any]] = defaultdict(list)
    for node in graph.node:
        for name in _inputs(node):
            readers[name].append(node)
    for picked in [node for node in graph.node if node.op_type == "GatherElements"]:
        table = _producer_chain(makers, picked.input[0], ("MatMul", 1), ("Transpose", 0), ("Tile", 0))
        index = _producer_chain(
            makers, picked.input[1], ("Expand", 0), ("Squeeze", 0), ("Clip", 0)
        )  # so that none is below 0
        if (
            table
            and index
            and all(_has_one_reader(node.output[0], readers, makers) for node in (*table, index[0]))
        ):
            added += _slice_between(picked.output[0], repeated=table[-1], spread=index[0])
    if added:
        graph.initializer.append(numpy_helper.from_array(np.array([1], np.int64), _ONE))
        graph.initializer.append(numpy_helper.from_array(np.array([-2], np.int64), _ROWS))
        _order(graph, [*graph.node, *added])


def _producer_chain(makers: Mapping[str, Any], name: str, *steps: tuple[str, int]) -> list[Any]:
    """Return the chain of nodes that make `name`, last first: a kind and an input for each step. Return none if other nodes make it."""
    found = []
    for kind, place in steps:
        node = makers.get(name)
        if node is None or node.op_type != kind:
            return []
        found.append(node)
        name = node.input[place]
    return found


def _has_one_reader(name: str, readers: Mapping[str, Sequence[Any]], makers: Mapping[str, Any]) -> bool:
    """Return whether one node reads this, apart from nodes that only ask for its row length, which a cut does not change."""
    others = [node for node in readers[name] if node.op_type == "Shape"]
    lengths = [each for node in others for each in readers[node.output[0]]]
    return len(readers[name]) - len(others) == 1 and all(_reads_last(each, makers) for each in lengths)


def _reads_last(node: Any, makers: Mapping[str, Any]) -> bool:
    from onnx import numpy_helper

    start = makers.get(node.input[1]) if node.op_type == "Slice" else None
    if start is None or start.op_type != "Constant":
        return False
    return bool(numpy_helper.to_array(start.attribute[0].t).tolist() == [-1])


def _slice_between(name: str, *, repeated: Any, spread: Any) -> list[Any]:
    """Cut the table to the rows between the first and the last picked one, and shift the index; return the nodes for it."""
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
    """Order the nodes so that each comes after those that it reads, as ONNX requires."""
    by_name = {name: place for place, node in enumerate(nodes) for name in node.output}
    before = {
        place: {by_name[name] for name in _inputs(node) if name in by_name}
        for place, node in enumerate(nodes)
    }
    ordered = [nodes[place] for place in TopologicalSorter(before).static_order()]
    del graph.node[:]
    graph.node.extend(ordered)


def _inputs(node: Any) -> set[str]:
    """Return the inputs of a node, also those of its branches."""
    branches = [each.g for each in node.attribute if each.HasField("g")]
    return set(node.input).union(*(_inputs(inner) for branch in branches for inner in branch.node))


def _makers(graph: Any) -> dict[str, Any]:
    return {name: node for node in graph.node for name in node.output}


def merge_equal_nodes(graph: Any) -> None:
    """Merge nodes that compute the same from the same inputs. The results stay exactly the same.

    Layers are alike, so that what has a shape in one has it in all: the shape of a thing is asked of the first layer. Nodes have to stand behind those
    that they read, as ONNX wants it.
    """
    kinds = {name: node.op_type for node in graph.node for name in node.output}
    outputs = {each.name for each in graph.output}
    same: dict[str, str] = {}
    found: dict[Hashable, Any] = {}
    for constant in graph.initializer:
        if (value := _constant_key(constant)) is not None:
            same[constant.name] = found.setdefault(value, constant.name)
    found.clear()
    kept = []
    for node in graph.node:
        _replace_inputs(node, same)
        first = found.setdefault(_node_key(node, kinds, same), node)
        if first is node or not outputs.isdisjoint(node.output):
            kept.append(node)
        else:
            same |= zip(node.output, first.output, strict=True)
    _replace_nodes(graph, kept)


def _node_key(node: Any, kinds: Mapping[str, str], same: Mapping[str, str]) -> Hashable:
    """Return a key that is equal for two nodes only if they compute the same."""
    inputs = list(node.input)
    if node.op_type == "Shape":
        alike = _LAYER.sub(_FIRST_LAYER, inputs[0])
        if kinds.get(alike) == kinds.get(inputs[0]):
            inputs = [same.get(alike, alike)]
    return node.domain, node.op_type, tuple(inputs), len(node.output), _attributes_key(node, {})


def _attributes_key(node: Any, local: Mapping[str, str]) -> Hashable:
    return tuple(
        (each.name, _branch_key(each.g, local) if each.HasField("g") else _attribute_key(each))
        for each in sorted(node.attribute, key=lambda each: each.name)
    )


def _attribute_key(attribute: Any) -> Hashable:
    value = _constant_key(attribute.t) if attribute.HasField("t") else None
    return attribute.SerializeToString() if value is None else value


def _branch_key(graph: Any, outer: Mapping[str, str]) -> Hashable:
    """Return the key of a branch, independent of its own names."""
    local = dict(outer)
    steps = []
    for node in graph.node:
        steps.append(
            (node.op_type, tuple(local.get(each, each) for each in node.input), _attributes_key(node, local))
        )
        local |= {each: f"#{len(local) + place}" for place, each in enumerate(node.output)}
    constants = tuple(each.SerializeToString() for each in graph.initializer)
    return tuple(steps), tuple(local.get(each.name, each.name) for each in graph.output), constants


def _constant_key(tensor: Any) -> Hashable | None:
    """Return the key of a constant without its name, or None for a large one."""
    from onnx import numpy_helper

    value = (
        numpy_helper.to_array(tensor) if len(tensor.dims) <= 1 and sum(tensor.dims) <= _FEW_NUMBERS else None
    )
    return None if value is None else (value.dtype.str, value.shape, value.tobytes())


def _replace_inputs(node: Any, same: Mapping[str, str]) -> None:
    for each in (node, *_inner_nodes(node)):
        each.input[:] = [same.get(name, name) for name in each.input]


def _inner_nodes(node: Any) -> Iterator[Any]:
    """Yield the nodes in the branches of a node, recursively."""
    for attribute in node.attribute:
        for inner in attribute.g.node:
            yield inner
            yield from _inner_nodes(inner)


def _replace_nodes(graph: Any, nodes: list[Any]) -> None:
    copies = [type(each).FromString(each.SerializeToString()) for each in nodes]
    del graph.node[:]
    graph.node.extend(copies)


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
