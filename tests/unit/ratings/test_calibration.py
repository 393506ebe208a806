"""Counters of judged answers: Brier score, calibration, and the expected calibration error."""

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.ratings.calibration import NO_RECORD, JudgedAnswer, Record

ANSWERS = st.lists(
    st.builds(
        JudgedAnswer, st.just("ada"), st.booleans(), st.none() | st.integers(0, 100).map(lambda n: n / 100)
    ),
    max_size=30,
)


def record(*answers: tuple[bool, float | None]) -> Record:
    return count_answers([JudgedAnswer("ada", right, confidence) for right, confidence in answers])


def count_answers(answers: list[JudgedAnswer]) -> Record:
    found = NO_RECORD
    for each in answers:
        found = found.with_answer(each)
    return found


@given(ANSWERS)
def test_every_answer_is_counted_once_and_all_figures_keep_to_their_range(
    answers: list[JudgedAnswer],
) -> None:
    found = count_answers(answers)
    stated = [each for each in answers if each.confidence is not None]
    assert (found.answers, found.right) == (len(answers), sum(each.right for each in answers))
    assert found.answers_with_confidence == len(stated)
    assert 0 <= found.calibration <= 1
    assert (found.brier is None) == (found.expected_calibration_error is None) == (not stated)
    if found.brier is not None and found.expected_calibration_error is not None:
        assert 0 <= found.brier <= 1
        assert found.brier == pytest.approx(
            sum(((each.confidence or 0.0) - each.right) ** 2 for each in stated) / len(stated)
        )
        assert -1e-9 <= found.expected_calibration_error <= 1 + 1e-9


@given(ANSWERS, st.randoms())
def test_the_order_of_answers_does_not_matter(answers: list[JudgedAnswer], dice: Random) -> None:
    shuffled = list(answers)
    dice.shuffle(shuffled)
    one, other = count_answers(answers), count_answers(shuffled)
    assert one.brier_sum == pytest.approx(other.brier_sum)
    assert one.calibration == pytest.approx(other.calibration)
    assert [each.answers for each in one.bins] == [each.answers for each in other.bins]


def test_nothing_known_and_always_half_sure_are_neutral() -> None:
    assert NO_RECORD.calibration == 0.5
    half = record(*[(number % 2 == 0, 0.5) for number in range(40)])
    assert half.brier == pytest.approx(0.25)
    assert half.calibration == pytest.approx(0.5)
    assert half.expected_calibration_error == pytest.approx(0)


def test_who_is_sure_and_right_is_calibrated_and_who_is_sure_and_wrong_is_not() -> None:
    right, wrong = record(*[(True, 1.0)] * 36), record(*[(False, 1.0)] * 36)
    assert (right.brier, wrong.brier) == (0, 1)
    assert right.calibration == pytest.approx((2 + 36) / 40)
    assert wrong.calibration == pytest.approx(2 / 40)
    assert (right.expected_calibration_error, wrong.expected_calibration_error) == (0, 1)


def test_the_gap_is_told_bin_by_bin_so_that_two_gaps_do_not_cancel() -> None:
    # Half sure and always right, sure and half right: accuracy and confidence are equal on the whole.
    found = record((True, 0.55), (True, 0.55), (True, 0.95), (False, 0.95))
    assert found.expected_calibration_error == pytest.approx((abs(2 - 1.1) + abs(1 - 1.9)) / 4)


def test_an_answer_without_confidence_counts_for_accuracy_alone() -> None:
    found = record((True, None), (False, None), (True, None))
    assert (found.right, found.wrong, found.answers_with_confidence) == (2, 1, 0)
    assert (found.brier, found.calibration) == (None, 0.5)
