"""What a decision is made from: sides of first drafts, the judge's choice, and who takes a position in the end."""

from itertools import chain, combinations
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.orchestrator.model.deciding import positions_taken, sides, single_best, weigh_judge
from parley.orchestrator.model.voting import Ballot, count_votes
from parley.v1.voting_pb2 import JUDGE_STANDING_RECORD, JUDGE_STANDING_STRONGER, JUDGE_STANDING_TIES_ONLY

AGENTS = "abcdefg"
voters = st.sets(st.sampled_from(AGENTS))
groupings = st.dictionaries(st.sampled_from(AGENTS), st.integers(0, 3), min_size=1).map(
    lambda held: [
        tuple(sorted(each for each, place in held.items() if place == one))
        for one in sorted(set(held.values()))
    ]
)
seeds = st.integers(0, 2**16)


@given(groupings, voters)
def test_every_voter_with_a_draft_is_on_one_side_and_nobody_else(
    groups: list[tuple[str, ...]], who: set[str]
) -> None:
    assert sorted(chain(*sides(groups, who))) == sorted(who.intersection(chain(*groups)))


@given(groupings, voters, st.dictionaries(st.sampled_from(AGENTS), st.floats(0.1, 4), min_size=7), seeds)
def test_what_drafts_decide_hangs_on_no_order_of_voters_or_positions(
    groups: list[tuple[str, ...]], who: set[str], weights: dict[str, float], seed: int
) -> None:
    def decision(shuffled: list[tuple[str, ...]]) -> object:
        found = sides(shuffled, who)
        ballots = [Ballot(each, each, weights.get(each, 1.0)) for group in found for each in group]
        return count_votes(ballots, len(who) or 1, groups=found)

    other = [tuple(Random(seed).sample(each, len(each))) for each in groups]
    Random(seed).shuffle(other)
    assert decision(groups) == decision(other)


@given(st.dictionaries(st.sampled_from(AGENTS), st.integers(0, 3)), groupings)
def test_a_judge_chooses_an_option_that_it_scored_best_and_none_where_two_sides_are_equal(
    scores: dict[str, int], groups: list[tuple[str, ...]]
) -> None:
    chosen = single_best(scores, groups)
    best = {each for each, score in scores.items() if score == max(scores.values())}
    alike = {frozenset(group) for group in groups}
    if chosen is None:
        assert len(best) != 1
        assert not any(best and best <= group for group in alike)
    else:
        assert chosen in best
        assert len(best) == 1 or any(best <= group for group in alike)


def test_best_proposals_that_are_one_choice_are_chosen_and_others_are_not() -> None:
    scores = {"a": 8.0, "b": 8.0, "c": 3.0}
    assert single_best(scores, [("a", "b"), ("c",)]) == "a"
    assert single_best(scores, [("a",), ("b", "c")]) is None
    assert single_best({}, [("a",)]) is None


@given(st.sets(st.sampled_from(list(combinations(AGENTS, 2)))), st.sets(st.sampled_from(AGENTS), min_size=1))
def test_who_takes_a_position_in_the_end_takes_one_and_who_cannot_be_told_takes_none(
    unlike: set[tuple[str, str]], positions: set[str]
) -> None:
    named = sorted(positions)
    agents = set(AGENTS) - positions
    found = positions_taken(unlike, named, agents)
    for agent in agents:
        like = [each for each in named if (min(agent, each), max(agent, each)) not in unlike]
        taken = [place for place, who in enumerate(found) if agent in who]
        assert taken == ([named.index(like[0])] if len(like) == 1 else [])


def test_who_agrees_with_a_first_position_takes_it_whatever_it_has_to_do_with_others() -> None:
    unlike = [("ada", "first/2"), ("bo", "first/2"), ("ada", "bo")]
    assert positions_taken(unlike, ["first/1", "first/2"], {"ada", "bo"}) == [["ada", "bo"], []]


@pytest.mark.parametrize(
    ("right", "wrong", "weight"),
    [(0, 0, 0.0), (20, 40, 0.0), (5, 0, 0.5025), (12, 0, 1.0), (36, 12, 1.0), (54, 6, 1.874469)],
)
def test_a_judge_weighs_the_log_odds_of_its_record_and_nothing_without_one(
    right: int, wrong: int, weight: float
) -> None:
    found = weigh_judge(right, wrong, stronger=False)
    assert found.weight == pytest.approx(weight, abs=1e-5)
    assert found.standing == (JUDGE_STANDING_RECORD if weight else JUDGE_STANDING_TIES_ONLY)


def test_a_stronger_judge_overrules_a_majority_by_two_and_less_the_more_it_was_wrong() -> None:
    assert 2 < weigh_judge(0, 0, stronger=True).weight < 3
    assert weigh_judge(0, 0, stronger=True).standing == JUDGE_STANDING_STRONGER
    assert weigh_judge(10, 20, stronger=True).weight < 1
    assert weigh_judge(0, 16, stronger=True).standing == JUDGE_STANDING_TIES_ONLY


@given(st.integers(0, 1000), st.integers(0, 1000), st.booleans())
def test_where_ballots_are_not_weighted_a_judge_has_one_ballot_if_it_is_stronger_and_none_otherwise(
    right: int, wrong: int, stronger: bool
) -> None:
    assert weigh_judge(right, wrong, stronger=stronger, weighted=False).weight == float(stronger)
