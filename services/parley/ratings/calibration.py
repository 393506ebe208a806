"""How often an agent was right, and how well its stated confidence matches that."""

from dataclasses import dataclass, replace
from typing import Final

BINS: Final = 10
NEUTRAL_CALIBRATION: Final = 0.5
"""The calibration of an agent without stated confidence, and of one that always states 0.5."""
_NEUTRAL_ANSWERS: Final = 4
"""Assumed answers of neutral calibration before each agent's first answer."""


@dataclass(frozen=True, slots=True)
class JudgedAnswer:
    """An answer that a judge found right or wrong; `confidence` is the agent's own, 0 to 1, or None."""

    agent_id: str
    right: bool
    confidence: float | None = None


@dataclass(frozen=True, slots=True)
class Bin:
    """Answers whose confidence is in one tenth of 0 to 1."""

    answers: int = 0
    confidence: float = 0.0
    right: int = 0


@dataclass(frozen=True, slots=True)
class Record:
    """Counters of judged answers.

    Attributes:
        right: Answers that were found right; `wrong`: the others.
        brier_sum: Squared differences of confidence and truth, summed over answers with a confidence.
        bins: The answers with a confidence, by tenths of it.
    """

    right: int = 0
    wrong: int = 0
    brier_sum: float = 0.0
    bins: tuple[Bin, ...] = (Bin(),) * BINS

    @property
    def answers(self) -> int:
        """All judged answers."""
        return self.right + self.wrong

    @property
    def answers_with_confidence(self) -> int:
        """Answers with a confidence."""
        return sum(each.answers for each in self.bins)

    @property
    def brier(self) -> float | None:
        """The mean squared difference of confidence and truth, 0 best, 1 worst; None without a confidence.

        Brier, "Verification of forecasts expressed in terms of probability", Monthly Weather Review 78, 1950, for one event.
        """
        return self.brier_sum / self.answers_with_confidence if self.answers_with_confidence else None

    @property
    def calibration(self) -> float:
        """How well confidence matches the record, 0 to 1: `1 - 2 * brier`, shrunk towards 0.5.

        An agent that always states 0.5 has a Brier score of 0.25 and a calibration of 0.5, which leaves a weight unchanged.
        """
        neutral = _NEUTRAL_ANSWERS * NEUTRAL_CALIBRATION
        own = max(self.answers_with_confidence - 2 * self.brier_sum, 0.0)
        return (neutral + own) / (_NEUTRAL_ANSWERS + self.answers_with_confidence)

    @property
    def expected_calibration_error(self) -> float | None:
        """The mean gap of confidence and accuracy over ten bins, by their answers, 0 to 1; None without a confidence.

        `sum(n_b / n * |accuracy_b - confidence_b|)`: Naeini, Cooper and Hauskrecht, "Obtaining well calibrated probabilities
        using Bayesian binning", AAAI 2015; Guo et al., "On calibration of modern neural networks", ICML 2017, equation 3.
        """
        if not self.answers_with_confidence:
            return None
        return sum(abs(each.right - each.confidence) for each in self.bins) / self.answers_with_confidence

    def with_answer(self, answer: JudgedAnswer) -> "Record":
        """Return the counters after one more answer."""
        counted = replace(self, right=self.right + answer.right, wrong=self.wrong + (not answer.right))
        if answer.confidence is None:
            return counted
        place = min(int(answer.confidence * BINS), BINS - 1)
        found = self.bins[place]
        more = Bin(found.answers + 1, found.confidence + answer.confidence, found.right + answer.right)
        return replace(
            counted,
            brier_sum=self.brier_sum + (answer.confidence - answer.right) ** 2,
            bins=(*self.bins[:place], more, *self.bins[place + 1 :]),
        )


NO_RECORD: Final = Record()
"""The counters of an agent without judged answers."""
