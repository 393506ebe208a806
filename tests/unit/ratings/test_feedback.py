"""What people say of debates: counted once beside the ratings, the latest word, whatever the order and the replica."""

import itertools
from datetime import UTC, datetime
from pathlib import Path

import pytest

from parley.ratings.elo import START
from parley.ratings.match import Feedback, Match
from parley.ratings.matches import FeedbackReusedError, Matches
from parley.ratings.table import Rating, Table
from parley.storage.opening import open_store

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


def word(value: int, number: int = 1, debate: str = "d1", domain: str = "data") -> Feedback:
    return Feedback(debate, number, value, domain, ("ada", "bo"), NOON)


def counts(rating: Rating) -> tuple[int, int]:
    return rating.approvals, rating.disapprovals


def test_a_word_counts_for_every_agent_overall_and_in_the_domain_and_moves_no_rating() -> None:
    table = Table()
    table.count_feedback(word(1))
    table.count_feedback(word(-1, debate="d2", domain="general"))
    assert counts(table.rating("ada")) == counts(table.rating("bo")) == (1, 1)
    assert counts(table.rating("ada", "data")) == (1, 0)
    assert {each.elo for each in table.ratings()} == {START}
    assert table.rating("ada").matches == 0


def test_of_several_words_the_one_with_the_highest_number_counts_in_whichever_order_they_come() -> None:
    words = [word(1, 1), word(-1, 2), word(1, 3), word(-1, 4)]
    for order in itertools.permutations(words):
        table = Table()
        for each in (*order, order[0]):
            table.count_feedback(each)
        assert counts(table.rating("ada")) == (0, 1)
        assert counts(table.rating("ada", "data")) == (0, 1)


def test_a_word_and_a_match_stand_side_by_side() -> None:
    table = Table()
    table.count_feedback(word(1))
    table.count(Match("d1", "data", {"ada": 9, "bo": 4}, NOON))
    table.count_feedback(word(-1, 2))
    assert (table.rating("ada").elo, table.rating("ada").matches) == (1516, 1)
    assert counts(table.rating("ada")) == (0, 1)


async def test_a_word_is_recorded_once_and_outlives_a_restart(tmp_path: Path) -> None:
    async with open_store(f"sqlite:///{tmp_path}", "ratings") as store:
        matches, other = Matches(store.log), Matches(store.log)
        assert not await matches.record_feedback("default", word(1))
        assert await other.record_feedback("default", word(1)), "another replica knows it"
        assert not await other.record_feedback("default", word(-1, 2))
        assert await matches.record_feedback("default", word(1)), "an earlier word comes too late"
        with pytest.raises(FeedbackReusedError):
            await matches.record_feedback("default", word(1, 2))
        assert counts((await matches.read_table("default")).rating("ada")) == (0, 1)
    async with open_store(f"sqlite:///{tmp_path}", "ratings") as store:
        again = Matches(store.log)
        assert counts((await again.read_table("default")).rating("ada")) == (0, 1)
        assert counts((await again.read_table("acme")).rating("ada")) == (0, 0)
