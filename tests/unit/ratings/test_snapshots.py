"""Snapshots of the ratings: a start counts what came after one, and whatever becomes of one, every match counts once."""

import dataclasses
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec import structs

from parley.ratings import entries as entries_module
from parley.ratings import matches as matches_module
from parley.ratings import snapshot as snapshot_module
from parley.ratings import table as table_module
from parley.ratings.calibration import JudgedAnswer
from parley.ratings.match import Correction, Encounter, Feedback, Match, PhaseResult
from parley.ratings.matches import DebateReusedError, Matches
from parley.ratings.snapshot import SNAPSHOTS
from parley.ratings.table import PastMatch
from parley.storage.encryption.wrapping import NO_KEYS, WrappingKeys
from parley.storage.opening import Store, open_store
from parley.storage.ports import Collection, Fields, Record, StoreDamagedError, StoreUnavailableError
from tests.support.encryption import create_keys
from tests.support.passing_log import PassingLog

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)
AGENTS = ["ada", "bo", "cy"]


@pytest.fixture(autouse=True)
def small_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(matches_module, "_SNAPSHOT_EVERY", 5)
    monkeypatch.setattr(matches_module, "MATCHES_PER_PAGE", 3)
    monkeypatch.setattr(table_module, "MATCHES_PER_PAGE", 3)


def match(number: int, *scores: float, domain: str = "general") -> Match:
    given = dict(zip(AGENTS, scores or (float(number % 7), 3.0, 5.0), strict=False))
    answers = tuple(JudgedAnswer(each, score > 3, score / 10) for each, score in given.items())
    phases = (PhaseResult("ada", "proposal", given["ada"]),)
    return Match(f"d{number}", domain, given, NOON, answers, phases, (Encounter("ada", "bo", number, 1),))


class CountingLog(PassingLog):
    """A log that counts the entries that are read of it."""

    read_entries = 0

    async def read(self, log: str, after: int = 0, limit: int = 1000) -> Sequence[Record]:
        records = await self._log.read(log, after, limit)
        self.read_entries += sum(len(each.entries) for each in records)
        return records


@asynccontextmanager
async def open_ratings_store(folder: Path, keys: WrappingKeys = NO_KEYS) -> AsyncIterator[Store]:
    async with open_store(f"sqlite:///{folder}", "ratings", wrapping=keys) as store:
        yield store


async def state(matches: Matches) -> tuple[Any, ...]:
    """All that callers can see of a tenant's ratings."""
    past = [each async for each in matches.read_past_matches("acme", None)]
    table = await matches.read_table("acme")
    profiles = [
        (table.profiles.strengths(each), table.profiles.relationships(each)) for each in sorted(AGENTS)
    ]
    ratings = [table.ratings(domain) for domain in ("", "general", "data")]
    return ratings, profiles, past, [table.feedback(f"d{number}") for number in range(40)]


async def play(matches: Matches, numbers: range) -> None:
    for number in numbers:
        await matches.record("acme", match(number))


async def test_a_start_reads_what_follows_the_snapshot_and_comes_to_the_same(tmp_path: Path) -> None:
    async with open_ratings_store(tmp_path) as store:
        await play(Matches(store.log, store.documents), range(27))
        counting = CountingLog(store.log)
        table = await Matches(counting, store.documents).read_table("acme")
        assert counting.read_entries == 1 + 2, "the entry that the snapshot ends with, and two that follow"
        whole = Matches(store.log)
        assert table.ratings() == (await whole.read_table("acme")).ratings()
        assert await state(Matches(store.log, store.documents)) == await state(whole)


async def test_a_page_of_past_matches_reads_these_alone(tmp_path: Path) -> None:
    async with open_ratings_store(tmp_path) as store:
        await play(Matches(store.log, store.documents), range(30))
        counting = CountingLog(store.log)
        matches = Matches(counting, store.documents)
        await matches.read_table("acme")
        counting.read_entries = 0
        listed: list[tuple[int, PastMatch]] = []
        async for each in matches.read_past_matches("acme", 13):
            listed.append(each)
            if len(listed) == 3:
                break
        assert [(place, each.recorded) for place, each in listed] == [
            (place, match(place - 1)) for place in (12, 11, 10)
        ]
        assert counting.read_entries < 30
        counting.read_entries = 0
        assert [each async for each in matches.read_past_matches("acme", 13)][:3] == listed
        assert counting.read_entries < 30, "what was read is kept for a while"


async def test_a_page_of_past_matches_is_whole_if_it_takes_several_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(entries_module, "_PAGE", 2)
    async with open_ratings_store(tmp_path) as store:
        await play(Matches(store.log, store.documents), range(11))
        started = Matches(store.log, store.documents)
        listed = [past.recorded async for _, past in started.read_past_matches("acme", None)]
        assert listed == [match(number) for number in reversed(range(11))]


async def test_a_match_of_before_the_snapshot_counts_once_and_is_refused_with_another_outcome(
    tmp_path: Path,
) -> None:
    async with open_ratings_store(tmp_path) as store:
        first = Matches(store.log, store.documents)
        _, changes = await first.record("acme", match(0))
        await play(first, range(1, 12))
        again = Matches(store.log, store.documents)
        assert await again.record("acme", match(0)) == (True, changes)
        with pytest.raises(DebateReusedError):
            await again.record("acme", match(0, 9.0, 9.0))
        assert (await again.read_table("acme")).rating("ada").matches == 12


async def test_a_snapshot_of_another_version_is_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_ratings_store(tmp_path) as store:
        await play(Matches(store.log, store.documents), range(12))
        before = await state(Matches(store.log))
        monkeypatch.setattr(snapshot_module, "VERSION", 99)
        counting = CountingLog(store.log)
        assert await state(Matches(counting, store.documents)) == before
        assert counting.read_entries >= 12
        kept = await store.documents.get(SNAPSHOTS, "acme")
        assert kept is not None
        assert kept.fields["version"] == 99


@pytest.mark.parametrize(
    "changed",
    [
        {"mark": "other"},
        {"sequence": 99},
        {"sequence": "x"},
        {"correction_sequence": None},
        {"ratings": 7},
        {"pages": [[1]]},
        {"pages": [[1, 7]]},
        {"pages": [["x", {}]]},
    ],
)
async def test_a_snapshot_that_is_not_of_this_log_or_cannot_be_read_is_made_anew(
    tmp_path: Path, changed: Fields
) -> None:
    async with open_ratings_store(tmp_path) as store:
        await play(Matches(store.log, store.documents), range(12))
        before = await state(Matches(store.log))
        assert await store.documents.update(SNAPSHOTS, "acme", changed)
        assert await state(Matches(store.log, store.documents)) == before
        counting = CountingLog(store.log)
        await Matches(counting, store.documents).read_table("acme")
        assert counting.read_entries < 12


async def test_a_sealed_snapshot_that_was_damaged_is_made_anew(tmp_path: Path) -> None:
    keys = create_keys()
    async with open_ratings_store(tmp_path, keys) as store:
        await play(Matches(store.log, store.documents), range(12))
        before = await state(Matches(store.log))
        stored = structs.replace(SNAPSHOTS, private=())
        assert await store.documents.update(stored, "acme", {"debates": {"parley-sealed": "changed"}})
        with pytest.raises(StoreDamagedError):
            await store.documents.get(SNAPSHOTS, "acme")
        reader = Matches(store.log, store.documents, reading=True)
        assert await state(reader) == before
        assert await state(Matches(store.log, store.documents)) == before
        counting = CountingLog(store.log)
        await Matches(counting, store.documents).read_table("acme")
        assert counting.read_entries < 12, "a snapshot was kept again"


async def test_feedback_before_all_else_after_a_start_counts_once(tmp_path: Path) -> None:
    def feedback(number: int) -> Feedback:
        return Feedback(f"d{number}", 1, 1, "general", ("ada",), NOON)

    async with open_ratings_store(tmp_path) as store:
        first = Matches(store.log, store.documents)
        await play(first, range(12))
        await first.record_feedback("acme", feedback(0))
        again = Matches(store.log, store.documents)
        assert not await again.record_feedback("acme", feedback(1))
        assert (await again.read_table("acme")).rating("ada").approvals == 2
        assert await again.record_feedback("acme", feedback(0))
        assert await again.record_feedback("acme", feedback(1))
        assert len(await store.log.read("feedback/acme")) == 2


async def test_a_snapshot_that_is_too_large_is_tried_again_after_as_many_matches(tmp_path: Path) -> None:
    class Small:
        """Documents for which each snapshot is too large."""

        tries = 0

        def __init__(self, store: Store) -> None:
            self._inner = store.documents

        async def update(self, *_: object, **__: object) -> bool:
            self.tries += 1
            raise ValueError("a document has at most 15000000 bytes")

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

    async with open_ratings_store(tmp_path) as store:
        documents: Any = Small(store)
        matches = Matches(store.log, documents)
        await play(matches, range(9))
        for _ in range(3):
            await matches.read_table("acme")
        assert documents.tries == 1
        await play(matches, range(9, 10))
        assert documents.tries == 2
        await matches.correct("acme", Correction("d1", 1, None, "as it was", NOON))
        await matches.read_table("acme")
        assert documents.tries == 3


async def test_a_match_that_can_no_longer_be_read_hides_no_other_after_a_correction(tmp_path: Path) -> None:
    class Torn(PassingLog):
        """A log whose second entry can no longer be read."""

        async def read(self, log: str, after: int = 0, limit: int = 1000) -> Sequence[Record]:
            records = await self._log.read(log, after, limit)
            if not log.startswith("matches/"):
                return records
            return [structs.replace(each, entries=(b"{",)) if each.first == 2 else each for each in records]

    async with open_ratings_store(tmp_path) as store:
        await play(Matches(store.log, store.documents), range(12))
        matches = Matches(Torn(store.log), store.documents)
        await matches.correct("acme", Correction("d5", 1, None, "as it was", NOON))
        await play(matches, range(12, 14))
        past = [each async for each in matches.read_past_matches("acme", None)]
        assert [each.recorded for _, each in past] == [match(each) for each in range(13, -1, -1) if each != 1]
        assert await matches.record("acme", match(1)) == (True, ())
        assert len(await store.log.read("matches/acme")) == 14, "nothing is appended that would not count"
        counted = await Matches(Torn(store.log)).read_table("acme")
        assert (await matches.read_table("acme")).ratings() == counted.ratings()


async def test_a_snapshot_that_cannot_be_kept_costs_nothing_but_time(tmp_path: Path) -> None:
    class Full:
        """Documents that take no snapshot."""

        def __init__(self, store: Store) -> None:
            self._inner = store.documents

        async def update(self, *_: object, **__: object) -> bool:
            raise StoreUnavailableError("the disk is full")

        def __getattr__(self, name: str) -> Any:
            return getattr(self._inner, name)

    async with open_ratings_store(tmp_path) as store:
        documents: Any = Full(store)
        await play(Matches(store.log, documents), range(12))
        assert await store.documents.get(SNAPSHOTS, "acme") is None
        assert (await Matches(store.log, documents).read_table("acme")).rating("ada").matches == 12


async def test_who_only_reads_uses_a_snapshot_and_keeps_none(tmp_path: Path) -> None:
    async with open_ratings_store(tmp_path) as store:
        await play(Matches(store.log), range(12))
        await Matches(store.log, store.documents, reading=True).read_table("acme")
        assert await store.documents.get(SNAPSHOTS, "acme") is None


async def test_a_replica_that_read_less_does_not_replace_the_snapshot_of_one_that_read_more(
    tmp_path: Path,
) -> None:
    async with open_ratings_store(tmp_path) as store:
        held: list[tuple[Collection, str, Fields, Any]] = []

        class Late:
            """Documents that write a snapshot only when they are asked to."""

            async def update(self, *given: Any) -> bool:
                held.append(given)
                return True

            def __getattr__(self, name: str) -> Any:
                return getattr(store.documents, name)

        late: Any = Late()
        await play(Matches(store.log, late), range(5))
        await play(Matches(store.log, store.documents), range(5, 12))
        assert not await store.documents.update(*held[0])
        kept = await store.documents.get(SNAPSHOTS, "acme")
        assert kept is not None
        assert kept.fields["sequence"] == 11


async def test_matches_are_kept_in_memory_of_the_last_page_alone(tmp_path: Path) -> None:
    async with open_ratings_store(tmp_path) as store:
        matches = Matches(store.log)
        await play(matches, range(20))
        table = await matches.read_table("acme")
        assert [table.past_match(f"d{number}") is not None for number in range(20)] == [False] * 18 + [
            True
        ] * 2
        assert len([each async for each in matches.read_past_matches("acme", None)]) == 20
        await play(matches, range(20, 22))
        assert [table.past_match(f"d{number}") is not None for number in range(22)] == [False] * 21 + [True]


ACTS = st.lists(
    st.one_of(
        st.tuples(st.just("match"), st.integers(0, 25), st.integers(0, 10)),
        st.tuples(st.just("correct"), st.integers(0, 25), st.integers(0, 10)),
        st.tuples(st.just("void"), st.integers(0, 25), st.just(0)),
        st.tuples(st.just("feedback"), st.integers(0, 25), st.sampled_from([1, -1])),
        st.tuples(st.just("restart"), st.just(0), st.just(0)),
    ),
    max_size=60,
)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(ACTS)
async def test_whatever_happens_in_whichever_order_and_wherever_it_starts_again_each_counts_once(
    tmp_path_factory: pytest.TempPathFactory, acts: list[tuple[str, int, int]]
) -> None:
    numbers: dict[tuple[str, int], int] = {}
    async with open_ratings_store(tmp_path_factory.mktemp("ratings")) as store:
        matches = Matches(store.log, store.documents)
        await play(matches, range(100, 107))
        for act, number, value in acts:
            debate = f"d{number}"
            counted = numbers[act[:1], number] = numbers.get((act[:1], number), 0) + 1
            if act == "restart":
                matches = Matches(store.log, store.documents)
            elif act == "match":
                with_domain = dataclasses.replace(match(number), domain="data" if number % 2 else "general")
                await matches.record("acme", with_domain)
            elif act == "feedback":
                await matches.record_feedback(
                    "acme", Feedback(debate, counted, value, "general", ("ada",), NOON)
                )
            elif debate in (await matches.read_table("acme")).debates():
                correction = numbers["correction", number] = numbers.get(("correction", number), 0) + 1
                made = match(number, float(value), 4.0) if act == "correct" else None
                await matches.correct("acme", Correction(debate, correction, made, "as it was", NOON))
        expected = await state(Matches(store.log))
        assert await state(matches) == expected
        assert await state(Matches(store.log, store.documents)) == expected
