"""MiniLM's graph with products of eight-bit numbers in place of floats, for a processor that does not clip them.

The weights have eight bits in the file. A number that they are multiplied with is split into two of eight bits, one that counts
steps and one that counts 256ths of a step, and what the two products give is added: sixteen bits, in half the time of floats. What
a number may be is bounded by the weights, so that all texts have the same steps, and none has a vector that depends on others.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import numpy as np
import onnx
from msgspec import Struct
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

_LAYERS: Final = 6
_HEADS: Final = 12
_EPSILON: Final = 1e-12
_OWN: Final = "com.microsoft"
"""The domain of onnxruntime's own operators."""


class Range(Struct, frozen=True):
    """The least and the most that a number of a kind can be, whatever the text: sizes of rows and columns of weights bound it."""

    least: float
    most: float


STATES: Final = Range(-18.1, 18.1)
"""What goes into a layer."""
CONTEXT: Final = Range(-25.3, 25.3)
"""What attention makes of it."""
ATTENDED: Final = Range(-30.8, 30.8)
"""What goes into a layer's second half."""
RAISED: Final = Range(-0.17, 49.8)
"""What comes out of its GELU."""


class _Part(Struct, frozen=True):
    """The numbers of one of the two parts, and what one of them counts."""

    numbers: str
    step: str
    zero: str


class _Graph:
    """A graph under construction. Its methods add nodes and return the names of their results."""

    def __init__(self, source: Any) -> None:
        self._source = {each.name: each for each in source.initializer}
        self.nodes: list[Any] = []
        self.constants: dict[str, Any] = {}

    def read(self, name: str) -> NDArray[Any]:
        """Return a constant of the file."""
        return np.asarray(numpy_helper.to_array(self._source[name]))

    def list_matrices(self) -> Iterator[str]:
        """Return the names of the layers' matrices in the file, in the order of their use."""
        return (
            each.removesuffix("_q")
            for each in self._source
            if each.startswith("val_") and each.endswith("_q")
        )

    def take(self, name: str) -> str:
        """Take over a constant of the file."""
        self.constants[name] = self._source[name]
        return name

    def add_constant(self, value: Any) -> str:
        name = f"constant {len(self.constants)}"
        self.constants[name] = numpy_helper.from_array(np.asarray(value), name)
        return name

    def add_node(self, operator: str, *inputs: str, **attributes: Any) -> str:
        result = f"{operator} {len(self.nodes)}"
        self.nodes.append(helper.make_node(operator, inputs, [result], **attributes))
        return result

    def split(self, numbers: str, bounds: Range) -> tuple[_Part, _Part]:
        """Split numbers into steps and 256ths of steps."""
        width = (bounds.most - bounds.least) / 254
        step, fine_step = (self.add_constant(np.float32(each)) for each in (width, width / 256))
        zero = self.add_constant(np.uint8(round(-bounds.least / width)))
        fine_zero = self.add_constant(np.uint8(128))
        coarse = self.add_node("QuantizeLinear", numbers, step, zero)
        rest = self.add_node("Sub", numbers, self.add_node("DequantizeLinear", coarse, step, zero))
        fine = self.add_node("QuantizeLinear", rest, fine_step, fine_zero)
        return _Part(coarse, step, zero), _Part(fine, fine_step, fine_zero)

    def multiply(self, parts: tuple[_Part, _Part], matrix: str, bias: str) -> str:
        """Multiply split numbers with a matrix, and add a bias."""
        weights, scale = self.take(f"{matrix}_q"), self.add_constant(self.read(f"{matrix}_scale").ravel())
        coarse, fine = (
            self.add_node(
                "MatMulIntegerToFloat",
                *(part.numbers, weights, part.step, scale, part.zero, "", added),
                domain=_OWN,
            )
            for part, added in zip(parts, (self.take(bias), ""), strict=True)
        )
        return self.add_node("Add", coarse, fine)

    def normalize(self, numbers: str, name: str) -> str:
        return self.add_node(
            "LayerNormalization",
            numbers,
            self.take(f"{name}.weight"),
            self.take(f"{name}.bias"),
            epsilon=_EPSILON,
        )


def load_split_graph(file: Path) -> bytes:
    """Return the graph, of `input_ids` and `attention_mask`, with the weights of MiniLM's file."""
    graph = _Graph(onnx.load(str(file)).graph)
    states = _embed_tokens(graph)
    mask = graph.add_node("Cast", "attention_mask", to=TensorProto.INT32)
    matrices = graph.list_matrices()
    for layer in range(_LAYERS):
        states = _add_layer(graph, f"inner.encoder.layer.{layer}", matrices, states, mask)
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "MiniLM",
            [
                helper.make_tensor_value_info(name, TensorProto.INT64, ["texts", "tokens"])
                for name in ("input_ids", "attention_mask")
            ],
            [helper.make_tensor_value_info(states, TensorProto.FLOAT, None)],
            list(graph.constants.values()),
        ),
        opset_imports=[helper.make_opsetid("", 17), helper.make_opsetid(_OWN, 1)],
        ir_version=10,
    )
    return bytes(model.SerializeToString())


def _embed_tokens(graph: _Graph) -> str:
    """Add the vectors of tokens to those of their places, in which that of the one type of tokens is already."""
    words, places = (f"inner.embeddings.{each}_embeddings.weight" for each in ("word", "position"))
    word, scale = (
        graph.add_node("Gather", graph.take(words + part), "input_ids") for part in ("_q", "_scale")
    )
    word = graph.add_node("Mul", graph.add_node("Cast", word, to=TensorProto.FLOAT), scale)
    table = graph.read(f"{places}_q") * graph.read(f"{places}_scale")
    table += graph.read("inner.embeddings.token_type_embeddings.weight")[0]
    tokens = graph.add_node("Shape", "input_ids", start=1)
    start = graph.add_constant(np.array([0]))
    place = graph.add_node("Slice", graph.add_constant(table), start, tokens, start)
    return graph.normalize(graph.add_node("Add", word, place), "inner.embeddings.LayerNorm")


def _add_layer(graph: _Graph, name: str, matrices: Iterator[str], states: str, mask: str) -> str:
    parts = graph.split(states, STATES)
    query, key, value = (
        graph.multiply(parts, next(matrices), f"{name}.attention.self.{each}.bias")
        for each in ("query", "key", "value")
    )
    context = graph.add_node("MultiHeadAttention", query, key, value, "", mask, num_heads=_HEADS, domain=_OWN)
    read = graph.multiply(
        graph.split(context, CONTEXT), next(matrices), f"{name}.attention.output.dense.bias"
    )
    attended = graph.normalize(graph.add_node("Add", read, states), f"{name}.attention.output.LayerNorm")
    inner = graph.multiply(graph.split(attended, ATTENDED), next(matrices), f"{name}.intermediate.dense.bias")
    raised = graph.add_node("Gelu", inner, domain=_OWN)
    outer = graph.multiply(graph.split(raised, RAISED), next(matrices), f"{name}.output.dense.bias")
    return graph.normalize(graph.add_node("Add", outer, attended), f"{name}.output.LayerNorm")
