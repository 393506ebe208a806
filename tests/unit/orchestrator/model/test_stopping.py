"""Stopping: what positions say of whether more asking or debating is likely to change anything."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.orchestrator.model.stopping import (
    StatedPosition,
    asking_order,
    group_agents,
    is_unanimous,
    measure_shift,
    name_positions,
    posterior,
)
from tests.support.real_debates import calibration_error, discrimination, forecasts, read_real_debates

AGENTS = [f"agent-{number}" for number in range(8)]
HELD = st.builds(StatedPosition, st.sampled_from("ABC"), st.none() | st.floats(0, 1))
ROUNDS = st.dictionaries(st.sampled_from(AGENTS), HELD, max_size=8)


def make_positions(positions: str, confidence: float | None = None) -> dict[str, StatedPosition]:
    return {AGENTS[place]: StatedPosition(each, confidence) for place, each in enumerate(positions)}


def test_drafts_are_unanimous_only_where_at_least_two_hold_one_position() -> None:
    assert is_unanimous("AAA")
    assert not is_unanimous("AAB")
    assert not is_unanimous("A")


def test_nothing_has_shifted_where_all_hold_what_they_held_and_are_as_sure() -> None:
    assert measure_shift(make_positions("AABB", 0.7), make_positions("AABB", 0.7)) == 0


@pytest.mark.parametrize("agents", range(2, 9))
def test_one_agent_that_moves_shifts_a_round_by_more_than_the_threshold(agents: int) -> None:
    before = "A" * (agents - 1) + "B"
    assert measure_shift(make_positions(before), make_positions("A" * agents)) > 0.05


def test_surer_agents_shift_it_a_little_and_only_where_they_said_it_in_both_rounds() -> None:
    assert 0 < measure_shift(make_positions("AABB", 0.7), make_positions("AABB", 0.8)) < 0.05
    assert measure_shift(make_positions("AABB"), make_positions("AABB", 0.8)) == 0


@given(ROUNDS, ROUNDS)
def test_a_shift_is_a_share_the_same_in_both_directions_and_whatever_positions_are_called(
    before: dict[str, StatedPosition], now: dict[str, StatedPosition]
) -> None:
    found = measure_shift(before, now)
    assert 0 <= found <= 1
    assert measure_shift(now, before) == pytest.approx(found)
    called = {"A": "z", "B": "y", "C": "x"}
    again = [
        {agent: StatedPosition(called[each.position], each.confidence) for agent, each in one.items()}
        for one in (before, now)
    ]
    assert measure_shift(*again) == pytest.approx(found)


def test_two_of_a_good_record_are_probable_enough_and_two_of_which_nothing_is_known_are_not() -> None:
    assert posterior({"ada": "A", "bo": "A"}, {"ada": 2.5, "bo": 2.5})["A"] > 0.9
    assert posterior({"ada": "A", "bo": "A"}, {"ada": 1, "bo": 1})["A"] < 0.9


def test_of_four_of_which_nothing_is_known_all_must_agree() -> None:
    weights = dict.fromkeys(AGENTS, 1.0)
    assert posterior(dict.fromkeys(AGENTS[:4], "A"), weights)["A"] > 0.9
    assert posterior(dict.fromkeys(AGENTS[:3], "A") | {AGENTS[3]: "B"}, weights)["A"] < 0.9


@given(st.dictionaries(st.sampled_from(AGENTS), st.sampled_from("ABC"), min_size=1), st.floats(0.1, 6))
def test_probabilities_leave_room_for_none_of_the_positions_and_one_more_ballot_raises_its_own(
    positions: dict[str, str], weight: float
) -> None:
    weights = dict.fromkeys([*AGENTS, "late"], weight)
    found = posterior(positions, weights)
    assert 0 < sum(found.values()) < 1
    assert posterior(positions | {"late": "A"}, weights)["A"] > found.get("A", 0)


@given(st.floats(0.1, 6))
def test_one_agent_alone_is_as_probably_right_as_its_weight_says(weight: float) -> None:
    odds = 2**weight
    assert posterior({"ada": "A"}, {"ada": weight})["A"] == pytest.approx(odds / (odds + 1))


@given(st.dictionaries(st.sampled_from(AGENTS), st.sampled_from("ABC"), min_size=1), st.data())
def test_who_joins_a_position_never_makes_it_less_probable_however_little_it_weighs(
    positions: dict[str, str], data: st.DataObject
) -> None:
    weights = {agent: data.draw(st.floats(0.1, 6)) for agent in [*AGENTS, "late"]}
    before = posterior(positions, weights).get("A", 0.0)
    assert posterior(positions | {"late": "A"}, weights)["A"] > before


@pytest.mark.parametrize("votes", [0, -1], ids=["first drafts", "last answers"])
def test_decisions_of_real_debates_are_right_as_often_as_they_are_called_probable(votes: int) -> None:
    found = forecasts(read_real_debates(), votes)
    assert calibration_error(found) <= 0.06
    assert discrimination(found) >= 0.8


def test_the_best_two_are_asked_first_and_equals_in_their_order() -> None:
    weights = {"ada": 1.0, "bo": 2.0, "cy": 1.0, "di": 3.0}
    assert asking_order(weights, list(weights)) == [["di", "bo"], ["ada"], ["cy"]]


@given(st.lists(st.floats(0.1, 5), min_size=1, max_size=8))
def test_everybody_is_in_the_order_once_and_nobody_before_a_better_one(said: list[float]) -> None:
    weights = dict(zip(AGENTS, said, strict=False))
    asked = [agent for group in asking_order(weights, list(weights)) for agent in group]
    assert sorted(asked) == sorted(weights)
    assert all(weights[one] >= weights[other] for one, other in pairwise(asked))


def test_pairs_that_are_apart_make_groups_or_contradict_each_other() -> None:
    assert group_agents(["a", "b", "c"], {("a", "c"), ("b", "c")}) == [("a", "b"), ("c",)]
    assert group_agents(["a", "b", "c"], {("a", "c")}) is None, "b holds what a holds and what c holds"
    assert group_agents(["a", "b"], ()) == [("a", "b")]


@given(st.dictionaries(st.sampled_from(AGENTS), st.sampled_from("ABC"), min_size=1))
def test_groups_are_found_again_from_the_pairs_that_are_apart(positions: dict[str, str]) -> None:
    agents = sorted(positions)
    apart = {(a, b) for a in agents for b in agents if a < b and positions[a] != positions[b]}
    found = group_agents(agents, apart)
    assert found is not None
    assert {frozenset(group) for group in found} == {
        frozenset(agent for agent in agents if positions[agent] == position)
        for position in positions.values()
    }


def test_a_position_keeps_its_name_as_long_as_somebody_keeps_it() -> None:
    before = {"ada": "x", "bo": "x", "cy": "y"}
    assert name_positions([["ada"], ["bo", "cy"]], before, {"ada", "cy"}, "new") == {
        "ada": "x",
        "bo": "y",
        "cy": "y",
    }
    assert name_positions([["ada", "bo"], ["cy"]], before, {"cy"}, "new") == {
        "ada": "new ada",
        "bo": "new ada",
        "cy": "y",
    }
