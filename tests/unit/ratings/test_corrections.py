"""Corrections: ratings are what they would be had the debate come out so at its time, whatever the order and the replica."""

import itertools
from datetime import UTC, datetime
from pathlib import Path

import pytest

from parley.ratings.calibration import JudgedAnswer
from parley.ratings.match import Correction, Encounter, Feedback, Match, PhaseResult
from parley.ratings.matches import CorrectionReusedError, Matches, NoMatchError
from parley.ratings.table import Table
from parley.storage.opening import open_store

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
FIRST = Match("d1", "data", {"ada": 9, "bo": 4}, NOON, answers=(JudgedAnswer("ada", True, 0.9),))
OTHER_WAY = Match("d1", "data", {"ada": 4, "bo": 9}, NOON, phases=(PhaseResult("bo", "critique", 8),))
SECOND = Match("d2", "data", {"ada": 5, "bo": 6, "cy": 7}, NOON, encounters=(Encounter("ada", "bo", 2, 1),))


def make_correction(number: int, match: Match | None = OTHER_WAY) -> Correction:
    return Correction("d1", number, match, "the judge was wrong", NOON)


def count_matches(*matches: Match) -> Table:
    table = Table()
    for each in matches:
        table.count(each)
    return table


def read_table(table: Table) -> object:
    return (
        table.ratings(),
        table.ratings("data"),
        table.profiles.strengths("bo"),
        table.profiles.relationships("ada"),
    )


def test_a_corrected_match_counts_as_if_it_had_come_out_so() -> None:
    table = count_matches(FIRST, SECOND)
    table.correct([make_correction(1)])
    assert read_table(table) == read_table(count_matches(OTHER_WAY, SECOND))
    past = table.past_match("d1")
    assert past is not None
    assert (past.recorded, past.match) == (FIRST, OTHER_WAY)


def test_a_match_that_is_taken_away_leaves_nothing_behind() -> None:
    table = count_matches(FIRST, SECOND)
    table.correct([make_correction(1, None)])
    assert read_table(table) == read_table(count_matches(SECOND))
    assert table.count(FIRST) == (), "the same outcome again does not bring it back"
    assert read_table(table) == read_table(count_matches(SECOND))


def test_of_several_corrections_the_highest_number_counts_in_whichever_order_they_come() -> None:
    steps = [make_correction(1), make_correction(2, None), make_correction(3, FIRST)]
    for order in itertools.permutations(steps):
        table = count_matches(FIRST, SECOND)
        for each in (*order, order[0]):
            table.correct([each])
        assert read_table(table) == read_table(count_matches(FIRST, SECOND))


def test_a_correction_that_is_read_before_its_match_counts_once_the_match_is_there() -> None:
    table = Table()
    table.correct([make_correction(1)])
    table.count(FIRST)
    assert read_table(table) == read_table(count_matches(OTHER_WAY))


def test_what_people_said_stays_when_matches_are_counted_again() -> None:
    table = count_matches(FIRST, SECOND)
    table.count_feedback(Feedback("d1", 1, 1, "data", ("ada", "bo"), NOON))
    table.correct([make_correction(1)])
    assert table.rating("ada").approvals == table.rating("ada", "data").approvals == 1


async def test_a_correction_is_recorded_once_and_outlives_a_restart(tmp_path: Path) -> None:
    async with open_store(f"sqlite:///{tmp_path}", "ratings") as store:
        matches, other = Matches(store.log), Matches(store.log)
        with pytest.raises(NoMatchError):
            await matches.correct("default", make_correction(1))
        await matches.record("default", FIRST)
        await other.record("default", SECOND)
        existed, changes = await other.correct("default", make_correction(2))
        assert not existed
        assert [(each.agent_id, each.after) for each in changes] == [("ada", 1484), ("bo", 1516)]
        assert await matches.correct("default", make_correction(2)) == (True, changes), (
            "another replica knows it"
        )
        assert await matches.correct("default", make_correction(1, None)) == (True, changes), (
            "it comes too late"
        )
        with pytest.raises(CorrectionReusedError):
            await matches.correct("default", make_correction(2, None))
        assert read_table(await matches.read_table("default")) == read_table(count_matches(OTHER_WAY, SECOND))
    async with open_store(f"sqlite:///{tmp_path}", "ratings") as store:
        assert read_table(await Matches(store.log).read_table("default")) == read_table(
            count_matches(OTHER_WAY, SECOND)
        )
        assert not (await Matches(store.log).read_table("acme")).debates()
