"""What the same is computed from is computed once; what only looks alike is not."""

from typing import Any

import numpy as np
import pytest
from onnx import TensorProto, numpy_helper
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor, make_tensor_value_info

from parley.convergence.encoder_graph import merge_equal_nodes
from parley.convergence.session import onnx_session

GIVEN = np.arange(6, dtype=np.float32).reshape(2, 3)


def graph_of(*nodes: Any, results: tuple[str, ...], constants: tuple[Any, ...] = ()) -> Any:
    return make_graph(
        nodes,
        "graph",
        [make_tensor_value_info("given", TensorProto.FLOAT, ["rows", 3])],
        [make_tensor_value_info(each, TensorProto.FLOAT, None) for each in results],
        constants,
    )


def numbers(graph: Any) -> list[Any]:
    model = make_model(graph, opset_imports=[make_opsetid("", 13)], ir_version=8)
    return list(onnx_session(model.SerializeToString()).run(None, {"given": GIVEN}))


def merged(graph: Any) -> list[str]:
    """Merge a graph, see that it still computes what it did, and return the kinds of its nodes."""
    before = numbers(graph)
    merge_equal_nodes(graph)
    for one, other in zip(before, numbers(graph), strict=True):
        assert np.array_equal(one, other)
    return [node.op_type for node in graph.node]


def test_chains_of_the_same_work_become_one() -> None:
    graph = graph_of(
        make_node("Neg", ["given"], ["a"]),
        make_node("Exp", ["a"], ["b"]),
        make_node("Neg", ["given"], ["c"]),
        make_node("Exp", ["c"], ["d"]),
        make_node("Add", ["b", "d"], ["sum"]),
        results=("sum",),
    )
    assert merged(graph) == ["Neg", "Exp", "Add"]


def test_what_another_setting_or_order_tells_apart_stays() -> None:
    graph = graph_of(
        make_node("Softmax", ["given"], ["a"], axis=0),
        make_node("Softmax", ["given"], ["b"], axis=1),
        make_node("Sub", ["a", "b"], ["c"]),
        make_node("Sub", ["b", "a"], ["d"]),
        make_node("Mul", ["c", "d"], ["product"]),
        results=("product",),
    )
    assert len(merged(graph)) == 5


@pytest.mark.parametrize(("second", "left"), [(2.0, 3), (3.0, 4)])
def test_constants_are_the_same_by_what_they_are_and_not_by_name(second: float, left: int) -> None:
    graph = graph_of(
        make_node(
            "Constant", [], ["three"], value=numpy_helper.from_array(np.array(second, np.float32), "any")
        ),
        make_node("Mul", ["given", "two"], ["a"]),
        make_node("Mul", ["given", "too"], ["b"]),
        make_node("Sub", ["a", "three"], ["c"]),
        make_node("Add", ["b", "c"], ["sum"]),
        results=("sum",),
        constants=(
            make_tensor("two", TensorProto.FLOAT, [], [2.0]),
            make_tensor("too", TensorProto.FLOAT, [], [second]),
        ),
    )
    assert len(merged(graph)) == left + 1


def test_each_result_keeps_its_name() -> None:
    graph = graph_of(
        make_node("Neg", ["given"], ["one"]), make_node("Neg", ["given"], ["other"]), results=("one", "other")
    )
    assert merged(graph) == ["Neg", "Neg"]


@pytest.mark.parametrize(("other", "left"), [("Neg", 4), ("Abs", 5)])
def test_branches_are_the_same_by_what_they_do(other: str, left: int) -> None:
    def either(kind: str, name: str) -> Any:
        def branch(inner: str, of: str) -> Any:
            made = make_tensor_value_info(f"{name}/{inner}", TensorProto.FLOAT, None)
            steps = (
                make_node(inner, [of], [f"{name}/{inner}/first"]),
                make_node("Sin", [f"{name}/{inner}/first"], [made.name]),
            )
            return make_graph(steps, f"{name}/{inner}", [], [made])

        return make_node(
            "If",
            ["whether"],
            [name],
            then_branch=branch(kind, f"{name}/of"),
            else_branch=branch("Exp", "given"),
        )

    graph = graph_of(
        make_node("Constant", [], ["whether"], value=numpy_helper.from_array(np.array(True))),
        make_node("Exp", ["given"], ["a/of"]),
        make_node("Exp", ["given"], ["b/of"]),
        either("Neg", "a"),
        either(other, "b"),
        make_node("Add", ["a", "b"], ["sum"]),
        results=("sum",),
    )
    assert len(merged(graph)) == left


@pytest.mark.parametrize(("layer", "left"), [("layer.1", 5), ("level.1", 6)])
def test_the_shape_of_a_thing_is_asked_of_the_first_layer(layer: str, left: int) -> None:
    graph = graph_of(
        make_node("Neg", ["given"], ["first"]),
        make_node("Neg", ["given"], ["layer.0/made"]),
        make_node("Neg", ["layer.0/made"], [f"{layer}/made"]),
        make_node("Shape", ["layer.0/made"], ["a"]),
        make_node("Shape", [f"{layer}/made"], ["b"]),
        make_node("Reshape", [f"{layer}/made", "a"], ["c"]),
        make_node("Reshape", ["c", "b"], ["shaped"]),
        results=("shaped",),
    )
    assert len(merged(graph)) == left
