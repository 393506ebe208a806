"""What the judge says of the evidence, weighed with what the texts show."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.orchestrator.formats.arena.trickster import combine_with_support
from parley.orchestrator.model.hollowness import features_of, hollow_probability
from tests.support.labelled_debates import read_held_out_debates, support_told

PROBABILITY = st.floats(0, 1)
SUPPORT = st.floats(0, 10)


@given(PROBABILITY, SUPPORT, SUPPORT)
def test_more_support_never_makes_an_agreement_more_hollow(p: float, one: float, other: float) -> None:
    assert combine_with_support(p, max(one, other)) <= combine_with_support(p, min(one, other))


@given(PROBABILITY, PROBABILITY, SUPPORT)
def test_what_the_texts_show_is_never_turned_around(one: float, other: float, support: float) -> None:
    assert combine_with_support(min(one, other), support) <= combine_with_support(max(one, other), support)


@pytest.mark.parametrize(
    ("p", "support", "hollow"), [(0.9, 5, True), (0.1, 5, False), (1.0, 8, False), (0.0, 2, True)]
)
def test_a_judge_in_the_middle_leaves_it_to_the_texts_and_one_that_is_sure_does_not(
    p: float, support: float, hollow: bool
) -> None:
    assert (combine_with_support(p, support) >= 0.5) is hollow


def test_with_a_judge_that_is_mostly_right_held_out_debates_are_told_as_well_as_is_aimed_at() -> None:
    debates = read_held_out_debates()
    by_text = [hollow_probability(features_of(each.question, each.work, each.critiques)) for each in debates]
    told = [
        combine_with_support(p, each) >= 0.5 for p, each in zip(by_text, support_told(debates), strict=True)
    ]
    right = sum(each.hollow and fired for each, fired in zip(debates, told, strict=True))
    assert right / sum(told) >= 0.9, "precision"
    assert right / sum(each.hollow for each in debates) >= 0.8, "recall"
