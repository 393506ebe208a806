"""Critique patterns are listed by how often they were raised or by likeness, and only what has changed is read for it."""

from collections.abc import Sequence
from functools import partial
from sqlite3 import Connection
from typing import Any

import pytest

from parley.memory import known_patterns
from parley.memory import patterns as patterns_module
from parley.memory.known_patterns import PATTERNS
from parley.memory.patterns import Patterns
from parley.memory.writing import write_together
from parley.storage.ports import Collection, Document, Fields, Index, Where
from parley.storage.sqlite import readers
from parley.storage.sqlite.database import SqliteDatabase
from tests.unit.memory.patterns.kept_patterns import REJECTED, TAKEN, KeptPatterns, issue, list_all, record


async def test_issues_of_one_meaning_are_a_pattern_with_its_severity_critics_and_date(
    kept: KeptPatterns,
) -> None:
    await kept.patterns.apply(
        "acme",
        record(
            "deb-1", issue("No rollback.", severity=8), issue("No way to rollback.", REJECTED, critic="bo")
        ),
        write_together,
    )
    await kept.patterns.apply(
        "acme", record("deb-2", issue("Rollback is missing.", severity=5), at=2000), write_together
    )
    (found,) = await kept.listed()
    assert (found.debates, found.raised, found.taken_up, found.severity) == (2, 3, 2, 6.5)
    assert list(found.examples) == ["Rollback is missing.", "No rollback."]
    assert [(each.agent_id, each.raised) for each in found.critics] == [("ada", 2), ("bo", 1)]
    assert (found.latest_at.seconds, found.domain) == (2000, "general")


async def test_the_same_words_in_another_domain_or_of_another_model_are_another_pattern(
    kept: KeptPatterns,
) -> None:
    await kept.patterns.apply("acme", record("deb-1", issue("No rollback."), domain="law"), write_together)
    await kept.patterns.apply("acme", record("deb-2", issue("No rollback."), domain="code"), write_together)
    kept.meanings.model = "other"
    await kept.patterns.apply("acme", record("deb-3", issue("No rollback."), domain="code"), write_together)
    assert sorted(each.domain for each in await kept.listed()) == ["code", "code", "law"]
    assert [each.domain for each in await kept.listed(domain="law")] == ["law"]


async def test_patterns_are_listed_by_how_often_they_were_raised_or_by_likeness_to_a_text(
    kept: KeptPatterns,
) -> None:
    issues = [issue("No rollback."), issue("No cost.", REJECTED), issue("No cost given.", REJECTED)]
    await kept.patterns.apply("acme", record("deb-1", *issues), write_together)
    assert [each.examples[0] for each in await kept.listed()] == ["No cost.", "No rollback."]
    found = await kept.listed(text="How to rollback?")
    assert [(each.examples[0], each.similarity_percent) for each in found] == [
        ("No rollback.", 100),
        ("No cost.", 0),
    ]


async def test_only_what_was_taken_up_every_second_time_is_successful(kept: KeptPatterns) -> None:
    issues = [issue("Cost.", TAKEN), issue("Cost?", REJECTED), issue("Secret.", REJECTED)]
    await kept.patterns.apply("acme", record("deb-1", *issues), write_together)
    assert [each.examples[0] for each in await kept.listed(only_successful=True)] == ["Cost."]


async def test_only_what_has_the_likeness_asked_for_is_related_to_a_text(kept: KeptPatterns) -> None:
    await kept.patterns.apply("acme", record("deb-1", issue("Cost."), issue("Secret.")), write_together)
    found, more = await kept.patterns.list_page(
        "acme", text="cost?", domain="", only_successful=False, after=None, size=1, floor=19
    )
    assert ([each.examples[0] for each in found], more) == (["Cost."], None)


async def test_pages_together_have_every_pattern_once(kept: KeptPatterns) -> None:
    await kept.patterns.apply(
        "acme", record("deb-1", issue("Cost."), issue("Rollback."), issue("Secret.")), write_together
    )
    seen, after = [], None
    for _ in range(3):
        found, after = await kept.patterns.list_page(
            "acme", text="", domain="", only_successful=False, after=after, size=1
        )
        seen += [each.examples[0] for each in found]
    assert (sorted(seen), after) == (["Cost.", "Rollback.", "Secret."], None)


async def test_only_what_another_process_changed_is_read_again(
    kept: KeptPatterns, monkeypatch: pytest.MonkeyPatch
) -> None:
    patterns, other = kept.patterns, kept.patterns
    assert await list_all(patterns) == []
    find, read = kept.documents.find, list[str]()

    async def note_whole(
        collection: Collection, where: Where, *, fields: Sequence[str] = (), **named: Any
    ) -> Sequence[Document]:
        found = await find(collection, where, fields=fields, **named)
        read.extend(each.key for each in found if not fields)
        return found

    await patterns.apply(
        "acme", record("deb-1", issue("Cost."), issue("Rollback."), issue("Secret.")), write_together
    )
    monkeypatch.setattr(kept.documents, "find", note_whole)
    await patterns.apply("acme", record("deb-2", issue("Secret?")), write_together)
    assert len(await list_all(patterns)) == 3
    assert read == [], "this process has written it"
    await other.apply("acme", record("deb-3", issue("Cost?"), at=2000), write_together)
    read.clear()
    assert ("Cost?", 2) in await list_all(patterns)
    assert read == ["acme/deb-3"]
    await other.remove("acme", record("deb-1"))
    read.clear()
    assert sorted(await list_all(patterns)) == [("Cost?", 1), ("Secret?", 1)]
    assert len(read) == 2


@pytest.mark.parametrize("alone", [True, False], ids=["alone", "replicas"])
async def test_patterns_of_too_many_tenants_are_read_again(
    kept: KeptPatterns, monkeypatch: pytest.MonkeyPatch, *, alone: bool
) -> None:
    monkeypatch.setattr(known_patterns, "_MAX_BYTES", 3 * known_patterns._BYTES_OF_PART)
    patterns = Patterns(kept.documents, kept.meanings, alone=alone)
    for tenant in ("acme", "bolt"):
        await patterns.apply(tenant, record("deb-1", issue("Cost."), issue("Rollback.")), write_together)
    for tenant in ("acme", "bolt", "acme"):
        assert sorted(await list_all(patterns, tenant)) == [("Cost.", 1), ("Rollback.", 1)]
    assert len(patterns._known._tenants) == 1


@pytest.mark.usefixtures("counted_at_once")
async def test_patterns_that_count_many_debates_leave_other_tenants_less_room(
    kept: KeptPatterns, monkeypatch: pytest.MonkeyPatch
) -> None:
    room = 3 * known_patterns._BYTES_OF_PART + 10 * known_patterns._BYTES_OF_DEBATE
    monkeypatch.setattr(known_patterns, "_MAX_BYTES", room)
    patterns = kept.patterns
    for number, others in ((1, ["acme"]), (11, [])):
        for debate in range(number):
            await patterns.apply("acme", record(f"deb-{debate}", issue("Cost.")), write_together)
        assert await list_all(patterns) == [("Cost.", number)]
        assert await list_all(patterns, "bolt") == []
        assert list(patterns._known._tenants) == [*others, "bolt"]


async def test_in_a_folder_of_before_too_no_pattern_is_read_to_know_that_none_has_changed(
    kept: KeptPatterns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(readers, "MOST", 1)
    await kept.documents.prepare(Collection("patterns", (Index(("tenant",)),)))
    patterns = kept.patterns
    await patterns.apply("acme", record("deb-1", issue("Cost.")), write_together)
    listed = partial(
        patterns.list_page, "acme", text="", domain="", only_successful=False, after=None, size=9
    )
    before = await listed()
    database: SqliteDatabase = kept.documents._database  # type: ignore[attr-defined]

    def refuse_to_read(connection: Connection) -> None:
        for function in ("json_extract", "json_type"):
            connection.create_function(function, -1, lambda *_: 1 / 0, deterministic=True)

    await database.read(refuse_to_read)
    assert await listed() == before


async def test_another_tenant_sees_none_and_counts_by_itself(kept: KeptPatterns) -> None:
    await kept.patterns.apply("acme", record("deb-1", issue("Cost.")), write_together)
    assert await kept.listed("bolt") == []
    await kept.patterns.apply("bolt", record("deb-1", issue("Cost.")), write_together)
    await kept.patterns.remove("bolt", record("deb-1"))
    assert await kept.counts() == [("Cost.", 1, 1, 1)]


@pytest.mark.usefixtures("counted_at_once")
async def test_a_list_lacks_no_debate_that_is_counted_while_it_is_read(
    kept: KeptPatterns, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(patterns_module, "MAX_WAITING", 9)
        for number in (1, 2):
            await kept.patterns.apply("acme", record(f"deb-{number}", issue("Cost.")), write_together)
    patterns = kept.patterns
    assert await list_all(patterns) == [("Cost.", 2)]
    find = kept.documents.find

    async def find_before_all_are_counted(*args: Any, **kwargs: Any) -> Sequence[Document]:
        monkeypatch.undo()
        found = await find(*args, **kwargs)
        await kept.patterns.apply("acme", record("deb-3", issue("Cost.")), write_together)
        return found

    monkeypatch.setattr(kept.documents, "find", find_before_all_are_counted)
    assert await list_all(patterns) in ([("Cost.", 2)], [("Cost.", 3)])


@pytest.mark.parametrize("damage", [{"vector": "AAAA", "examples": 7}, {"started": None}, {"version": None}])
async def test_a_pattern_that_cannot_be_read_hides_no_other_and_is_joined_by_none(
    kept: KeptPatterns, damage: Fields
) -> None:
    await kept.patterns.apply("acme", record("deb-1", issue("Cost.")), write_together)
    (pattern,) = await kept.documents.find(PATTERNS, {})
    await kept.documents.update(PATTERNS, pattern.key, damage)
    await kept.patterns.apply("acme", record("deb-2", issue("Cost?")), write_together)
    assert await kept.counts() == [("Cost?", 1, 1, 1)]
