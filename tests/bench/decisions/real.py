"""The default decision on real debates: their first drafts, and as the judge's choice what another model answered to the same question.

The file holds no ballots of judges. So a judge is one of the other models: each first draft that it has given to the debate's question, in
whichever debate, is its choice once, and the debate counts by the mean over them. A choice that no draft of the debate takes is none.
Which model is stronger is told by the other questions of the same task: one whose drafts are right on them more often by ten points.
"""

from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Final

import numpy as np

from parley.orchestrator.model.deciding import weigh_judge
from parley.orchestrator.model.model_families import family_of
from parley.orchestrator.model.voting import Ballot, count_votes, group_options
from tests.support.real_debates import RealDebate, read_real_debates

_LEAD: Final = 0.1
"""By how much more often a stronger model is right."""
_DRAWS: Final = 2000
"""Draws of the questions, each with all of its debates, that an interval is made of."""
CALLED_STRONGER: Final = "a stronger one of another family, called stronger"


@dataclass(frozen=True, slots=True)
class Gain:
    """What the default comes to with judges of one kind.

    Attributes:
        pairs: Debates with a judge each.
        majority: How right the majority of the first drafts is, in percent; of tied answers each counts by its share.
        points: How much better the default is, with its 95 % interval, questions drawn as a whole.
        judges: The models that judge.
    """

    judge: str
    pairs: int
    questions: int
    majority: float
    points: float
    low: float
    high: float
    judges: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Pair:
    debate: RealDebate
    judge: str
    choices: Sequence[str | None]


def measure_gains() -> list[Gain]:
    """Return what the default comes to: without a judge's word, and with judges of which nothing is known, or that are stronger."""
    models = _Models(read_real_debates())
    apart, akin = models.pairs(_are_of_other_family), models.pairs(_are_of_same_family)
    stronger = [each for each in apart if models.leads(each)]
    none, called = weigh_judge(0, 0, stronger=False).weight, weigh_judge(0, 0, stronger=True).weight
    itself = models.pairs(lambda one, other: one == other)
    return [
        _gain("any of another family, no record", apart, none),
        _gain("a stronger one of another family, no record", stronger, none),
        _gain("no stronger one of another family, no record", [each for each in apart if each not in stronger], none),
        _gain("the panel's own model, no record", itself, none),
        _gain(CALLED_STRONGER, stronger, called),
        _gain("a stronger one of the same family, called stronger", [each for each in akin if models.leads(each)], called),
        _gain("a stronger one of another family, weighing 1", stronger, 1.0),
        _gain("the panel's own model, weighing 1", itself, 1.0),
    ]  # fmt: skip


def _are_of_other_family(one: str, other: str) -> bool:
    return family_of(one) != family_of(other)


def _are_of_same_family(one: str, other: str) -> bool:
    return one != other and bool(family_of(one)) and family_of(one) == family_of(other)


class _Models:
    """The models of the debates, and what each answered first."""

    def __init__(self, debates: Sequence[RealDebate]) -> None:
        self._debates = [each for each in debates if each.votes(0)]
        self._drafts: dict[tuple[str, str], list[str | None]] = defaultdict(list)
        self._truths = {each.question: each.truth for each in debates}
        self._tasks = {each.question: each.task for each in debates}
        for each in debates:
            self._drafts[each.model, each.question] += each.rounds[0]

    def pairs(self, is_judge: Callable[[str, str], bool]) -> list[_Pair]:
        """Return each debate with each model that may judge it and has answered its question."""
        models = sorted({model for model, _ in self._drafts})
        return [
            _Pair(debate, model, self._drafts[model, debate.question])
            for debate in self._debates
            for model in models
            if is_judge(model, debate.model) and (model, debate.question) in self._drafts
        ]

    def leads(self, pair: _Pair) -> bool:
        """Return whether the judge is right more often than the panel's model on the other questions that both have answered."""
        shared = [
            question
            for question in self._truths
            if question != pair.debate.question
            and all((model, question) in self._drafts for model in (pair.judge, pair.debate.model))
            and self._tasks[question] == pair.debate.task
        ]
        return bool(shared) and self._accuracy(pair.judge, shared) > _LEAD + self._accuracy(
            pair.debate.model, shared
        )

    def _accuracy(self, model: str, questions: Iterable[str]) -> float:
        return fmean(
            answer == self._truths[question]
            for question in questions
            for answer in self._drafts[model, question]
        )


def _gain(judge: str, pairs: Sequence[_Pair], weight: float) -> Gain:
    by_question: dict[str, list[tuple[float, float]]] = defaultdict(list)
    for pair in pairs:
        decided = fmean(_rate(pair.debate, choice, weight) for choice in pair.choices)
        by_question[pair.debate.question].append((_rate(pair.debate, None, 0.0), decided))
    sums = np.array([[*np.sum(found, axis=0), len(found)] for found in by_question.values()])
    majority, default, count = sums.sum(axis=0)
    drawn = sums[np.random.default_rng(0).integers(len(sums), size=(_DRAWS, len(sums)))].sum(axis=1)
    low, high = np.percentile(100 * (drawn[:, 1] - drawn[:, 0]) / drawn[:, 2], [2.5, 97.5])
    points = 100 * (default - majority) / count
    judges = frozenset(each.judge for each in pairs)
    return Gain(judge, len(pairs), len(sums), 100 * majority / count, points, low, high, judges)


def _rate(debate: RealDebate, choice: str | None, weight: float) -> float:
    """Return how right a decision is, by the functions that count one in a debate; of answers that stay tied each by its share."""
    votes = debate.votes(0)
    groups = group_options(votes, [[voter for voter in votes if votes[voter] == each] for each in {*votes.values()}], ())  # fmt: skip
    ballots = [Ballot(voter, voter) for voter in votes]
    holder = next((voter for voter in votes if votes[voter] == choice), "")
    if holder and weight:
        ballots.append(Ballot("judge", holder, weight))
    leaders = [votes[each] for each in count_votes(ballots, len(ballots), groups=groups).leaders]
    standing = [choice] if len(leaders) > 1 and choice in leaders else leaders
    return standing.count(debate.truth) / len(standing)
