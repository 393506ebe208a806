"""Simulated agents: they are as good as their skill says, err alike as models do, and move as their regime says."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from tests.bench.decisions.agents import (
    OPTIONS,
    PANELS,
    REGIMES,
    Kind,
    Question,
    questions,
    revise,
    with_another,
)
from tests.bench.decisions.debates import AFTER_ALL, AFTER_DRAFTS, Course, calls, hold
from tests.bench.decisions.deciding import Ballots, decide
from tests.bench.decisions.stops import adaptive_end, ask_in_turn

MARTINGALE, WEAK, CORRECTIVE = REGIMES
SURE = (0.9, 0.8, 0.7, 0.6, 0.5)


def draw(place: int = 0, count: int = 4000) -> list[Question]:
    panel = PANELS[place]
    return list(questions(panel, count, np.random.default_rng([7, panel.dice]), readings=0))


@pytest.mark.parametrize("place", range(len(PANELS)))
def test_an_agent_is_right_as_often_as_its_skill_says(place: int) -> None:
    found = draw(place)
    for seat, skill in enumerate(PANELS[place].skills):
        assert np.mean([each.first[seat] == each.right for each in found]) == pytest.approx(skill, abs=0.03)


def test_two_that_are_wrong_agree_on_about_60_percent() -> None:
    pairs = [(each.first[0], each.first[1]) for each in draw() if each.right not in each.first[:2]]
    assert np.mean([one == other for one, other in pairs]) == pytest.approx(0.63, abs=0.04)


def test_every_option_is_right_as_often_as_any_other() -> None:
    found = [each.right for each in draw()]
    for option in OPTIONS:
        assert found.count(option) / len(found) == pytest.approx(0.25, abs=0.03)


def test_agents_of_one_family_err_more_alike_than_others() -> None:
    def measure_wrong_together(place: int) -> float:
        panel = replace(PANELS[place], skills=(0.7,) * 5)
        found = questions(panel, 4000, np.random.default_rng(7), readings=0)
        return float(np.mean([each.right not in each.first[:2] for each in found]))

    assert measure_wrong_together(3) > measure_wrong_together(0) + 0.03


def test_agents_say_that_they_are_surer_than_they_are_right_and_hardly_know_when() -> None:
    found = draw()
    right = [each.confidences[0] for each in found if each.first[0] == each.right]
    wrong = [each.confidences[0] for each in found if each.first[0] != each.right]
    assert np.mean(right + wrong) == pytest.approx(0.7 + 0.15, abs=0.02)
    above = np.searchsorted(np.sort(wrong), right) / len(wrong)
    assert 0.55 < np.mean(above) < 0.68


def test_the_first_five_hold_the_same_whoever_joins_them() -> None:
    panel = PANELS[0]
    alone, joined = (
        list(questions(each, 50, np.random.default_rng(7)))
        for each in (panel, with_another(panel, Kind.LOUD_FOOL))
    )
    assert [each.first[:5] for each in alone] == [each.first[:5] for each in joined]
    assert [each.dice for each in alone] == [each.dice for each in joined]
    assert all(each.confidences[5] == 0.99 for each in joined)


def test_where_agents_only_draw_from_each_other_they_stay_as_often_right() -> None:
    panel = PANELS[1]
    found = list(questions(panel, 1500, np.random.default_rng(7)))
    shares = [
        np.mean(
            [[stand == each.right for stand in stands] for each, stands in zip(found, column, strict=True)]
        )
        for column in zip(*(hold(panel, MARTINGALE, each).stands for each in found), strict=True)
    ]
    assert all(after == pytest.approx(before, abs=0.02) for before, after in pairwise(shares))


@pytest.mark.parametrize(
    ("kind", "stands", "arguments", "dice", "expected"),
    [
        (Kind.OPEN, ["gold", "iron", "iron"], ["iron"], (0.9, 0.0, 0.5), "iron"),
        (Kind.OPEN, ["gold", "iron", "iron"], ["iron"], (0.9, 0.0, 0.7), "gold"),
        (Kind.OPEN, ["gold", "iron", "copper"], ["copper"], (0.9, 0.0, 0.0), "gold"),
        (Kind.OPEN, ["gold", "gold", "iron"], ["iron"], (0.1, 0.0, 0.9), "iron"),
        (Kind.SYCOPHANT, ["gold", "iron", "iron"], [], (0.9, 0.9, 0.9), "iron"),
        (Kind.SYCOPHANT, ["gold", "iron"], [], (0.0, 0.0, 0.0), "gold"),
        (Kind.LOUD_FOOL, ["gold", "iron", "iron"], ["iron"], (0.0, 0.0, 0.0), "gold"),
    ],
)
def test_an_agent_joins_a_majority_or_yields_to_an_argument(
    kind: Kind, stands: Sequence[str], arguments: Sequence[str], dice: Sequence[float], expected: str
) -> None:
    assert (
        revise(
            kind, CORRECTIVE, "silver" if kind is not Kind.OPEN else "iron", "gold", stands, arguments, dice
        )
        == expected
    )


def test_who_is_right_gives_way_the_more_the_more_argue_against_it() -> None:
    stands = ["gold", "gold", "iron"]
    assert revise(Kind.OPEN, WEAK, "gold", "gold", stands, ["iron", "iron"], (0.11, 0.0, 0.9)) == "iron"
    assert revise(Kind.OPEN, WEAK, "gold", "gold", stands, ["gold", "iron"], (0.11, 0.0, 0.9)) == "gold"


def test_proposals_with_one_answer_are_one_choice_and_weights_decide() -> None:
    cast = Ballots(("gold", "iron", "copper", "iron", "silver"), SURE)
    assert decide(cast) == "iron"
    assert decide(cast, (3.0, 1.0, 1.0, 1.0, 1.0)) == "gold"
    assert decide(Ballots(("gold", "iron", "copper", "silver", "iron"), (0.9, 0.1, 0.1, 0.1, 0.1))) == "iron"


def test_a_debate_ends_where_all_hold_the_same_and_takes_fewer_calls() -> None:
    one, split = ("gold",) * 5, ("gold", "gold", "iron", "iron", "copper")
    assert adaptive_end(Course((one,) * 5), SURE) == AFTER_DRAFTS
    assert adaptive_end(Course((split, one, one, one, one)), SURE).rounds == 1
    moving = tuple(("gold",) * place + ("iron",) * (5 - place) for place in (0, 4, 1, 3, 0))
    assert adaptive_end(Course((split, *moving[1:])), SURE) == AFTER_ALL
    assert calls(5, AFTER_DRAFTS) < calls(5, adaptive_end(Course((split, one, one, one, one)), SURE))
    assert calls(5, AFTER_ALL, "ring") < calls(5, AFTER_ALL)


def test_the_best_are_asked_first_until_an_answer_is_probable_enough() -> None:
    weights = (0.5, 0.6, 1.0, 2.0, 2.5)
    assert ask_in_turn(("iron", "iron", "iron", "gold", "gold"), weights) == [4, 3]
    assert ask_in_turn(("iron", "gold", "copper", "silver", "gold"), (0.1,) * 5) is None
