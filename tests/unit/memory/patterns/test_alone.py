"""A process that is alone on its store knows the critique patterns that it has changed itself, and does not look for other changes."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from threading import Event, current_thread, main_thread
from typing import Any

import pytest

from parley.memory import known_patterns
from parley.memory import patterns as patterns_module
from parley.memory.known_patterns import PATTERNS, TenantPatterns
from parley.memory.patterns import Patterns
from parley.memory.writing import write_together
from parley.storage.ports import Collection, Document, Where
from tests.support.stopping_stores import StoppedError, StoppingDocuments, Writes
from tests.unit.memory.patterns.kept_patterns import FIRST, SECOND, KeptPatterns, issue, list_all, record

THIRD = record("deb-3", issue("Cost?"), issue("Secrets!"), at=3000)


@pytest.mark.parametrize("alone", [False, True], ids=["replicas", "alone"])
async def test_only_who_is_alone_looks_for_changes_but_once(
    kept: KeptPatterns, monkeypatch: pytest.MonkeyPatch, *, alone: bool
) -> None:
    find, looks = kept.documents.find, list[Collection]()

    async def note(collection: Collection, where: Where, **named: Any) -> Sequence[Document]:
        looks.append(collection)
        return await find(collection, where, **named)

    patterns = Patterns(kept.documents, kept.meanings, alone=alone)
    await patterns.apply("acme", FIRST, write_together)
    await list_all(patterns)
    monkeypatch.setattr(kept.documents, "find", note)
    await patterns.apply("acme", SECOND, write_together)
    await list_all(patterns)
    assert (not looks) == alone


@pytest.mark.parametrize("looks", [False, True], ids=["unseen", "looked-at-meanwhile"])
@pytest.mark.parametrize(("waiting", "room"), [(64, 500), (1, 500), (2, 500), (64, 2), (1, 2)])
async def test_it_lists_what_another_process_would_read(
    kept: KeptPatterns, monkeypatch: pytest.MonkeyPatch, waiting: int, room: int, *, looks: bool
) -> None:
    monkeypatch.setattr(patterns_module, "MAX_WAITING", waiting)
    monkeypatch.setattr(patterns_module, "MAX_PATTERNS", room)
    patterns = Patterns(kept.documents, kept.meanings, alone=True)

    async def look_and(write: Callable[..., Awaitable[object]], *args: Any) -> object:
        await patterns._known.load("acme")
        return await write(*args)

    for name in ("insert", "update", "delete") if looks else ():
        monkeypatch.setattr(kept.documents, name, partial(look_and, getattr(kept.documents, name)))
    add, remove = partial(patterns.apply, "acme", write=write_together), partial(patterns.remove, "acme")
    for change, *records in (
        (add, FIRST), (add, SECOND), (add, FIRST, SECOND, THIRD), (remove, SECOND), (add, SECOND), (remove, FIRST),
    ):  # fmt: skip
        await asyncio.gather(*map(change, records))
        assert await list_all(patterns) == await list_all(kept.patterns)


async def test_a_debate_that_is_recorded_while_it_looks_is_not_missed(
    kept: KeptPatterns, monkeypatch: pytest.MonkeyPatch
) -> None:
    patterns = Patterns(kept.documents, kept.meanings, alone=True)
    find = kept.documents.find

    async def record_meanwhile(collection: Collection, where: Where, **named: Any) -> Sequence[Document]:
        found = await find(collection, where, **named)
        if collection is PATTERNS:
            monkeypatch.setattr(kept.documents, "find", find)
            await patterns.apply("acme", FIRST, write_together)
        return found

    monkeypatch.setattr(kept.documents, "find", record_meanwhile)
    await list_all(patterns)
    assert sorted(await list_all(patterns)) == [("No cost.", 1), ("No rollback.", 1)]


async def test_a_debate_that_is_recorded_while_another_starts_a_pattern_is_counted(
    kept: KeptPatterns, monkeypatch: pytest.MonkeyPatch
) -> None:
    patterns = Patterns(kept.documents, kept.meanings, alone=True)
    await patterns.apply("acme", FIRST, write_together)
    renew, has_begun, may_end = TenantPatterns.renew, Event(), Event()

    def wait(*args: Any) -> TenantPatterns:
        if current_thread() is not main_thread():
            has_begun.set()
            may_end.wait(30)
        return renew(*args)

    monkeypatch.setattr(TenantPatterns, "renew", wait)
    monkeypatch.setattr(known_patterns, "_CHARACTERS_OF_PATTERN", 1_000_000)  # as of many patterns
    starting = asyncio.create_task(
        patterns.apply("acme", record("deb-2", issue("A secret.")), write_together)
    )
    assert await asyncio.to_thread(has_begun.wait, 30), "patterns are renewed in a thread"
    await patterns.apply("acme", record("deb-3", issue("No cost.")), write_together)
    may_end.set()
    await starting
    assert sorted(await list_all(patterns)) == [("A secret.", 1), ("No cost.", 2), ("No rollback.", 1)]


async def open_stopping(kept: KeptPatterns) -> tuple[StoppingDocuments, Patterns]:
    """Open patterns that count a debate, with documents whose writes a test can stop."""
    documents = StoppingDocuments(kept.documents, Writes())
    patterns = Patterns(documents, kept.meanings, alone=True)
    await patterns.apply("acme", FIRST, write_together)
    return documents, patterns


@pytest.mark.parametrize("lost", [True, False], ids=["before-a-write", "after-a-write"])
@pytest.mark.parametrize("waiting", [64, 2])
async def test_it_looks_again_after_a_change_that_was_stopped(
    kept: KeptPatterns, monkeypatch: pytest.MonkeyPatch, waiting: int, *, lost: bool
) -> None:
    monkeypatch.setattr(patterns_module, "MAX_WAITING", waiting)
    documents, patterns = await open_stopping(kept)
    for limit in range(4):
        for change in (partial(patterns.apply, write=write_together), patterns.remove):
            documents.writes = Writes(limit, lost)
            with suppress(StoppedError):
                await change("acme", SECOND)
            documents.writes = Writes()
            assert await list_all(patterns) == await list_all(kept.patterns)


@pytest.mark.parametrize("lost", [True, False], ids=["before-a-write", "after-a-write"])
@pytest.mark.parametrize("waiting", [64, 2])
async def test_it_looks_again_after_a_removal_that_was_stopped(
    kept: KeptPatterns, monkeypatch: pytest.MonkeyPatch, waiting: int, *, lost: bool
) -> None:
    monkeypatch.setattr(patterns_module, "MAX_WAITING", waiting)
    documents, patterns = await open_stopping(kept)
    for limit in range(8):
        await patterns.apply("acme", SECOND, write_together)
        documents.writes = Writes(limit, lost)
        with suppress(StoppedError):
            await patterns.remove("acme", SECOND)
        documents.writes = Writes()
        assert await list_all(patterns) == await list_all(kept.patterns)
        await patterns.remove("acme", SECOND)


async def test_a_debate_is_counted_once_also_if_somebody_looks_while_it_is(
    kept: KeptPatterns, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(patterns_module, "MAX_WAITING", 2)
    documents, update = StoppingDocuments(kept.documents, Writes()), kept.documents.update
    patterns = Patterns(documents, kept.meanings, alone=True)

    async def look_and_update(*args: Any) -> bool:
        await list_all(patterns)
        return await update(*args)

    monkeypatch.setattr(kept.documents, "update", look_and_update)
    for each in (FIRST, SECOND):
        await patterns.apply("acme", each, write_together)
    documents.writes = Writes()
    await patterns.apply("acme", record("deb-3", issue("No cost.")), write_together)
    assert documents.writes.made == ["insert pattern_contribution"]
