"""How well stands are told apart, on realistic ones. The figures are in docs/architecture/convergence.md."""

from collections.abc import Sequence
from functools import cache

import pytest

from parley.convergence.likeness import SAME_FROM, Placed, centred, cosine, likeness
from parley.convergence.models import MiniLm
from parley.convergence.reading import accord, contradiction
from parley.convergence.vectors import Vector
from tests.unit.convergence.statements import CHOSEN_FROM, HELD_OUT, Topic


class Judge:
    def __init__(self, model: MiniLm) -> None:
        self._embed = cache(model.embed)

    def place(self, question: str, stand: str) -> Placed:
        return Placed(stand, stand, centred(self._embed(stand), self._embed(question)))

    def rightly(self, topics: Sequence[Topic]) -> tuple[float, float]:
        """Shares of pairs of one stand, and of different ones, that are judged rightly."""
        same = [self._same(t.question, *pair) for t in topics for pair in t.same()]
        different = [not self._same(t.question, *pair) for t in topics for pair in t.different()]
        return sum(same) / len(same), sum(different) / len(different)

    def _same(self, question: str, one: str, other: str) -> bool:
        return likeness(question, self.place(question, one), self.place(question, other))[0] >= SAME_FROM

    def embed(self, text: str) -> Vector:
        return self._embed(text)


@pytest.fixture(scope="module")
def judge(minilm: MiniLm) -> Judge:
    return Judge(minilm)


def test_the_stands_that_the_thresholds_were_chosen_from_are_judged_rightly(judge: Judge) -> None:
    assert judge.rightly(CHOSEN_FROM) == (1.0, 1.0)


def test_stands_that_were_written_later_are_mostly_judged_rightly(judge: Judge) -> None:
    same, different = judge.rightly(HELD_OUT)
    assert same >= 0.85
    assert different >= 0.95


def test_the_cosine_alone_calls_opposite_answers_the_same(judge: Judge) -> None:
    question = "Should we raise prices next year?"
    one, other = "We should raise prices next year.", "We should lower prices next year."
    assert cosine(judge.embed(one), judge.embed(other)) > 0.85
    assert likeness(question, judge.place(question, one), judge.place(question, other))[0] == 0.0


def test_where_no_rule_decides_the_threshold_lies_between_the_two_kinds(judge: Judge) -> None:
    def undecided(topic: Topic, pairs: list[tuple[str, str]]) -> list[float]:
        question = topic.question
        return [
            cosine(judge.place(question, a).vector, judge.place(question, b).vector)
            for a, b in pairs
            if contradiction(question, a, b) is None and not accord(question, a, b)
        ]

    same = [each for topic in CHOSEN_FROM for each in undecided(topic, topic.same())]
    different = [each for topic in CHOSEN_FROM for each in undecided(topic, topic.different())]
    assert len(same) >= 8
    assert len(different) >= 12
    assert max(different) < 0.52 < min(same)
