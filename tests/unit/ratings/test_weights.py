"""What votes weigh by how often an agent was right, and what that gains in simulated panels."""

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.ratings.calibration import NO_RECORD, JudgedAnswer, Record
from parley.ratings.settings import RatingsSettings
from parley.ratings.weights import DOUBT, LEAST_WEIGHT, WeightRule, accuracy_weight, elo_weight, weigh
from tests.bench.decisions.agents import PANELS, Panel, questions
from tests.bench.decisions.deciding import Ballots, decide
from tests.bench.decisions.histories import weights_after

COUNTS = st.integers(0, 500)


def record(right: int, wrong: int) -> Record:
    return Record(right=right, wrong=wrong)


def test_without_an_answer_a_vote_weighs_one() -> None:
    assert accuracy_weight(NO_RECORD) == pytest.approx(1.0)


@given(COUNTS, COUNTS)
def test_one_more_right_answer_never_weighs_less_and_a_wrong_one_never_more(right: int, wrong: int) -> None:
    now = accuracy_weight(record(right, wrong))
    assert accuracy_weight(record(right + 1, wrong)) >= now >= accuracy_weight(record(right, wrong + 1))
    assert now >= LEAST_WEIGHT


def test_many_answers_weigh_as_the_log_odds_and_a_few_hardly_move_the_weight() -> None:
    assert accuracy_weight(record(80_000, 20_000)) == pytest.approx(math.log2(4), abs=1e-3)
    assert accuracy_weight(record(1, 0)) == pytest.approx(math.log2((2 * DOUBT + 1) / DOUBT))
    assert accuracy_weight(record(1, 0)) < 1.1


def test_who_is_right_half_of_the_time_or_less_weighs_the_least() -> None:
    assert accuracy_weight(record(400, 600)) == LEAST_WEIGHT


def test_an_agent_of_whom_nothing_was_judged_is_weighed_by_its_rating() -> None:
    assert weigh(1600, NO_RECORD, WeightRule.ACCURACY) == (elo_weight(1600), WeightRule.ELO)
    known = record(30, 10)
    assert weigh(1600, known, WeightRule.ACCURACY) == (accuracy_weight(known), WeightRule.ACCURACY)
    sure = known.with_answer(JudgedAnswer("ada", True, 1.0))
    assert weigh(1600, sure, WeightRule.ELO) == (elo_weight(1600, sure.calibration), WeightRule.ELO)
    assert elo_weight(1600, sure.calibration) > elo_weight(1600)


@pytest.mark.parametrize("panel", PANELS[1:3], ids=lambda panel: panel.name)
def test_the_default_is_the_rule_that_gains_more_in_simulated_panels(panel: Panel) -> None:
    assert RatingsSettings.model_fields["weight_rule"].default == WeightRule.ACCURACY.value
    right = []
    for seed in range(6):
        weights = weights_after(panel, np.random.default_rng([seed, 1]))
        for question in questions(panel, 200, np.random.default_rng([seed, 0]), readings=0):
            cast = Ballots(question.first[:5], question.confidences[:5])
            stood = decide(cast), decide(cast, weights.elo), decide(cast, weights.accuracy)
            right.append([each == question.right for each in stood])
    majority, by_elo, by_accuracy = np.mean(right, axis=0)
    assert by_accuracy >= majority + 0.01
    assert by_accuracy > by_elo + 0.01
