"""Real debates of open models on closed questions: what each agent answered in each round, and which answer is right.

`tests/data/real_debates.jsonl` has 330 of them, on 28 questions of MMLU and GSM8K, with 3, 5 and 7 agents.
"""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import Final

from parley.orchestrator.model.stopping import posterior

_FILE: Final = Path(__file__).parents[1] / "data" / "real_debates.jsonl"
_BINS: Final = 10


@dataclass(frozen=True, slots=True)
class RealDebate:
    """One debate of agents of one model.

    Attributes:
        question: Its id.
        task: What it was taken from: `mmlu` or `gsm`.
        truth: The right answer.
        rounds: Each agent's answer, round by round; None if none could be read.
    """

    question: str
    task: str
    model: str
    truth: str
    rounds: tuple[tuple[str | None, ...], ...]

    @property
    def agents(self) -> int:
        """How many agents debated."""
        return len(self.rounds[0])

    def votes(self, round_index: int) -> dict[str, str]:
        """Return the answers of a round by agent; those that could not be read are left out."""
        answers = enumerate(self.rounds[round_index])
        return {f"agent-{seat}": answer for seat, answer in answers if answer is not None}


@dataclass(frozen=True, slots=True)
class Forecast:
    """How probable a decision was called, 0 to 1, and the share of the positions that it could be that are right."""

    probability: float
    right: float


def read_real_debates() -> list[RealDebate]:
    """Return all debates."""
    lines = map(json.loads, _FILE.read_text(encoding="utf-8").splitlines())
    return [
        RealDebate(
            each["question"], each["task"], each["model"], each["truth"], tuple(map(tuple, each["rounds"]))
        )
        for each in lines
    ]


def forecasts(debates: Iterable[RealDebate], round_index: int) -> list[Forecast]:
    """Return how probable the position with most votes is in each debate that has votes, each agent weighing 1."""
    found = []
    for debate in debates:
        votes = debate.votes(round_index)
        if votes:
            probable = posterior(votes, dict.fromkeys(votes, 1.0))
            counts = Counter(votes.values())
            first = [each for each, count in counts.items() if count == max(counts.values())]
            found.append(Forecast(probable[first[0]], first.count(debate.truth) / len(first)))
    return found


def bins_of(found: Sequence[Forecast]) -> list[list[Forecast]]:
    """Return forecasts in bins of a tenth each, without those that are empty."""
    ordered = sorted(found, key=lambda each: each.probability)
    return [
        list(each)
        for _, each in groupby(ordered, key=lambda each: min(int(each.probability * _BINS), _BINS - 1))
    ]


def calibration_error(found: Sequence[Forecast]) -> float:
    """Return the expected calibration error, 0 to 1: how far bins are from being right as often as they say, by their sizes."""
    apart = (abs(sum(each.probability - each.right for each in one)) for one in bins_of(found))
    return sum(apart) / len(found)


def discrimination(found: Sequence[Forecast]) -> float:
    """Return the area under the curve, 0 to 1: how often a right decision was called more probable than a wrong one."""
    by_probability: dict[float, list[float]] = defaultdict(lambda: [0.0, 0.0])
    for each in found:
        by_probability[each.probability][0] += each.right
        by_probability[each.probability][1] += 1 - each.right
    right, wrong = (sum(each[place] for each in by_probability.values()) for place in (0, 1))
    below = area = 0.0
    for _, (rights, wrongs) in sorted(by_probability.items()):
        area += rights * (below + wrongs / 2)
        below += wrongs
    return area / (right * wrong)
