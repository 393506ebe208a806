"""The two embedding models of this process."""

from functools import cache
from typing import Final

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from parley.convergence.local_model import LocalModel
from parley.convergence.model_files import (
    MINILM_TOKENIZER,
    MINILM_WEIGHTS,
    MODEL_NAMES,
    STATIC_TOKENIZER,
    STATIC_WEIGHTS,
    LocalModelName,
    verified_file,
)
from parley.convergence.session import onnx_session
from parley.convergence.vectors import Vector, mean_direction, unit, windows


class MiniLm:
    """all-MiniLM-L6-v2 as int8 ONNX: 384 dimensions, trained on sentences and short paragraphs.

    A text is read alone, without padding, so that its vector does not depend on other texts. A text longer
    than 254 tokens is cut into windows of 254 that overlap by 32.
    """

    name: Final = MODEL_NAMES["minilm"]
    _WINDOW: Final = 254
    _OVERLAP: Final = 32

    def __init__(self) -> None:
        """Load the model; raise ConfigurationError if its files are missing or not the expected ones."""
        self._tokenizer = Tokenizer.from_file(str(verified_file(*MINILM_TOKENIZER)))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._first, self._last = self._tokenizer.encode("").ids
        self._session = onnx_session(str(verified_file(*MINILM_WEIGHTS)))

    def embed(self, text: str) -> Vector:
        """Embed one text on the calling thread, without the interpreter's lock for most of it."""
        tokens: list[int] = self._tokenizer.encode(text, add_special_tokens=False).ids
        return mean_direction(
            [
                self._window(tokens[start:end])
                for start, end in windows(len(tokens), self._WINDOW, self._OVERLAP)
            ]
        )

    def _window(self, tokens: list[int]) -> Vector:
        ids = np.array([[self._first, *tokens, self._last]], dtype=np.int64)
        (states,) = self._session.run(
            None,
            {"input_ids": ids, "attention_mask": np.ones_like(ids), "token_type_ids": np.zeros_like(ids)},
        )
        return unit(np.asarray(states, dtype=np.float32)[0].mean(axis=0))


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


@cache
def load_local_model(name: LocalModelName) -> LocalModel:
    """Return a model of this process: loaded once, for all services in it. Raise ConfigurationError as the models do."""
    return MiniLm() if name == "minilm" else StaticWords()
