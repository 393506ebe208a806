"""The NLI cross-encoder: a small model that reads two texts together, from an ONNX file."""

import hashlib
import re
from pathlib import Path
from typing import Final

import numpy as np
from msgspec import Struct
from tokenizers import Tokenizer

from parley.convergence.encoder_graph import POOLED, load_pooled_graph
from parley.convergence.session import create_session
from parley.convergence.vectors import Vector
from parley.runtime.errors import ConfigurationError

_MAX_TOKENS: Final = 510
"""The maximum number of tokens of both texts; the longer text is truncated."""
_LETTERS: Final = re.compile(r"[^\W\d_]+")
_ENGLISH: Final = frozenset(
    (
        "after",
        "and",
        "are",
        "be",
        "before",
        "both",
        "cannot",
        "does",
        "each",
        "every",
        "from",
        "has",
        "have",
        "into",
        "it",
        "its",
        "keep",
        "less",
        "more",
        "most",
        "not",
        "only",
        "other",
        "should",
        "than",
        "that",
        "the",
        "their",
        "these",
        "they",
        "this",
        "those",
        "three",
        "when",
        "which",
        "with",
        "without",
        "would",
        "yes",
    )
)
"""Words of which hardly any English text has none, and that languages with the same letters do not have as common words."""
_LEAST_WITH_ENGLISH_WORDS: Final = 0.6
"""Share of an English text's words that the encoder knows whole though rare ones are among them (`Zoos should continue to keep elephants`);
beneath it, the text only quotes English."""


class EncoderFiles(Struct, frozen=True):
    """The files of an encoder.

    Attributes:
        model: A sequence classifier as ONNX, of `input_ids` and `attention_mask`, whose first output is the logits.
        sha256: Of that file.
        tokenizer: Its `tokenizer.json`.
    """

    model: Path
    sha256: str
    tokenizer: Path

    def check_present(self) -> None:
        """Raise ConfigurationError if one is missing."""
        for file in (self.model, self.tokenizer):
            if not file.is_file():
                raise ConfigurationError(
                    f"{file}: the agreement model's file is missing; set PARLEY_AGREEMENT_ENCODER and PARLEY_AGREEMENT_TOKENIZER to files that are there"
                )


class CrossEncoder:
    """An NLI model without its last layer, which encodes two texts together as a vector.

    The result on entailment is not needed, so the input vector of its last layer is the output. The
    length of its input is free: a fixed length would take the time of 160 tokens for a pair of 30.
    """

    def __init__(self, files: EncoderFiles) -> None:
        """Load the model; raise ConfigurationError if its files are missing or not the expected ones."""
        files.check_present()
        self.sha256: Final = files.sha256
        _check_digest(files.model, files.sha256)
        self._tokenizer = Tokenizer.from_file(str(files.tokenizer))
        self._tokenizer.no_padding()
        self._unknown = self._tokenizer.token_to_id("[UNK]")
        self._tokenizer.enable_truncation(_MAX_TOKENS)
        self._session = create_session(load_pooled_graph(files.model))

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

        The tokenizer splits an unknown word into pieces. A word is two letters in a row or more; a text without words has the share 0.
        """
        words = [each for each in _LETTERS.findall(text) if len(each) > 1]
        read = [self._tokenizer.encode(each, add_special_tokens=False).ids for each in words]
        return sum(len(ids) == 1 and ids[0] != self._unknown for ids in read) / len(read) if read else 0.0


def _check_digest(file: Path, sha256: str) -> None:
    with file.open("rb") as opened:
        digest = hashlib.file_digest(opened, "sha256").hexdigest()
    if digest != sha256:
        raise ConfigurationError(
            f"{file}: is not the agreement model expected (sha256 {digest}, expected {sha256})"
        )


def is_known_language(text: str, known_words: float, least: float) -> bool:
    """Return whether an encoder reads a text's language: it knows a share of its words of 0 to 1 whole, and at `least` so many in its own.

    Fewer are enough of a text with one of the words that make a sentence English. Names and terms do not count: they stand in texts of all languages.
    """
    if known_words >= least:
        return True
    return known_words >= _LEAST_WITH_ENGLISH_WORDS and not _ENGLISH.isdisjoint(
        _LETTERS.findall(text.casefold())
    )
