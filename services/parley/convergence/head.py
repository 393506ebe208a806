"""The agreement head: a logistic regression on what the cross-encoder makes of two stands."""

import hashlib
import json
import math
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np

from parley.convergence.vectors import Vector
from parley.runtime.errors import ConfigurationError

__all__ = ["SHIPPED_HEAD", "AgreementHead", "shipped_head"]

SHIPPED_HEAD: Final = Path(__file__).with_name("agreement_head.json")
"""The head of the encoder that is installed with the service; `make agreement-head` makes it."""
_SHIPPED_SHA256: Final = "76c4f381e7e8b9e15889c873d353237dc35e2e0f6fcd25759d13e6a86030169a"


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
            return cls(
                encoder_sha256=str(stored["encoder_sha256"]),
                known_words=float(stored["known_words"]),
                weights=np.array(stored["weights"], dtype=np.float32),
                bias=float(stored["bias"]),
            )
        except (OSError, ValueError, KeyError, TypeError) as error:
            raise ConfigurationError(f"{file}: is no head of an agreement model: {error}") from error

    def write(self, file: Path) -> None:
        """Write the head."""
        stored = {
            "encoder_sha256": self.encoder_sha256,
            "known_words": self.known_words,
            "bias": round(self.bias, 5),
            "weights": [round(float(each), 5) for each in self.weights],
        }
        file.write_text(json.dumps(stored, indent=0) + "\n", "utf-8")

    def probability(self, read: Vector) -> float:
        """Return how probable it is that two stands are one answer, 0 to 1, by what the encoder made of them."""
        return 1 / (1 + math.exp(-min(max(float(self.weights @ read) + self.bias, -50.0), 50.0)))


def shipped_head() -> AgreementHead:
    """Read the head of the installed encoder; raise ConfigurationError where its file is missing or not the one expected."""
    head = AgreementHead.read(SHIPPED_HEAD)
    digest = hashlib.sha256(SHIPPED_HEAD.read_bytes()).hexdigest()
    if digest != _SHIPPED_SHA256:
        raise ConfigurationError(
            f"{SHIPPED_HEAD}: is not the file expected (sha256 {digest}); install parley again"
        )
    return head
