"""Cells of the simulation: one panel under one regime, all policies on the same questions and dice."""

import math
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from typing import Final

import numpy as np
import numpy.typing as npt

from tests.bench.decisions.agents import JUDGE_SEAT, Kind, Panel, Question, Regime, questions, with_another
from tests.bench.decisions.debates import AFTER_ALL, AFTER_DRAFTS, Course, End, calls, hold
from tests.bench.decisions.deciding import Ballots, decide, decide_by_judge, rate_by_drafts
from tests.bench.decisions.histories import Weights, weights_after
from tests.bench.decisions.stops import adaptive_end, ask_in_turn

HISTORIES: Final = 10
"""Histories of a panel in one seed; each tells the weights of a part of its questions."""

Found = dict[str, float]
"""What one question came to, by the names of figures: whether a policy was right, or what it took."""


@dataclass(frozen=True, slots=True)
class Size:
    """How much is simulated: questions of each seed, and seeds."""

    questions: int = 400
    seeds: int = 5


@dataclass(frozen=True, slots=True)
class Cell:
    """One panel under one regime. `figures`: what each question came to, the questions of all seeds in one order."""

    panel: Panel
    regime: Regime
    figures: dict[str, npt.NDArray[np.float64]]

    def mean(self, name: str) -> float:
        """Return the mean of a figure."""
        return float(self.figures[name].mean())

    def gain(self, name: str, over: str) -> float:
        """Return how many points of accuracy a policy has over another."""
        return 100 * (self.mean(name) - self.mean(over))

    def percent(self, name: str) -> str:
        """Return a policy's accuracy with its 95 % interval."""
        return f"{100 * self.mean(name):.1f} ± {_spread(self.figures[name]):.1f}"

    def points(self, name: str, over: str) -> str:
        """Return the gain of a policy over another on the same questions, with its 95 % interval."""
        gained = self.figures[name] - self.figures[over]
        return f"{self.gain(name, over):+.1f} ± {_spread(gained):.1f}"


def cells(panels: Sequence[Panel], regimes: Sequence[Regime], size: Size) -> list[Cell]:
    """Return all cells."""
    asked = [
        (panel, regime, size, seed) for panel in panels for regime in regimes for seed in range(size.seeds)
    ]
    with ProcessPoolExecutor(2) as pool:
        found = list(pool.map(_simulate, *zip(*asked, strict=True)))
    return [
        Cell(panel, regime, _join(found[place : place + size.seeds]))
        for place, (panel, regime, _, seed) in enumerate(asked)
        if seed == 0
    ]


def _spread(values: npt.NDArray[np.float64]) -> float:
    return 196 * float(values.std(ddof=1)) / math.sqrt(len(values))


def _join(parts: Sequence[Sequence[Found]]) -> dict[str, npt.NDArray[np.float64]]:
    rows = [row for part in parts for row in part]
    return {name: np.array([row[name] for row in rows]) for name in rows[0]}


def _simulate(panel: Panel, regime: Regime, size: Size, seed: int) -> list[Found]:
    """Return what each question of a seed came to."""
    joined = {kind: with_another(panel, kind) for kind in (Kind.SYCOPHANT, Kind.LOUD_FOOL)}
    weights, others = [
        [
            {each: weights_after(each, np.random.default_rng([seed, panel.dice, part, 1])) for each in of}
            for part in range(HISTORIES)
        ]
        for of in ([panel], joined.values())
    ]
    drawn = {
        each: list(questions(each, size.questions, np.random.default_rng([seed, panel.dice])))
        for each in (panel, *joined.values())
    }
    return [
        _figures(panel, regime, question, weights[number % HISTORIES][panel])
        | {
            name: value
            for kind, each in joined.items()
            for name, value in _join_by(
                kind, each, regime, drawn[each][number], others[number % HISTORIES][each]
            ).items()
        }
        for number, question in enumerate(drawn[panel])
    ]


def _figures(panel: Panel, regime: Regime, question: Question, weights: Weights) -> Found:
    course = hold(panel, regime, question)
    size = len(panel.skills)
    sure = question.confidences[:size]
    last = Ballots(course.last, sure)
    end = adaptive_end(course, sure)
    found = {
        "majority": decide(last),
        "Elo": decide(last, weights.elo),
        "log-odds": decide(last, weights.accuracy),
        "judge": decide_by_judge(last, question.first[JUDGE_SEAT]),
        "adaptive": decide(Ballots(course.stands[end.place], sure)),
    }
    best = max(range(size), key=lambda seat: panel.skills[seat])
    found["best agent"] = question.first[best]
    for topology in ("ring", "star"):
        found[topology] = decide(Ballots(hold(panel, regime, question, topology).last, sure))
    in_turn, in_turn_calls = _in_turn(course, end, question, weights)
    right, judge = question.right, question.first[JUDGE_SEAT]
    return {name: float(answer == right) for name, answer in found.items()} | {
        "drafts, majority": rate_by_drafts(right, course.drafts),
        "drafts, Elo": rate_by_drafts(right, course.drafts, weights.elo[:size]),
        "drafts, log-odds": rate_by_drafts(right, course.drafts, weights.accuracy[:size]),
        "decision": _decision(course.drafts, question, weights),
        "decision, each weighs 1": rate_by_drafts(right, course.drafts, (), judge),
        "in turn": in_turn,
        "mean agent": sum(each == question.right for each in course.drafts) / size,
        "calls": calls(size, AFTER_ALL),
        "calls, adaptive": calls(size, end),
        "calls, in turn": in_turn_calls,
        "ended after drafts": float(end == AFTER_DRAFTS),
    }


def _decision(drafts: tuple[str, ...], question: Question, weights: Weights) -> float:
    """Return how right the default is, after however many rounds of whatever topology: it goes by what was said before them."""
    judge = question.first[JUDGE_SEAT]
    return rate_by_drafts(question.right, drafts, weights.accuracy[: len(drafts)], judge)


def _in_turn(course: Course, end: End, question: Question, weights: Weights) -> tuple[float, int]:
    """Return how right asking one after the other is, and the calls; where no answer is probable enough they debate."""
    asked = ask_in_turn(course.drafts, weights.accuracy)
    if asked is None:
        return _decision(course.drafts, question, weights), calls(len(course.drafts), end)
    some = rate_by_drafts(
        question.right,
        tuple(course.drafts[seat] for seat in asked),
        [weights.accuracy[seat] for seat in asked],
        question.first[JUDGE_SEAT],
    )
    return some, calls(len(asked), AFTER_DRAFTS)


def _join_by(kind: Kind, panel: Panel, regime: Regime, question: Question, weights: Weights) -> Found:
    """Return what a sixth agent makes of a question."""
    size = len(panel.skills)
    course, sure = hold(panel, regime, question), question.confidences[:size]
    last = Ballots(course.last, sure)
    decision = _decision(course.drafts, question, weights)
    return {
        f"{kind.value}, decision": decision,
        f"{kind.value}, majority": float(decide(last) == question.right),
        f"{kind.value}, log-odds": float(decide(last, weights.accuracy) == question.right),
    }
