"""Heads of the encoder: a logistic regression on its vector of two texts, for agreement or for support."""

import json
import math
from collections.abc import Callable
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from parley.convergence.vectors import Vector
from parley.runtime.errors import ConfigurationError

_UNSURE_BELOW: Final = math.log(0.8 / 0.2)
"""Scores nearer to 0 than this are unsure; the relation is unsure below 0.7."""
Task = Literal["agreement", "support"]
"""Whether two positions are the same answer, or whether a text supports a claim."""
_VERSION: Final = 2
"""The version of the training input; version 1 had both orders of a pair in one vector."""


class EncoderHead(Struct, frozen=True):
    """Weights for one encoder.

    Attributes:
        encoder_sha256: Of the encoder that it was trained for.
        known_words: The share of known words from which the encoder knows a statement's language, 0 to 1.
        weights: One for each number of the encoder's vector.
        bias: Added to their sum.
        task: What it tells of two texts.
    """

    encoder_sha256: str
    known_words: float
    weights: Vector
    bias: float
    task: Task = "agreement"

    @classmethod
    def read(cls, file: Path, task: Task = "agreement") -> "EncoderHead":
        """Read a head; raise ConfigurationError if the file is missing or is not one."""
        import numpy as np

        try:
            stored = json.loads(file.read_text("utf-8"))
            version = stored.get("version")
            head = cls(
                encoder_sha256=str(stored["encoder_sha256"]),
                known_words=float(stored["known_words"]),
                weights=np.array(stored["weights"], dtype=np.float32),
                bias=float(stored["bias"]),
                task=stored.get("task", "agreement"),
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigurationError(f"{file}: is not the head of an agreement model: {error}") from error
        if version != _VERSION:
            raise ConfigurationError(
                f"{file}: was trained for another release; train one with `make agreement-head`"
            )
        if head.task != task:
            raise ConfigurationError(f"{file}: is a head for {head.task}; train one with `make {task}-head`")
        return head

    def write(self, file: Path) -> None:
        """Write the head."""
        stored = {
            "version": _VERSION,
            "task": self.task,
            "encoder_sha256": self.encoder_sha256,
            "known_words": self.known_words,
            "bias": round(self.bias, 5),
            "weights": [round(float(each), 5) for each in self.weights],
        }
        file.write_text(json.dumps(stored, indent=0) + "\n", "utf-8")

    def score(self, read: Vector) -> float:
        """Return the log odds of what it tells, from the encoder's vector of two texts in one order."""
        return float(self.weights @ read) + self.bias

    def probability(self, read: Callable[[str, str], Vector], one: str, other: str) -> float:
        """Return the probability that two positions are one answer, whatever their order; `read` is the encoder's.

        They are read in one order, and in the other one too if the result is unsure: by cross-validation over topics this is
        as good as reading both orders of all.
        """
        first, second = sorted((one, other))
        score = self.score(read(first, second))
        if abs(score) < _UNSURE_BELOW:
            score = (score + self.score(read(second, first))) / 2
        return to_probability(score)


def to_probability(score: float) -> float:
    """Return the probability for log odds."""
    return 1 / (1 + math.exp(-min(max(score, -50.0), 50.0)))
