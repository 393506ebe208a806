"""The agreement head: a logistic regression on what the cross-encoder makes of two stands."""

import hashlib
import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from parley.convergence.vectors import Vector
from parley.runtime.errors import ConfigurationError

__all__ = ["DEFAULT_HEAD", "AgreementHead", "default_head"]

DEFAULT_HEAD: Final = Path(__file__).with_name("agreement_head.json")
"""The head of the encoder that is installed with the service; `make agreement-head` makes it."""
_UNSURE_BELOW: Final = math.log(0.8 / 0.2)
"""Scores nearer to 0 than this leave it open; what is unsure begins at 0.7."""
_VERSION: Final = 2
"""Of what heads are trained on; 1 took both orders of a pair in one vector."""
_DEFAULT_SHA256: Final = "0c3f6c9f19689141e344b1bbd6cdabfb71837c29d481088aafc9b4c83c2d4de1"


@dataclass(frozen=True, slots=True)
class AgreementHead:
    """Weights for one encoder.

    Attributes:
        encoder_sha256: Of the encoder that it was trained for; with another one it means nothing.
        known_words: Share of a statement's words that the encoder has to know whole to know its language, 0 to 1.
        weights: One for each number of the encoder's vector.
        bias: Added to their sum.
    """

    encoder_sha256: str
    known_words: float
    weights: Vector
    bias: float

    @classmethod
    def read(cls, file: Path) -> "AgreementHead":
        """Read a head; raise ConfigurationError where the file is missing or is none."""
        try:
            stored = json.loads(file.read_text("utf-8"))
            version = stored.get("version")
            head = cls(
                encoder_sha256=str(stored["encoder_sha256"]),
                known_words=float(stored["known_words"]),
                weights=np.array(stored["weights"], dtype=np.float32),
                bias=float(stored["bias"]),
            )
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigurationError(f"{file}: is no head of an agreement model: {error}") from error
        if version != _VERSION:
            raise ConfigurationError(
                f"{file}: was trained for another release; train one with `make agreement-head`"
            )
        return head

    def write(self, file: Path) -> None:
        """Write the head."""
        stored = {
            "version": _VERSION,
            "encoder_sha256": self.encoder_sha256,
            "known_words": self.known_words,
            "bias": round(self.bias, 5),
            "weights": [round(float(each), 5) for each in self.weights],
        }
        file.write_text(json.dumps(stored, indent=0) + "\n", "utf-8")

    def score(self, read: Vector) -> float:
        """Return the logarithm of the odds that two stands are one answer, by what the encoder made of them in one order."""
        return float(self.weights @ read) + self.bias

    def probability(self, read: Callable[[str, str], Vector], one: str, other: str) -> float:
        """Return how probable it is that two stands are one answer, 0 to 1, whichever comes first; `read` is the encoder's.

        They are read in one order, and in the other one too where that leaves it open: by cross-validation over topics this is
        as good as to read both orders of all.
        """
        first, second = sorted((one, other))
        score = self.score(read(first, second))
        if abs(score) < _UNSURE_BELOW:
            score = (score + self.score(read(second, first))) / 2
        return 1 / (1 + math.exp(-min(max(score, -50.0), 50.0)))


def default_head() -> AgreementHead:
    """Read the head of the installed encoder; raise ConfigurationError where its file is missing or not the one expected."""
    head = AgreementHead.read(DEFAULT_HEAD)
    digest = hashlib.sha256(DEFAULT_HEAD.read_bytes()).hexdigest()
    if digest != _DEFAULT_SHA256:
        raise ConfigurationError(
            f"{DEFAULT_HEAD}: is not the file expected (sha256 {digest}); install parley again"
        )
    return head
