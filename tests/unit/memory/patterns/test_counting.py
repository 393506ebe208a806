"""A debate counts once in the critique patterns of its domain, wherever its process stops and whatever runs beside it."""

import asyncio
import re
from collections.abc import Sequence
from typing import Any

import pytest

from parley.memory import issue_kinds
from parley.memory import patterns as patterns_module
from parley.memory.embedding import hold_embeddings
from parley.memory.issue_kinds import TALLIES
from parley.memory.known_patterns import CONTRIBUTIONS, PATTERNS
from parley.memory.patterns import Patterns
from parley.memory.writing import write_together
from parley.runtime.errors import ParleyError
from parley.storage.ports import Collection, Document, Fields, StoreUnavailableError, Where
from parley.v1.memory_pb2 import RecordDebateRequest
from tests.support.commits import count_commits
from tests.support.stopping_stores import StoppedError, Writes
from tests.support.word_meanings import WordMeanings
from tests.unit.memory.patterns.kept_patterns import (
    BOTH,
    FIRST,
    ONE,
    REJECTED,
    SECOND,
    KeptPatterns,
    issue,
    list_all,
    record,
)


@pytest.mark.parametrize("started", [False, True], ids=["new patterns", "known ones"])
async def test_a_debate_and_all_patterns_that_it_starts_are_written_in_one_commit(
    kept: KeptPatterns, started: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    words = [f"word{chr(97 + number)}" for number in range(12)]
    patterns = Patterns(kept.documents, WordMeanings(words), alone=False)
    issues = [issue(each) for each in words]
    if started:
        await patterns.apply("acme", record("deb-1", *issues), write_together)
    commits = count_commits(monkeypatch)
    await patterns.apply("acme", record("deb-2", *issues), write_together)
    assert commits == ([1] if started else [13])


async def test_a_debate_counts_in_lists_at_once_and_in_its_pattern_together_with_others(
    kept: KeptPatterns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patterns_module, "MAX_WAITING", 4)
    writes = Writes()
    patterns = kept.stopping(writes)
    for number in range(1, 8):
        await patterns.apply("acme", record(f"deb-{number}", issue("Cost."), at=number), write_together)
        assert await list_all(patterns) == await list_all(kept.patterns) == [("Cost.", number)]
    assert writes.made.count("insert pattern") == 1
    assert writes.made.count("update pattern") == 1
    await kept.patterns.remove("acme", record("deb-6"))
    assert await list_all(patterns) == await list_all(kept.patterns) == [("Cost.", 6)]
    assert "deb-6" not in str(await kept.stored())


async def test_of_a_debate_whose_record_is_new_nothing_is_looked_for_and_it_counts_once_all_the_same(
    kept: KeptPatterns, monkeypatch: pytest.MonkeyPatch
) -> None:
    patterns, first = kept.patterns, record("deb-1", issue("Cost."))
    await patterns.apply("acme", record("deb-0", issue("Cost.")), write_together)
    read = list[str]()
    get = kept.documents.get

    async def note(collection: Collection, key: str) -> Document | None:
        read.append(key)
        return await get(collection, key)

    monkeypatch.setattr(kept.documents, "get", note)
    with hold_embeddings(["Cost."], await kept.meanings.embed("Cost.")):
        await patterns.apply("acme", first, write_together)
        assert read == []
        await patterns.apply("acme", first, write_together)
    assert await list_all(patterns) == [("Cost.", 2)]


async def test_a_debate_that_starts_patterns_looks_once_for_what_has_changed(
    kept: KeptPatterns, monkeypatch: pytest.MonkeyPatch
) -> None:
    find, looks = kept.documents.find, list[Collection]()

    async def note(collection: Collection, where: Where, **named: Any) -> Sequence[Document]:
        looks.append(collection)
        return await find(collection, where, **named)

    patterns, first = kept.patterns, record("deb-1", issue("Cost."))
    with hold_embeddings(["Cost."], await kept.meanings.embed("Cost.")), monkeypatch.context() as noting:
        noting.setattr(kept.documents, "find", note)
        await patterns.apply("acme", first, write_together)
    assert looks == [CONTRIBUTIONS, PATTERNS]
    assert await list_all(patterns) == [("Cost.", 1)]


async def test_a_pattern_of_an_earlier_version_counts_on(kept: KeptPatterns) -> None:
    await kept.patterns.apply("acme", record("deb-1", issue("Cost.")), write_together)
    (pattern,) = await kept.documents.find(PATTERNS, {})
    await kept.documents.delete(PATTERNS, pattern.key)
    earlier = {name: value for name, value in pattern.fields.items() if name != "key"}
    await kept.documents.insert(PATTERNS, pattern.key, earlier)
    await kept.patterns.apply("acme", record("deb-2", issue("Cost?"), at=2000), write_together)
    assert await kept.counts() == [("Cost?", 2, 2, 2)]


@pytest.mark.usefixtures("counted_at_once")
async def test_to_count_one_more_debate_does_not_write_all_earlier_ones_again(
    kept: KeptPatterns, monkeypatch: pytest.MonkeyPatch
) -> None:
    patterns, update = kept.patterns, kept.documents.update
    written = set[str]()

    async def note(collection: Collection, key: str, changes: Fields, where: Where | None = None) -> bool:
        written.update(re.findall(r"deb-\d+", str({each: changes.get(each) for each in TALLIES})))
        return await update(collection, key, changes, where)

    for number in range(64):
        await patterns.apply("acme", record(f"deb-{number}", issue("Cost.")), write_together)
    monkeypatch.setattr(kept.documents, "update", note)
    await patterns.apply("acme", record("deb-64", issue("Cost.")), write_together)
    assert "deb-64" in written
    assert len(written) <= 12
    assert [each.debates for each in await kept.listed()] == [65]


@pytest.mark.usefixtures("counted_at_once")
async def test_a_pattern_of_few_debates_is_one_that_a_version_before_can_read_and_forget(
    kept: KeptPatterns,
) -> None:
    patterns = kept.patterns
    for number in range(20):
        await patterns.apply("acme", record(f"deb-{number}", issue("Cost.")), write_together)
    (pattern,) = await kept.documents.find(PATTERNS, {})
    first: Any = pattern.fields[TALLIES[0]]
    assert len(first) == 20
    assert not pattern.fields.keys() & set(TALLIES[1:])


async def test_a_debate_that_two_versions_counted_in_two_fields_counts_once_and_leaves_nothing(
    kept: KeptPatterns,
) -> None:
    for number in (1, 2):
        await kept.patterns.apply("acme", record(f"deb-{number}", issue("Cost.")), write_together)
    (pattern,) = await kept.documents.find(PATTERNS, {})
    twice: Fields = {TALLIES[3]: pattern.fields[TALLIES[0]], "version": "two"}
    await kept.documents.update(PATTERNS, pattern.key, twice)
    assert [each.debates for each in await kept.listed()] == [2]
    await kept.patterns.remove("acme", record("deb-2"))
    assert [each.debates for each in await kept.listed()] == [1]
    assert "deb-2" not in str(await kept.stored())


@pytest.mark.usefixtures("counted_at_once")
async def test_a_pattern_to_which_a_version_before_added_its_most_debates_counts_more(
    kept: KeptPatterns,
) -> None:
    await kept.patterns.apply("acme", record("deb-1", issue("Cost."), at=1), write_together)
    (pattern,) = await kept.documents.find(PATTERNS, {})
    tally: Any = pattern.fields[TALLIES[0]]
    full: Fields = {
        name: {f"{name}-{number}": {**tally["deb-1"], "at": 2} for number in range(issue_kinds.MAX_DEBATES)}
        for name in TALLIES
    }
    await kept.documents.update(PATTERNS, pattern.key, {**full, "version": "full"})
    await kept.patterns.apply("acme", record("deb-2", issue("Cost."), at=3), write_together)
    assert [each.debates for each in await kept.listed()] == [issue_kinds.MAX_DEBATES]
    assert "deb-2" in str(await kept.documents.find(PATTERNS, {}))


async def test_debates_that_a_process_records_at_once_start_a_kind_once(kept: KeptPatterns) -> None:
    patterns = kept.patterns
    records = [record(f"deb-{number}", issue("Rollback.")) for number in range(5)]
    await asyncio.gather(*(patterns.apply("acme", each, write_together) for each in records))
    assert len(await kept.documents.find(PATTERNS, {})) == 1


@pytest.mark.parametrize("fails", [True, False])
async def test_a_kind_whose_pattern_is_still_being_written_is_joined_even_if_that_fails(
    kept: KeptPatterns, monkeypatch: pytest.MonkeyPatch, fails: bool
) -> None:
    patterns, insert = kept.patterns, kept.documents.insert
    asked, goes_on = asyncio.Event(), asyncio.Event()

    async def insert_later(collection: Collection, *args: Any) -> None:
        if collection is PATTERNS:  # the last one that is written
            asked.set()
        await goes_on.wait()
        if fails:
            raise StoreUnavailableError("away")
        await insert(collection, *args)

    monkeypatch.setattr(kept.documents, "insert", insert_later)
    first = asyncio.create_task(patterns.apply("acme", record("deb-1", issue("Rollback.")), write_together))
    await asked.wait()
    monkeypatch.setattr(kept.documents, "insert", insert)
    await patterns.apply("acme", record("deb-2", issue("Rollback?"), at=2000), write_together)
    goes_on.set()
    if fails:
        with pytest.raises(StoreUnavailableError):
            await first
        assert await list_all(patterns) == await list_all(kept.patterns) == [("Rollback?", 1)]
        await patterns.apply("acme", record("deb-1", issue("Rollback.")), write_together)
    else:
        await first
    assert await list_all(patterns) == await list_all(kept.patterns) == [("Rollback?", 2)]
    assert len(await kept.documents.find(PATTERNS, {})) == 1


APPLY_WRITES = [
    "insert pattern_contribution",
    "insert pattern",
    "update pattern",
    "update pattern_contribution",
]


@pytest.mark.usefixtures("counted_at_once")
@pytest.mark.parametrize("lost", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("write", range(len(APPLY_WRITES)))
async def test_a_debate_counts_once_wherever_its_process_stops(
    kept: KeptPatterns, write: int, lost: bool
) -> None:
    await kept.patterns.apply("acme", FIRST, write_together)
    writes = Writes(write, lost)
    with pytest.raises(StoppedError):
        await kept.stopping(writes).apply("acme", SECOND, write_together)
    assert writes.made == APPLY_WRITES[: write + (not lost)]
    is_written = write > 0 or not lost
    assert sorted(await kept.counts()) == sorted(BOTH if is_written else ONE)
    await kept.patterns.apply("acme", SECOND, write_together)
    assert sorted(await kept.counts()) == sorted(BOTH)
    await kept.patterns.apply("acme", FIRST, write_together)
    assert sorted(await kept.counts()) == sorted(BOTH)


@pytest.mark.parametrize("left", [PATTERNS, CONTRIBUTIONS], ids=["patterns", "contribution"])
@pytest.mark.parametrize("again", ["applied", "removed"])
async def test_whatever_a_killed_process_left_of_writes_that_it_began_together_a_debate_counts_once(
    kept: KeptPatterns, monkeypatch: pytest.MonkeyPatch, left: Collection, again: str
) -> None:
    def embed_all_words(text: str) -> list[float]:
        found = [float(word in text.lower()) for word in ("rollback", "cost", "secret")]
        return [each / sum(found) ** 0.5 for each in found]

    monkeypatch.setattr(kept.meanings, "_vector", embed_all_words)
    await kept.patterns.apply("acme", record("deb-1", issue("Rollback.")), write_together)
    # The first one joins a pattern that is there, and is more like the one that the second one starts.
    second = record("deb-2", issue("Rollback, cost and secret."), issue("Cost and secret."), at=2000)
    insert = kept.documents.insert

    async def insert_what_is_left(collection: Collection, *args: Any) -> None:
        if collection is not left:
            raise StoppedError
        await insert(collection, *args)

    with monkeypatch.context() as stopping:
        stopping.setattr(kept.documents, "insert", insert_what_is_left)
        with pytest.raises(StoppedError):
            await kept.patterns.apply("acme", second, write_together)
    if again == "applied":
        await kept.patterns.apply("acme", second, write_together)
        counts = [("Rollback, cost and secret.", 2, 2, 2), ("Cost and secret.", 1, 1, 1)]
        assert await kept.counts() == counts
    await kept.patterns.remove("acme", second)
    assert await kept.counts() == [("Rollback.", 1, 1, 1)]
    assert "deb-2" not in str(await kept.stored())


async def test_a_pattern_that_another_process_removes_is_made_again_of_what_waits_to_be_counted(
    kept: KeptPatterns,
) -> None:
    patterns = kept.patterns
    await patterns.apply("acme", FIRST, write_together)
    known = await list_all(patterns)
    for each in await kept.documents.find(PATTERNS, {}):
        await kept.documents.delete(PATTERNS, each.key)
    assert await list_all(patterns) == known


async def test_a_debate_that_is_recorded_anew_with_other_issues_counts_with_these(kept: KeptPatterns) -> None:
    await kept.patterns.apply("acme", FIRST, write_together)
    await kept.patterns.apply("acme", record("deb-1", issue("A secret.")), write_together)
    assert await kept.counts() == [("A secret.", 1, 1, 1)]


async def test_debates_that_are_applied_at_once_all_count(kept: KeptPatterns) -> None:
    await kept.patterns.apply("acme", FIRST, write_together)
    others = [record(f"deb-{number}", issue("Rollback.")) for number in range(2, 12)]
    await asyncio.gather(*(kept.patterns.apply("acme", each, write_together) for each in [*others, *others]))
    counts = await kept.counts()
    assert [each[1:] for each in counts] == [(11, 11, 11), (1, 1, 0)]


async def apply_at_once(
    kept: KeptPatterns, monkeypatch: pytest.MonkeyPatch, *records: RecordDebateRequest
) -> None:
    """Apply records of which none finds a pattern of another."""
    find, barrier = kept.documents.find, asyncio.Barrier(len(records))

    async def find_together(*args: Any, **kwargs: Any) -> Any:
        found = await find(*args, **kwargs)
        await barrier.wait()
        return found

    with monkeypatch.context() as patched:
        patched.setattr(kept.documents, "find", find_together)
        await asyncio.gather(*(kept.patterns.apply("acme", each, write_together) for each in records))


async def test_debates_that_start_the_same_kind_at_once_are_listed_as_one_pattern(
    kept: KeptPatterns, monkeypatch: pytest.MonkeyPatch
) -> None:
    at_once = [
        record("deb-1", issue("No rollback.", severity=8), issue("Cost."), at=1000),
        record("deb-2", issue("Rollback?", REJECTED, severity=2, critic="bo"), at=2000),
    ]
    await apply_at_once(kept, monkeypatch, *at_once)
    assert len(await kept.documents.find(PATTERNS, {})) == 3, "both found none to join"
    assert await kept.counts() == [("Rollback?", 2, 2, 1), ("Cost.", 1, 1, 1)]
    found = (await kept.listed(text="How to rollback?"))[0]
    assert (list(found.examples), found.severity, found.similarity_percent) == (
        ["Rollback?", "No rollback."],
        5,
        100,
    )
    assert [(each.agent_id, each.raised) for each in found.critics] == [("ada", 1), ("bo", 1)]
    await kept.patterns.apply("acme", record("deb-3", issue("Rollback."), at=3000), write_together)
    assert (await kept.counts())[0] == ("Rollback.", 3, 3, 2)
    await kept.patterns.remove("acme", at_once[0])
    assert await kept.counts() == [("Rollback.", 2, 2, 1)]


async def test_a_debate_that_two_patterns_of_one_kind_count_is_one_of_theirs(
    kept: KeptPatterns, monkeypatch: pytest.MonkeyPatch
) -> None:
    records = [record(f"deb-{number}", issue("Rollback.")) for number in (1, 2)]
    await apply_at_once(kept, monkeypatch, *records)
    for each in await kept.documents.find(CONTRIBUTIONS, {}):
        await kept.documents.update(CONTRIBUTIONS, each.key, {"waiting": None})
    one, other = await kept.documents.find(PATTERNS, {})
    await kept.documents.update(PATTERNS, other.key, {each: one.fields.get(each, {}) for each in TALLIES})
    assert await kept.counts() == [("Rollback.", 1, 2, 2)]


@pytest.mark.usefixtures("counted_at_once")
async def test_a_pattern_that_was_deleted_and_created_anew_since_it_was_read_is_read_again(
    kept: KeptPatterns, monkeypatch: pytest.MonkeyPatch
) -> None:
    first, second, third = (record(f"deb-{number}", issue("Rollback.")) for number in (1, 2, 3))
    await kept.patterns.apply("acme", first, write_together)
    with pytest.raises(StoppedError):
        await kept.stopping(Writes(0, lost=False)).apply("acme", third, write_together)
    update = kept.documents.update

    async def update_what_is_created_anew(*args: Any) -> bool:
        monkeypatch.undo()
        await kept.patterns.remove("acme", first)
        await kept.patterns.apply("acme", third, write_together)
        return await update(*args)

    monkeypatch.setattr(kept.documents, "update", update_what_is_created_anew)
    await kept.patterns.apply("acme", second, write_together)
    assert await kept.counts() == [("Rollback.", 2, 2, 2)]
    assert "deb-1" not in str(await kept.stored())


async def test_of_too_many_patterns_the_one_that_fewest_debates_raised_makes_room(
    kept: KeptPatterns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patterns_module, "MAX_PATTERNS", 2)
    await kept.patterns.apply("acme", record("deb-1", issue("Cost.")), write_together)
    await kept.patterns.apply("acme", record("deb-2", issue("Cost."), issue("Rollback.")), write_together)
    await kept.patterns.apply("acme", record("deb-3", issue("Secret."), at=2000), write_together)
    assert sorted(each.examples[0] for each in await kept.listed()) == ["Cost.", "Secret."]
    await kept.patterns.remove("acme", record("deb-2"))
    assert sorted(each.debates for each in await kept.listed()) == [1, 1]


@pytest.mark.usefixtures("counted_at_once")
async def test_texts_issues_and_debates_are_bounded(
    kept: KeptPatterns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(issue_kinds, "MAX_DEBATES", 2)
    for number in range(4):
        issues = [issue("Cost. " + "a" * 2000, critic="c" * 300)] * 100
        await kept.patterns.apply("acme", record(f"deb-{number}", *issues, at=number), write_together)
    (found,) = await kept.listed()
    assert (found.debates, found.raised) == (2, 128)
    assert [len(each) for each in found.examples] == [500, 500, 500]
    assert [len(each.agent_id) for each in found.critics] == [128]
    for number in range(4):
        await kept.patterns.remove("acme", record(f"deb-{number}"))
    assert await kept.stored() == []


async def test_a_debate_without_issues_needs_no_meaning(kept: KeptPatterns) -> None:
    kept.meanings.away = True
    await kept.patterns.apply("acme", record("deb-1"), write_together)
    with pytest.raises(ParleyError, match="away"):
        await kept.patterns.apply("acme", record("deb-2", issue("Cost.")), write_together)
    assert await kept.stored() == []


async def test_a_pattern_that_cannot_be_read_keeps_no_other_one_from_being_counted(
    kept: KeptPatterns, monkeypatch: pytest.MonkeyPatch
) -> None:
    await kept.patterns.apply("acme", record("deb-1", issue("Cost.")), write_together)
    await kept.patterns.apply("acme", record("deb-2", issue("Cost?"), issue("Secret.")), write_together)
    damaged = await kept.documents.find(PATTERNS, {"tenant": "acme"})
    cost = next(each for each in damaged if "Cost." in str(each.fields["examples"]))
    await kept.documents.update(PATTERNS, cost.key, {"examples": 7, "version": "damaged"})
    monkeypatch.setattr(patterns_module, "MAX_WAITING", 1)
    await kept.patterns.apply("acme", record("deb-3", issue("Secret?"), at=2000), write_together)
    assert await kept.counts() == [("Secret?", 2, 2, 2)]
    assert not await kept.documents.find(CONTRIBUTIONS, {"waiting": "acme"})
