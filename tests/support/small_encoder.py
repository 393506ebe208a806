"""A cross-encoder of a few numbers, written as files: enough to be loaded, read with and refused."""

import hashlib
from pathlib import Path

import numpy as np
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace
from tokenizers.processors import TemplateProcessing

from parley.convergence.encoder import EncoderFiles
from parley.convergence.head import EncoderHead, Task

_WORDS = ("[CLS]", "[SEP]", "[UNK]", "keep", "split", "the", "monolith", "it", "into", "services")
HEAD_NUMBERS = 4
"""Numbers of its vector."""


def write_encoder(folder: Path) -> EncoderFiles:
    """Write the encoder, whose input length is fixed at 160, and its tokenizer."""
    dice = np.random.default_rng(1)
    table = dice.normal(size=(len(_WORDS), HEAD_NUMBERS)).astype(np.float32)
    layer = dice.normal(size=(HEAD_NUMBERS, 3)).astype(np.float32)
    graph = helper.make_graph(
        [
            helper.make_node("Gather", ["table", "input_ids"], ["words"]),
            helper.make_node("CumSum", ["words", "one"], ["sums"]),
            helper.make_node("ReduceMean", ["sums"], ["mean"], axes=[1], keepdims=0),
            helper.make_node("MatMul", ["mean", "layer"], ["scores"]),
            helper.make_node("Identity", ["scores"], ["logits"]),
        ],
        "encoder",
        [helper.make_tensor_value_info("input_ids", TensorProto.INT64, [1, 160])],
        [helper.make_tensor_value_info("logits", TensorProto.FLOAT, [1, 3])],
        [
            numpy_helper.from_array(table, "table"),
            numpy_helper.from_array(layer, "layer"),
            numpy_helper.from_array(np.array(1, np.int64), "one"),
        ],
    )
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 14)], ir_version=8)
    content = model.SerializeToString()
    (folder / "model.onnx").write_bytes(content)
    tokenizer = Tokenizer(WordLevel({word: place for place, word in enumerate(_WORDS)}, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.post_processor = TemplateProcessing(
        pair="[CLS] $A [SEP] $B:1 [SEP]:1", special_tokens=[("[CLS]", 0), ("[SEP]", 1)]
    )
    tokenizer.save(str(folder / "tokenizer.json"))
    digest = hashlib.sha256(content).hexdigest()
    return EncoderFiles(folder / "model.onnx", digest, folder / "tokenizer.json")


def write_head(folder: Path, files: EncoderFiles, task: Task = "agreement") -> Path:
    """Write a head for it."""
    weights = np.arange(1, HEAD_NUMBERS + 1, dtype=np.float32)
    file = folder / ("head.json" if task == "agreement" else f"{task}.json")
    EncoderHead(files.sha256, 0.8, weights, 0.5, task).write(file)
    return file
