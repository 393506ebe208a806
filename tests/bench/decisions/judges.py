"""What the default decides in panels of many kinds, with judges of many kinds, with a history and without: all against the majority.

The default decides by first drafts, so that nothing is debated here. Each cell has its own dice; in it, all ways to decide have the same.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
import numpy.typing as npt

from parley.orchestrator.model.deciding import weigh_judge
from parley.ratings.calibration import Record
from parley.ratings.weights import accuracy_weight
from tests.bench.decisions.agents import JUDGE_SEAT, OPTIONS, PANELS, Answers, Kind, Panel, answers
from tests.bench.decisions.deciding import decide_by_drafts
from tests.bench.decisions.histories import JUDGE_RIGHT

_OPEN, _LOUD, _SYCOPHANT = Kind.OPEN, Kind.LOUD_FOOL, Kind.SYCOPHANT
_CASES: Final = (
    Panel("three equal ones", 10, (0.7,) * 3, (0, 1, 2)),
    Panel("an expert and two fools", 11, (0.5, 0.5, 0.9), (0, 1, 2)),
    Panel("an expert and four fools", 12, (0.45,) * 4 + (0.9,)),
    Panel("two camps of two", 13, (0.7,) * 4, (0, 0, 1, 1), 0.5),
    Panel("camps of three and two, each with its error", 14, (0.7,) * 5, (0, 0, 0, 1, 1), 0.5, own_lures=True),
    Panel("three and two sycophants", 15, (0.7,) * 3 + (0.6,) * 2, (0, 1, 2, 3, 3), 0.5, (_OPEN,) * 3 + (_SYCOPHANT,) * 2),
    Panel("three and two loud fools", 16, (0.7,) * 3 + (0.25,) * 2, kinds=(_OPEN,) * 3 + (_LOUD,) * 2),
    Panel("three of one family", 17, (0.65,) * 3, (0,) * 3, 0.5),
    Panel("six equal ones", 18, (0.65,) * 6, (0, 1, 2, 3, 4, 5)),
    Panel("three fools", 19, (0.4,) * 3, (0, 1, 2)),
    Panel("three experts", 20, (0.9,) * 3, (0, 1, 2)),
    Panel("a pair", 21, (0.6, 0.8), (0, 1)),
)  # fmt: skip
CASES: Final = (*PANELS, *_CASES)


@dataclass(frozen=True, slots=True)
class Judge:
    """A judge by its skill; `stronger`: whether the configuration calls it so; `akin`: whether it is of the first agent's family."""

    name: str
    skill: float
    stronger: bool = False
    akin: bool = False


JUDGES: Final = (
    Judge("good", 0.8),
    Judge("middling", 0.65),
    Judge("middling, of a family at the table", 0.65, akin=True),
    Judge("poor", 0.5),
    Judge("called stronger", 0.9, stronger=True),
    Judge("called stronger, and is not", 0.65, stronger=True),
)
HISTORIES: Final = (0, 10, 60)
"""Judged debates that the panel has behind it."""
_PARTS: Final = 100
"""Histories of a cell; each tells the weights of a part of its questions."""
_CHECKED: Final = 20
"""Questions of a cell that are decided by the functions that a debate is decided by, too."""

Weights = npt.NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class JudgeCell:
    """A panel with a judge after a history. `judged`: whether the judge has a record too, as one that has debated as an agent.

    `majority`, `default`: how right the majority of the drafts and the default decision are, question by question.
    """

    panel: str
    judge: str
    history: int
    judged: bool
    majority: Weights
    default: Weights

    @property
    def gain(self) -> float:
        """By how many points the default is better than the majority."""
        return 100 * float((self.default - self.majority).mean())

    @property
    def spread(self) -> float:
        """Half of the 95 % interval of the gain."""
        gained = self.default - self.majority
        return 196 * float(gained.std(ddof=1)) / float(np.sqrt(len(gained)))

    @property
    def name(self) -> str:
        """The cell in words."""
        record = ", with a record" if self.judged else ""
        return f"{self.panel}; judge {self.judge}{record}; {self.history} judged debates"


def judge_cells(questions: int) -> list[JudgeCell]:
    """Return all cells, of so many questions each."""
    return [cell for panel in CASES for judge in JUDGES for cell in _cells_of(panel, judge, questions)]


def _cells_of(panel: Panel, judge: Judge, questions: int) -> Iterator[JudgeCell]:
    family = panel.families[0] if judge.akin else JUDGE_SEAT
    seated = replace(panel, judge=judge.skill, judge_family=family)
    size = len(panel.skills)
    dice = np.random.default_rng([panel.dice, JUDGES.index(judge)])
    given = answers(seated, questions, dice)
    drafts, choice = given[:, :size], given[:, JUDGE_SEAT]
    majority = _rate(_tally(drafts, np.ones((questions, size))))
    for history in HISTORIES:
        right = _count_right(seated, history, dice)
        for judged in (False, True) if history else (False,):
            weights = _weights(right, history, size, judge, judged=judged)
            weights = np.repeat(weights, -(-questions // _PARTS), axis=0)[:questions]
            default = _rate(_with_judge(_tally(drafts, weights[:, :size]), choice, weights[:, size]))
            _check(drafts, choice, weights, default)
            yield JudgeCell(panel.name, judge.name, history, judged, majority, default)


def _count_right(panel: Panel, history: int, dice: np.random.Generator) -> npt.NDArray[np.int64]:
    """Return how often each seat was found right in each history, by one who is right nine times in ten."""
    given = answers(panel, max(history, 1) * _PARTS, dice)
    right = (given == 0) == (dice.random(given.shape) < JUDGE_RIGHT)
    counted: npt.NDArray[np.int64] = right.reshape(_PARTS, -1, right.shape[1]).sum(axis=1)
    return counted * bool(history)


def _weights(right: npt.NDArray[np.int64], history: int, size: int, judge: Judge, *, judged: bool) -> Weights:
    """Return what the ballots of the agents, and last of the judge, weigh after each history."""
    rows = []
    for row in right.tolist():
        agents = [accuracy_weight(Record(right=each, wrong=history - each)) for each in row[:size]]
        known = (row[JUDGE_SEAT], history - row[JUDGE_SEAT]) if judged else (0, 0)
        rows.append([*agents, weigh_judge(*known, stronger=judge.stronger).weight])
    return np.array(rows)


def _tally(drafts: Answers, weights: Weights) -> Weights:
    """Return the weight of each option, question by question."""
    tally = np.zeros((len(drafts), len(OPTIONS)))
    for seat in range(drafts.shape[1]):
        tally[np.arange(len(drafts)), drafts[:, seat]] += weights[:, seat]
    return tally


def _with_judge(tally: Weights, choice: Answers, weight: Weights) -> Weights:
    """Return the tally with the judge's choice; a weight of 0 breaks ties. It can choose nothing that no draft takes."""
    place = np.arange(len(tally)), choice
    tally[place] += np.where(tally[place] > 0, np.maximum(weight, 1e-6), 0)
    return tally


def _rate(tally: Weights) -> Weights:
    """Return whether the first option is right; of several that are first each counts by its share."""
    leads = tally >= tally.max(axis=1, keepdims=True) - 1e-9
    share: Weights = leads[:, 0] / leads.sum(axis=1)
    return share


def _check(drafts: Answers, choice: Answers, weights: Weights, found: Weights) -> None:
    """Raise AssertionError if a sample of the questions comes out otherwise by the functions that a debate is decided by."""
    size = drafts.shape[1]
    for number in np.linspace(0, len(drafts) - 1, _CHECKED, dtype=int):
        stands = tuple(OPTIONS[each] for each in drafts[number])
        judge, weight = OPTIONS[choice[number]], float(weights[number, size])
        stood = decide_by_drafts(stands, weights[number, :size].tolist(), judge, weight)
        assert found[number] == float(stood == OPTIONS[0]) or 0 < found[number] < 1


def find_worst(cells: Sequence[JudgeCell]) -> JudgeCell:
    """Return the cell in which the default gains least."""
    return min(cells, key=lambda each: each.gain)
