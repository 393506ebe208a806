"""A debate that is forgotten leaves nothing in critique patterns, wherever its process stops and whatever runs beside it."""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import pytest

from parley.memory import patterns as patterns_module
from parley.memory.known_patterns import CONTRIBUTIONS, PATTERNS
from parley.memory.writing import write_together
from parley.storage.ports import Collection, Document
from parley.v1.memory_pb2 import RecordDebateRequest
from tests.support.stopping_stores import StoppedError, Writes
from tests.unit.memory.patterns.kept_patterns import (
    FIRST,
    ONE,
    SECOND,
    KeptPatterns,
    issue,
    record,
)

REMOVE_WRITES = [
    "update pattern_contribution",
    "update pattern",
    "update pattern_contribution",
    "update pattern",
    "delete pattern",
    "delete pattern_contribution",
]


@pytest.mark.parametrize("lost", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("write", range(len(REMOVE_WRITES)))
@pytest.mark.parametrize("forgotten", [FIRST, SECOND], ids=["the-first", "the-second"])
async def test_a_forgotten_debate_is_taken_out_wherever_the_process_stops(
    kept: KeptPatterns, forgotten: RecordDebateRequest, write: int, lost: bool
) -> None:
    await kept.patterns.apply("acme", FIRST, write_together)
    await kept.patterns.apply("acme", SECOND, write_together)
    writes = Writes(write, lost)
    with suppress(StoppedError):
        await kept.stopping(writes).remove("acme", forgotten)
    if forgotten == FIRST:
        assert writes.made == REMOVE_WRITES[: write + (not lost)]
    await kept.patterns.remove("acme", forgotten)
    left = {
        "deb-1": [("Rollback?", 1, 1, 0), ("A secret.", 1, 1, 1)],
        "deb-2": ONE,
    }
    assert sorted(await kept.counts()) == sorted(left[forgotten.debate.debate_id])
    assert forgotten.debate.debate_id not in str(await kept.stored())


async def test_nothing_is_left_when_every_debate_is_forgotten(kept: KeptPatterns) -> None:
    for each in (FIRST, SECOND):
        await kept.patterns.apply("acme", each, write_together)
    for each in (FIRST, SECOND):
        await kept.patterns.remove("acme", each)
    assert await kept.stored() == []


async def test_a_debate_that_is_forgotten_while_it_is_counted_again_leaves_nothing(
    kept: KeptPatterns, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = record("deb-1", issue("Rollback."), issue("Cost."))
    await kept.patterns.apply("acme", first, write_together)
    find = kept.documents.find

    async def find_once_it_is_forgotten(*args: Any, **kwargs: Any) -> Sequence[Document]:
        monkeypatch.undo()
        await kept.patterns.remove("acme", first)
        return await find(*args, **kwargs)

    monkeypatch.setattr(kept.documents, "find", find_once_it_is_forgotten)
    await kept.patterns.apply("acme", first, write_together)
    assert not await kept.stored()


async def test_a_debate_that_is_forgotten_while_it_starts_patterns_leaves_nothing(
    kept: KeptPatterns, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = record("deb-1", issue("Rollback."), issue("Cost."))
    insert = kept.documents.insert

    async def insert_once_it_is_forgotten(collection: Collection, *args: Any) -> None:
        if collection is PATTERNS:
            monkeypatch.undo()
            while not await kept.documents.get(CONTRIBUTIONS, "acme/deb-1"):  # noqa: ASYNC110
                await asyncio.sleep(0)
            await kept.patterns.remove("acme", first)
        await insert(collection, *args)

    monkeypatch.setattr(kept.documents, "insert", insert_once_it_is_forgotten)
    await kept.patterns.apply("acme", first, write_together)
    assert not await kept.stored()


async def test_a_debate_that_is_counted_again_while_it_is_forgotten_leaves_nothing(
    kept: KeptPatterns, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = record("deb-1", issue("Rollback."), issue("Cost."))
    await kept.patterns.apply("acme", first, write_together)
    delete = kept.documents.delete

    async def delete_once_it_is_counted(collection: Collection, *args: Any) -> bool:
        if collection is CONTRIBUTIONS:
            monkeypatch.undo()
            await kept.patterns.apply("acme", first, write_together)
        return await delete(collection, *args)

    monkeypatch.setattr(kept.documents, "delete", delete_once_it_is_counted)
    await kept.patterns.remove("acme", first)
    assert not await kept.stored()


async def test_a_debate_that_a_killed_process_counted_after_it_was_forgotten_is_taken_out_later(
    kept: KeptPatterns, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in (1, 2, 3):
        await kept.patterns.apply("acme", record(f"deb-{number}", issue("Cost."), at=number), write_together)
    killed, update = kept.stopping(Writes(3)), kept.documents.update
    monkeypatch.setattr(patterns_module, "MAX_WAITING", 1)

    async def update_once_it_is_forgotten(collection: Collection, *args: Any) -> bool:
        monkeypatch.undo()
        await kept.patterns.remove("acme", record("deb-2"))
        return await update(collection, *args)

    monkeypatch.setattr(kept.documents, "update", update_once_it_is_forgotten)
    with pytest.raises(StoppedError):
        await killed.apply("acme", record("deb-4", issue("Cost."), at=4), write_together)
    assert "deb-2" in str(await kept.documents.find(PATTERNS, {}))
    await kept.patterns.remove("acme", record("deb-2"))
    assert "deb-2" not in str(await kept.stored())
    assert await kept.counts() == [("Cost.", 3, 3, 3)]


async def test_a_debate_that_joins_a_pattern_while_its_last_other_one_is_forgotten_still_counts(
    kept: KeptPatterns, monkeypatch: pytest.MonkeyPatch
) -> None:
    await kept.patterns.apply("acme", record("deb-1", issue("Rollback.")), write_together)
    delete = kept.documents.delete

    async def delete_after_another_joined(*args: Any) -> bool:
        monkeypatch.undo()
        await kept.patterns.apply("acme", record("deb-2", issue("Rollback?")), write_together)
        return await delete(*args)

    monkeypatch.setattr(kept.documents, "delete", delete_after_another_joined)
    await kept.patterns.remove("acme", record("deb-1"))
    assert await kept.counts() == [("Rollback?", 1, 1, 1)]
