from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.ratings.elo import START, K, expectation, rating_changes
from parley.ratings.weights import elo_weight as weight

AGENTS = [f"agent-{number}" for number in range(12)]
ratings = st.dictionaries(st.sampled_from(AGENTS), st.floats(500, 2500))
scores = st.dictionaries(st.sampled_from(AGENTS), st.integers(0, 10).map(float), min_size=2)


@given(ratings, scores)
def test_a_match_creates_no_points(before: dict[str, float], match: dict[str, float]) -> None:
    assert sum(rating_changes(before, match).values()) == pytest.approx(0, abs=1e-9)


@given(ratings, scores, st.randoms())
def test_the_order_of_the_players_is_irrelevant(
    before: dict[str, float], match: dict[str, float], random: Random
) -> None:
    shuffled = list(match.items())
    random.shuffle(shuffled)
    assert rating_changes(before, dict(shuffled)) == rating_changes(before, match)


@given(ratings, scores)
def test_no_match_moves_anyone_by_more_than_k(before: dict[str, float], match: dict[str, float]) -> None:
    assert all(abs(change) <= K for change in rating_changes(before, match).values())


@given(scores)
def test_among_equals_a_better_score_never_gains_less(match: dict[str, float]) -> None:
    moved = rating_changes({}, match)
    for one, other in [(a, b) for a in match for b in match if match[a] > match[b]]:
        assert moved[one] > moved[other]


def test_the_first_win_of_two_moves_sixteen_points() -> None:
    assert rating_changes({}, {"a": 8, "b": 3}) == {"a": 16, "b": -16}


def test_the_first_win_of_ten_moves_sixteen_points_too() -> None:
    moved = rating_changes({}, {f"a{number}": 10.0 - number for number in range(10)})
    assert moved["a0"] == pytest.approx(16)
    assert moved["a9"] == pytest.approx(-16)


def test_a_draw_of_equals_moves_nothing_and_one_of_unequals_moves_toward_the_weaker() -> None:
    assert rating_changes({}, {"a": 5, "b": 5}) == {"a": 0, "b": 0}
    assert rating_changes({"a": 1900.0, "b": 1500.0}, {"a": 5, "b": 5})["b"] == pytest.approx(
        32 * (0.5 - 1 / 11)
    )


def test_four_hundred_points_are_ten_to_one() -> None:
    assert expectation(1900, 1500) == pytest.approx(10 / 11)


@pytest.mark.parametrize(
    ("elo", "calibration", "expected_weight"),
    [
        (START, 0.5, 1.0),
        (1750, 0.5, 1.5),
        (1000, 0.5, 0.1),
        (700, 0.5, 0.1),
        (1040, 0.5, 0.1),
        (1100, 0.5, 0.2),
        (1600, 1.0, 1.8),
        (1600, 0.0, 0.6),
    ],
)
def test_a_weight_follows_rating_and_calibration(
    elo: float, calibration: float, expected_weight: float
) -> None:
    assert weight(elo, calibration) == pytest.approx(expected_weight)


def test_an_agent_at_the_start_weighs_one() -> None:
    assert weight(START) == 1.0
