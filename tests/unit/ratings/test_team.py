"""The choice of a team: the best, and some who may turn out to be."""

from collections import Counter
from datetime import UTC, datetime
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.ratings.match import Match
from parley.ratings.table import Table
from parley.ratings.team import select_team
from parley.v1.ratings_pb2 import Candidate

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
AGENTS = ["ada", "bo", "cy", "dee", "new"]


def play() -> Table:
    """Ada is the best, then bo, cy and dee; nothing is known of new."""
    table = Table()
    for number in range(12):
        table.count(Match(f"d{number}", "data", {"ada": 9, "bo": 7, "cy": 5, "dee": 3}, NOON))
    return table


TABLE = play()


def team(debate: str = "deb", size: int = 3, share: float = 0.0, domain: str = "data") -> list[Candidate]:
    return select_team(TABLE, debate, AGENTS, size, domain, share)


def test_without_exploration_the_best_have_the_seats() -> None:
    chosen = [each for each in team() if each.chosen]
    assert [each.agent_id for each in chosen] == ["ada", "bo", "new"]
    assert not any(each.explored for each in chosen)
    assert chosen[-1].score == pytest.approx(0.5), "nothing known is the middle"


def test_a_quarter_of_the_seats_goes_to_those_that_are_drawn_unless_it_is_said() -> None:
    assert sum(each.explored for each in select_team(TABLE, "deb", AGENTS, 4, "data")) == 1


@given(st.text("abc", min_size=1, max_size=5), st.integers(1, 5), st.floats(0, 1), st.randoms())
def test_every_seat_is_given_once_and_the_order_of_the_candidates_does_not_matter(
    debate: str, size: int, share: float, dice: Random
) -> None:
    shuffled = list(AGENTS)
    dice.shuffle(shuffled)
    found = select_team(TABLE, debate, shuffled, size, "data", share)
    assert found == select_team(TABLE, debate, AGENTS, size, "data", share)
    assert sorted(each.agent_id for each in found) == sorted(AGENTS)
    assert sum(each.chosen for each in found) == size
    assert sum(each.explored for each in found) == int(size * share + 0.5)
    assert [each.chosen for each in found] == sorted((each.chosen for each in found), reverse=True)
    assert all(each.chosen for each in found if each.explored)


def test_a_debate_draws_the_same_whenever_it_is_asked_and_another_one_differently() -> None:
    assert team("one", share=0.34) == team("one", share=0.34)
    assert len({tuple(each.draw for each in team(f"debate-{number}")) for number in range(20)}) == 20


def test_who_is_little_known_is_explored_more_often_than_who_is_known_to_lose() -> None:
    explored = Counter(
        each.agent_id
        for number in range(200)
        for each in select_team(TABLE, f"debate-{number}", ["ada", "cy", "dee", "new"], 2, "data", 0.5)
        if each.explored
    )
    assert explored["new"] > explored["dee"]
    assert explored["ada"] == 0, "it has its seat as one of the best"


def test_the_reason_says_why_and_by_which_figures() -> None:
    told = {each.agent_id: each.reason for each in team("deb", 3, 0.34)}
    assert told["ada"].startswith("among the best: score 0.")
    assert told["ada"].endswith("12 matches known")
    assert sum(reason.startswith("drawn to learn of it") for reason in told.values()) == 1
    assert sum(reason.startswith("neither among the best nor drawn") for reason in told.values()) == 2


def test_a_record_in_the_domain_counts_there_and_not_elsewhere() -> None:
    here, elsewhere = ({each.agent_id: each for each in team(domain=domain)} for domain in ("data", "law"))
    assert here["ada"].domain_score > 0.5
    assert elsewhere["ada"].domain_score == 0.5
    assert here["ada"].rating_score == elsewhere["ada"].rating_score
