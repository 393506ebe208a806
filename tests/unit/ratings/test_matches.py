import asyncio
import threading
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.ratings import matches as matches_module
from parley.ratings.elo import START
from parley.ratings.match import Match
from parley.ratings.matches import DebateReusedError, Matches
from parley.ratings.table import Rating, Table
from parley.storage.opening import open_store
from parley.storage.ports import Record

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
AGENTS = ["ada", "bo", "cy", "di"]
outcomes = st.lists(
    st.tuples(
        st.sampled_from(["general", "security", "data"]),
        st.dictionaries(st.sampled_from(AGENTS), st.integers(0, 10).map(float), min_size=2),
    ),
    max_size=20,
)


def match(debate_id: str, scores: dict[str, float], domain: str = "general") -> Match:
    return Match(debate_id, domain, scores, NOON)


@given(outcomes)
def test_all_points_of_a_table_are_the_points_of_its_start(
    played: list[tuple[str, dict[str, float]]],
) -> None:
    table = Table()
    for number, (domain, scores) in enumerate(played):
        table.count(match(f"d{number}", scores, domain))
    for domain in ("", "general", "security", "data"):
        ratings = table.ratings(domain)
        assert sum(each.elo for each in ratings) == pytest.approx(START * len(ratings))
        assert sum(each.wins for each in ratings) == sum(each.losses for each in ratings)


@given(outcomes)
def test_a_match_counts_once_however_often_it_is_counted(played: list[tuple[str, dict[str, float]]]) -> None:
    once, often = Table(), Table()
    for number, (domain, scores) in enumerate(played):
        once.count(match(f"d{number}", scores, domain))
        for earlier, (other_domain, other_scores) in enumerate(played[: number + 1]):
            often.count(match(f"d{earlier}", other_scores, other_domain))
    assert once.ratings() == often.ratings()


def test_a_domain_counts_only_its_own_matches() -> None:
    table = Table()
    table.count(match("d1", {"ada": 9, "bo": 2}, "security"))
    table.count(match("d2", {"ada": 1, "bo": 5, "cy": 5}, "data"))
    assert table.rating("ada", "security").elo == 1516
    assert table.rating("ada").matches == 2
    assert table.rating("cy", "security") == Rating("cy", "security")
    assert (table.rating("cy").wins, table.rating("cy").draws, table.rating("cy").losses) == (1, 1, 0)
    assert [each.agent_id for each in table.ratings("data")] == ["bo", "cy", "ada"]


def test_a_vote_weighs_the_rating_of_its_domain_or_else_the_overall_one() -> None:
    table = Table()
    table.count(match("d1", {"ada": 9, "bo": 2}, "security"))
    assert table.rating_for_vote("ada", "security").domain == "security"
    assert table.rating_for_vote("ada", "data") == table.rating("ada")
    assert table.rating_for_vote("cy", "data") == Rating("cy", "")


def test_pages_hold_every_rating_once() -> None:
    table = Table()
    table.count(match("d1", {"ada": 5, "bo": 5, "cy": 9, "di": 1}))
    pages, after, more = [], None, True
    while more:
        page, more = table.page("general", after, 1)
        pages += page
        after = (page[-1].elo, page[-1].agent_id)
    assert [each.agent_id for each in pages] == ["cy", "ada", "bo", "di"]
    assert table.page("general", None, 4) == (pages, False)
    assert table.page("unknown", None, 4) == ([], False)


@pytest.mark.parametrize("page", [1000, 2])
async def test_ratings_are_the_same_after_a_restart(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, page: int
) -> None:
    monkeypatch.setattr(matches_module, "_PAGE", page)
    url = f"sqlite:///{tmp_path}"
    async with open_store(url, "ratings") as store:
        matches = Matches(store.log)
        for number in range(5):
            await matches.record("acme", match(f"d{number}", {"ada": 5.0 + number, "bo": 7, "cy": 6}))
        before = (await matches.read_table("acme")).ratings()
    async with open_store(url, "ratings") as store:
        assert (await Matches(store.log).read_table("acme")).ratings() == before
        assert before[0].matches == 5


async def test_the_same_outcome_again_changes_nothing_and_another_is_refused(tmp_path: Path) -> None:
    async with open_store(f"sqlite:///{tmp_path}", "ratings") as store:
        matches = Matches(store.log)
        existed, first = await matches.record("acme", match("d1", {"ada": 9, "bo": 2}))
        again = Match("d1", "general", {"bo": 2, "ada": 9}, NOON + timedelta(hours=1))
        assert not existed
        assert await matches.record("acme", again) == (True, first)
        for other in (match("d1", {"ada": 2, "bo": 9}), match("d1", {"ada": 9, "bo": 2}, "security")):
            with pytest.raises(DebateReusedError):
                await matches.record("acme", other)
        assert (await matches.read_table("acme")).rating("ada").matches == 1


async def test_two_replicas_that_record_at_once_count_every_debate_once(tmp_path: Path) -> None:
    async with open_store(f"sqlite:///{tmp_path}", "ratings") as store:
        replicas = [Matches(store.log), Matches(store.log)]
        async with asyncio.TaskGroup() as group:
            for number in range(20):
                outcome = match(f"d{number}", {"ada": float(number % 3), "bo": 1})
                for replica in replicas:
                    group.create_task(replica.record("acme", outcome))
        tables = [(await replica.read_table("acme")).ratings() for replica in replicas]
    assert tables[0] == tables[1]
    assert tables[0][0].matches == 20


async def test_a_match_is_recorded_without_a_look_at_the_log_unless_another_replica_wrote_to_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_store(f"sqlite:///{tmp_path}", "ratings") as store:
        one, other = Matches(store.log), Matches(store.log)
        await one.record("acme", match("d1", {"ada": 9, "bo": 2}))
        read, positions = store.log.read, list[int]()

        async def note(log: str, after: int = 0, limit: int = 1000) -> Sequence[Record]:
            positions.append(after)
            return await read(log, after, limit)

        monkeypatch.setattr(store.log, "read", note)
        await one.record("acme", match("d2", {"ada": 9, "bo": 2}))
        assert not positions
        _, changes = await other.record("acme", match("d3", {"ada": 9, "bo": 2}))
        assert positions == [0]
        assert await one.record("acme", match("d3", {"ada": 9, "bo": 2})) == (True, changes)
        assert positions == [0, 2]


async def test_tenants_do_not_share_ratings(tmp_path: Path) -> None:
    async with open_store(f"sqlite:///{tmp_path}", "ratings") as store:
        matches = Matches(store.log)
        await matches.record("acme", match("d1", {"ada": 9, "bo": 2}))
        await matches.record("other", match("d1", {"ada": 2, "bo": 9}))
        assert (await matches.read_table("acme")).rating("ada").elo == 1516
        assert (await matches.read_table("other")).rating("ada").elo == 1484
        assert (await matches.read_table("third")).ratings() == []


async def test_whoever_names_tenants_makes_no_table_stay_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(matches_module, "_MAX_TENANTS", 3)
    async with open_store(f"sqlite:///{tmp_path}", "ratings") as store:
        recorded = Matches(store.log)
        await recorded.record("known", match("d1", {"ada": 7.0, "bo": 3.0}))
        before = (await recorded.read_table("known")).rating("ada")
        for number in range(10):
            await recorded.read_table(f"invented-{number}")
        assert len(recorded._tenants) == 3
        assert (await recorded.read_table("known")).rating("ada") == before, "it is read again"
        assert len(recorded._tenants) == 3


async def test_an_entry_that_cannot_be_read_is_passed_over(tmp_path: Path) -> None:
    async with open_store(f"sqlite:///{tmp_path}", "ratings") as store:
        await Matches(store.log).record("t", match("d1", {"ada": 7.0, "bo": 3.0}))
        await store.log.append("matches/t", Record(2, "odd", (b"odd",)))
        recorded = Matches(store.log)
        await recorded.record("t", match("d2", {"ada": 7.0, "bo": 3.0}))
        assert (await Matches(store.log).read_table("t")).rating("ada").matches == 2


async def test_a_table_is_made_in_a_thread_until_somebody_has_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A long log would hold up all callers; a table that a caller reads changes between its awaits alone."""
    async with open_store(f"sqlite:///{tmp_path}", "ratings") as store:
        writer = Matches(store.log)
        await writer.record("acme", match("d1", {"ada": 1, "bo": 0}))
        threads: list[bool] = []
        count = Table.count

        def note(table: Table, each: Match, sequence: int) -> object:
            threads.append(threading.current_thread() is threading.main_thread())
            return count(table, each, sequence)

        reader = Matches(store.log)
        monkeypatch.setattr(Table, "count", note)
        await reader.read_table("acme")
        monkeypatch.setattr(Table, "count", count)
        await writer.record("acme", match("d2", {"ada": 1, "bo": 0}))
        monkeypatch.setattr(Table, "count", note)
        assert (await reader.read_table("acme")).rating("ada").matches == 2
    assert threads == [False, True]
