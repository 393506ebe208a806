"""The two embedding models of this process."""

from collections.abc import Sequence
from threading import Lock
from typing import Final
from weakref import WeakValueDictionary

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from parley.convergence.eight_bit_products import clips_products
from parley.convergence.local_model import LocalModel
from parley.convergence.minilm_graph import load_split_graph
from parley.convergence.model_files import (
    MINILM_TOKENIZER,
    MINILM_WEIGHTS,
    MODEL_NAMES,
    STATIC_TOKENIZER,
    STATIC_WEIGHTS,
    LocalModelName,
    verified_file,
)
from parley.convergence.session import create_session
from parley.convergence.vectors import Vector, group_by_length, mean_direction, unit, windows


class MiniLm:
    """all-MiniLM-L6-v2 as int8 ONNX: 384 dimensions, trained on sentences and short paragraphs.

    Texts of about as many tokens are read together: most of the time of a short one is that in which the weights are read. They are
    padded to the longest one, which changes no bit of a vector. A text longer than 126 tokens is cut into windows of at most 126,
    all of one size.
    """

    name: Final = MODEL_NAMES["minilm"]
    _WINDOW: Final = 126
    """With its first and last token as many as the model was trained on; twice as many take longer and find no more."""
    _AT_ONCE: Final = 256
    """Tokens of a run; more together are slower than apart."""
    _SLOW_FUSION: Final = "SkipLayerNormFusion"
    """It makes one node of a sum and its normalization, which takes ten times as long as the two: a tenth of the model's time."""
    _RUN: Final = 15
    """As many tokens take as long as to read the weights once more."""

    def __init__(self) -> None:
        """Load the model; raise ConfigurationError if its files are missing or not the expected ones."""
        self._tokenizer = Tokenizer.from_file(str(verified_file(*MINILM_TOKENIZER)))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._first, self._last = self._tokenizer.encode("").ids
        file = verified_file(*MINILM_WEIGHTS)
        graph = str(file) if clips_products() else load_split_graph(file)
        self._session = create_session(graph, without=[self._SLOW_FUSION])
        self._inputs = [each.name for each in self._session.get_inputs()]

    def embed(self, text: str) -> Vector:
        """Embed one text, as `embed_all`."""
        return self.embed_all([text])[0]

    def embed_all(self, texts: Sequence[str]) -> list[Vector]:
        """Embed texts on the calling thread, without the interpreter's lock for most of it."""
        cut = [self._cut(text) for text in texts]
        vectors = iter(self._run_all([window for each in cut for window in each]))
        return [mean_direction([next(vectors) for _ in each]) for each in cut]

    def _cut(self, text: str) -> list[list[int]]:
        """Return the tokens of each window of a text."""
        tokens: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return [
            [self._first, *tokens[start:end], self._last] for start, end in windows(len(tokens), self._WINDOW)
        ]

    def _run_all(self, cut: Sequence[list[int]]) -> list[Vector]:
        vectors: dict[int, Vector] = {}
        for places in group_by_length([len(each) for each in cut], self._AT_ONCE, self._RUN):
            vectors |= zip(places, self._run([cut[place] for place in places]), strict=True)
        return [vectors[place] for place in range(len(cut))]

    def _run(self, cut: Sequence[list[int]]) -> list[Vector]:
        """Return the vectors of windows, which are padded to the longest one."""
        ids = np.zeros((len(cut), max(map(len, cut))), np.int64)
        mask = np.zeros_like(ids)
        for row, tokens in enumerate(cut):
            ids[row, : len(tokens)] = tokens
            mask[row, : len(tokens)] = 1
        given = {"input_ids": ids, "attention_mask": mask, "token_type_ids": np.zeros_like(ids)}
        (states,) = self._session.run(None, {name: given[name] for name in self._inputs})
        return [unit(each[: len(tokens)].mean(axis=0)) for each, tokens in zip(states, cut, strict=True)]


class StaticWords:
    """WordLlama's static word vectors: 256 dimensions, the mean over a text's tokens, however many they are."""

    name: Final = MODEL_NAMES["static"]

    def __init__(self) -> None:
        """Load the table; raise ConfigurationError if its files are missing or not the expected ones."""
        self._tokenizer = Tokenizer.from_file(str(verified_file(*STATIC_TOKENIZER)))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        table = load_file(verified_file(*STATIC_WEIGHTS))["embedding.weight"]
        self._table = np.ascontiguousarray(table.astype(np.float32))

    def embed(self, text: str) -> Vector:
        """Embed one text on the calling thread."""
        tokens = self._tokenizer.encode(text, add_special_tokens=False).ids
        known = [token for token in tokens if token < len(self._table)]
        return unit(self._table[known].mean(axis=0)) if known else np.zeros(self._table.shape[1], np.float32)

    def embed_all(self, texts: Sequence[str]) -> list[Vector]:
        """Embed texts one after the other on the calling thread."""
        return [self.embed(text) for text in texts]


_loaded: Final = WeakValueDictionary[LocalModelName, LocalModel]()
_loading: Final = Lock()


def load_local_model(name: LocalModelName) -> LocalModel:
    """Return a model of this process: one for all that hold it, until nobody does. Raise ConfigurationError as the models do."""
    with _loading:
        model = _loaded.get(name)
        if model is None:
            model = _loaded[name] = MiniLm() if name == "minilm" else StaticWords()
        return model
