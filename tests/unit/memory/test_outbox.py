"""Each effect of a record is there exactly once, wherever the process that records or forgets it stops."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from parley.memory import index as index_module
from parley.memory import outbox as outbox_module
from parley.memory.debate import (
    DEBATES,
    to_fields,
)
from parley.memory.embedding import Embedding
from parley.memory.outbox import Outbox
from parley.memory.stored_vectors import to_vector
from parley.memory.tombstones import TOMBSTONES
from parley.runtime.backoff import Backoff
from parley.runtime.clock import SystemClock
from parley.runtime.tasks import background_task
from parley.storage.ports import (
    Collection,
    Document,
    DuplicateError,
    StoreUnavailableError,
)
from tests.support.commits import count_commits
from tests.support.stopping_stores import StoppedError, Writes
from tests.unit.memory.outboxes import KEY, RECORD_WRITES, Ledger, Process, open_process
from tests.unit.memory.test_index import record


async def finish_in_background(process: Process) -> None:
    """Run the background job alone until nothing is outstanding."""
    async with asyncio.timeout(30), background_task("finishing", process.outbox.run()):
        while await process.unfinished():  # noqa: ASYNC110
            await asyncio.sleep(0.005)


@pytest.fixture(autouse=True)
def looks_often(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(outbox_module, "_SECONDS", 0.01)
    monkeypatch.setattr(outbox_module, "_RETRY_BACKOFF", Backoff(first=0.01, maximum=0.01))


@pytest.fixture(autouse=True)
def waits_for_no_index(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody fills it here: what there is is searched at once."""
    monkeypatch.setattr(index_module, "_MAX_WAIT_SECONDS", 0.0)


FORGET_WRITES = [
    "insert tombstone",
    "delete approval",
    "update",
    "delete trace",
    "delete tier",
    "delete vector",
    "delete",
]


async def test_a_debate_that_is_recorded_is_not_read_back(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_process(tmp_path) as process:
        get, read = process.documents.get, list[Collection]()

        async def note(collection: Collection, key: str) -> Document | None:
            read.append(collection)
            return await get(collection, key)

        monkeypatch.setattr(process.documents, "get", note)
        await process.memories.record("acme", record("deb-1"))
        assert DEBATES not in read
        await process.is_whole(["deb-1"])


@pytest.mark.parametrize("again", [True, False], ids=["the-same-call-again", "the-job-alone"])
@pytest.mark.parametrize("lost", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("write", range(len(RECORD_WRITES)), ids=RECORD_WRITES)
async def test_a_record_is_whole_wherever_its_process_stops(
    tmp_path: Path, write: int, lost: bool, again: bool
) -> None:
    async with open_process(tmp_path) as process:
        writes = Writes(write, lost)
        with pytest.raises(StoppedError):
            await process.stopping(writes).record_to_the_end(record("deb-1"))
        made = len(writes.made)
        assert made == write + (not lost)
        # The effects in between are applied together, so their writes come in any order.
        assert (writes.made[:1], writes.made[4:]) == (RECORD_WRITES[:made][:1], RECORD_WRITES[4:made])
        assert set(writes.made[1:4]) <= set(RECORD_WRITES[1:4])
        await finish_in_background(process)
        if again:
            assert await process.memories.record("acme", record("deb-1")) == (write + (not lost) > 0)
        recorded = again or write + (not lost) > 0
        await process.is_whole(["deb-1"] if recorded else [])
        assert await process.recalled() == (["deb-1"] if recorded else [])


@pytest.mark.parametrize("write", range(len(RECORD_WRITES)), ids=RECORD_WRITES)
async def test_the_same_call_again_makes_a_record_whole_without_the_job(tmp_path: Path, write: int) -> None:
    async with open_process(tmp_path) as process:
        with pytest.raises(StoppedError):
            await process.stopping(Writes(write)).record_to_the_end(record("deb-1"))
        await process.memories.record("acme", record("deb-1"))
        await process.is_whole(["deb-1"])


async def test_who_records_debates_does_not_wait_for_the_end_of_their_marks_which_is_one_commit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_process(tmp_path) as process:
        for debate in ("deb-1", "deb-2", "deb-3"):
            await process.memories.record("acme", record(debate))
        assert await process.unfinished() == 3
        assert sorted(await process.recalled()) == ["deb-1", "deb-2", "deb-3"], "nor does a recall"
        process.ledger.asked.clear()
        commits = count_commits(monkeypatch)
        await finish_in_background(process)
        assert commits == [3]
        assert not process.ledger.asked.is_set(), "no effect is applied once more"


async def test_the_same_call_again_before_the_mark_ends_applies_no_effect_again(tmp_path: Path) -> None:
    async with open_process(tmp_path) as process:
        await process.memories.record("acme", record("deb-1"))
        process.ledger.asked.clear()
        assert await process.memories.record("acme", record("deb-1"))
        assert not process.ledger.asked.is_set()


async def test_a_process_that_ends_while_the_store_is_away_leaves_its_marks_to_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_process(tmp_path) as process:
        await process.memories.record("acme", record("deb-1"))

        async def fail(*_: object) -> None:
            raise StoreUnavailableError("away")

        with monkeypatch.context() as away:
            away.setattr(process.documents, "update", fail)
            await process.outbox.close()
        other = Process(process.documents, process.vectors, process.ledger)
        await finish_in_background(other)
        await other.is_whole(["deb-1"])


@pytest.mark.parametrize("again", [True, False], ids=["the-same-call-again", "the-job-alone"])
@pytest.mark.parametrize("lost", [True, False], ids=["before", "after"])
@pytest.mark.parametrize("write", range(len(FORGET_WRITES)), ids=FORGET_WRITES)
async def test_a_debate_is_forgotten_wherever_its_process_stops(
    tmp_path: Path, write: int, lost: bool, again: bool
) -> None:
    async with open_process(tmp_path) as process:
        await process.memories.record("acme", record("deb-1"))
        writes = Writes(write, lost)
        with pytest.raises(StoppedError):
            await process.stopping(writes).memories.forget("acme", "deb-1")
        assert writes.made == FORGET_WRITES[: write + (not lost)]
        marked = write + (not lost) > 2
        assert await process.recalled() == ([] if marked else ["deb-1"])
        if again:
            await process.memories.forget("acme", "deb-1")
        else:
            await finish_in_background(process)
        await process.is_whole([] if again or marked else ["deb-1"])


async def test_who_forgets_a_debate_keeps_nothing_of_it(tmp_path: Path) -> None:
    async with open_process(tmp_path) as process:
        memories = process.memories
        await memories.record("acme", record("deb-1"))
        await memories.forget("acme", "deb-1")
        await process.documents.delete(TOMBSTONES, KEY)
        other = record("deb-1")
        other.debate.conclusion = "Another one."
        await process.memories.record("acme", other)
        found = memories.recall("acme", "later", domain="", excluded=(), limit=1, floor=0.1)
        assert [each.conclusion async for each in found] == ["Another one."]


@pytest.mark.parametrize("lost", ["the-answer-of-a-write", "the-vectors"])
async def test_who_is_alone_does_not_recall_what_it_has_begun_to_forget(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: str
) -> None:
    async with open_process(tmp_path) as process:
        memories = replace(process, alone=True).memories

        async def recall() -> list[str]:
            found = memories.recall("acme", "later", domain="", excluded=(), limit=1, floor=0.1)
            return [each.debate_id async for each in found]

        async def recall_and_update(*args: Any) -> bool:
            await recall()
            written = await update(*args)
            if lost == "the-answer-of-a-write":
                await fail()
            return written

        async def fail(*_: Any) -> None:
            raise StoreUnavailableError("not now")

        await memories.record("acme", record("deb-1"))
        update = process.documents.update
        monkeypatch.setattr(process.documents, "update", recall_and_update)
        monkeypatch.setattr(process.vectors, "delete", fail)
        assert await recall() == ["deb-1"]
        with pytest.raises(StoreUnavailableError):
            await memories.forget("acme", "deb-1")
        assert await recall() == []


async def test_who_is_alone_does_not_recall_what_is_recorded_after_it_was_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_process(tmp_path) as process:
        memories, recalled = replace(process, alone=True).memories, list[str]()
        insert, upsert = process.documents.insert, process.vectors.upsert

        async def recall() -> list[str]:
            found = memories.recall("acme", "later", domain="", excluded=(), limit=1, floor=0.1)
            return [each.debate_id async for each in found]

        async def forget_and_insert(collection: Collection, *args: Any) -> None:
            if collection is DEBATES:
                await memories.forget("acme", "deb-1")
            await insert(collection, *args)

        async def upsert_and_recall(*args: Any) -> None:
            await upsert(*args)
            recalled.extend(await recall())

        async def fail(*_: Any) -> None:
            raise StoreUnavailableError("not now")

        monkeypatch.setattr(process.documents, "insert", forget_and_insert)
        monkeypatch.setattr(process.vectors, "upsert", upsert_and_recall)
        monkeypatch.setattr(process.vectors, "delete", fail)
        with pytest.raises(StoreUnavailableError):
            await memories.record("acme", record("deb-1"))
        assert recalled == ["deb-1"], "nobody sees yet that it was forgotten"
        assert await recall() == []


async def test_an_effect_that_fails_keeps_no_other_record_waiting(tmp_path: Path) -> None:
    async with open_process(tmp_path) as process:
        process.ledger.refused.add("deb-1")
        for debate in ("deb-1", "deb-2"):
            with pytest.raises(StoppedError):
                await process.stopping(Writes(1)).memories.record("acme", record(debate))
        async with asyncio.timeout(30), background_task("finishing", process.outbox.run()):
            while await process.unfinished() > 1:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
            assert list(process.ledger.kept) == [("acme", "deb-2")]
            process.ledger.refused.clear()
            while await process.unfinished():  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        await process.is_whole(["deb-1", "deb-2"])


async def test_two_replicas_that_finish_the_same_records_at_once_apply_each_effect_once(
    tmp_path: Path,
) -> None:
    async with open_process(tmp_path) as process:
        debates = [f"deb-{number}" for number in range(8)]
        for debate in debates:
            with pytest.raises(StoppedError):
                await process.stopping(Writes(1)).memories.record("acme", record(debate))
        await asyncio.gather(
            finish_in_background(process),
            finish_in_background(Process(process.documents, process.vectors, process.ledger)),
        )
        await process.is_whole(debates)


async def test_a_replica_that_loses_the_race_for_the_document_finishes_the_record_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_process(tmp_path) as process:
        insert = process.documents.insert

        async def insert_after_another(*args: object) -> None:
            monkeypatch.undo()
            await insert(*args)  # type: ignore[arg-type]
            raise DuplicateError("another replica was faster")

        monkeypatch.setattr(process.documents, "insert", insert_after_another)
        assert await process.memories.record("acme", record("deb-1"))
        await process.is_whole(["deb-1"])


async def test_a_debate_that_is_forgotten_while_another_replica_applies_its_effects_leaves_none(
    tmp_path: Path,
) -> None:
    async with open_process(tmp_path) as process:
        slow = Process(process.documents, process.vectors, Ledger(process.ledger.kept, waits=asyncio.Event()))
        recording = asyncio.create_task(slow.memories.record("acme", record("deb-1")))
        await slow.ledger.asked.wait()
        assert await process.memories.forget("acme", "deb-1")
        assert slow.ledger.waits
        slow.ledger.waits.set()
        await recording
        await process.is_whole([])


@pytest.mark.parametrize("cancelled", [True, False], ids=["is-cancelled", "fails"])
async def test_a_debate_that_is_forgotten_while_its_effects_are_applied_leaves_none_if_one_of_them_is_not_done(
    tmp_path: Path, cancelled: bool
) -> None:
    async with open_process(tmp_path) as process:
        with pytest.raises(StoppedError):
            await process.stopping(Writes(1)).memories.record("acme", record("deb-1"))
        (document,) = await process.documents.find(DEBATES, {})
        late_waits, other_waits = asyncio.Event(), asyncio.Event()
        late, other = Ledger(waits=late_waits), Ledger(waits=other_waits, refused={"deb-1"})
        applying = asyncio.create_task(
            Outbox(process.documents, [late, other], SystemClock()).finish(document)
        )
        await other.asked.wait()
        assert await process.memories.forget("acme", "deb-1")
        late_waits.set()
        while not late.kept:  # noqa: ASYNC110
            await asyncio.sleep(0)
        if cancelled:
            applying.cancel()
        other_waits.set()
        with pytest.raises(asyncio.CancelledError if cancelled else StoreUnavailableError):
            await applying
        assert not late.kept


async def test_who_is_stopped_while_the_store_is_away_stops(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_process(tmp_path) as process:
        with pytest.raises(StoppedError):
            await process.stopping(Writes(1)).memories.record("acme", record("deb-1"))
        slow = Ledger(waits=asyncio.Event())
        finishing = asyncio.create_task(Outbox(process.documents, [slow], SystemClock()).run())
        await slow.asked.wait()

        async def fail(*_: object) -> None:
            raise StoreUnavailableError("away")

        monkeypatch.setattr(process.documents, "get", fail)
        finishing.cancel()
        done, _ = await asyncio.wait({finishing}, timeout=30)
        finishing.cancel()
        assert done
        assert finishing.cancelled()


async def test_of_a_debate_that_is_forgotten_since_it_was_found_outstanding_no_effect_is_applied(
    tmp_path: Path,
) -> None:
    async with open_process(tmp_path) as process:
        with pytest.raises(StoppedError):
            await process.stopping(Writes(1)).memories.record("acme", record("deb-1"))
        (document,) = await process.documents.find(DEBATES, {})
        assert await process.memories.forget("acme", "deb-1")
        writes = Writes()
        await process.stopping(writes).outbox.finish(document)
        assert [each for each in writes.made if not each.startswith("delete")] == ["update"]
        await process.is_whole([])


async def test_a_debate_that_is_recorded_while_another_replica_forgets_it_stays_forgotten(
    tmp_path: Path,
) -> None:
    async with open_process(tmp_path) as process:
        await process.memories.record("acme", record("deb-1"))
        slow = Process(process.documents, process.vectors, Ledger(process.ledger.kept, waits=asyncio.Event()))
        forgetting = asyncio.create_task(slow.memories.forget("acme", "deb-1"))
        await slow.ledger.asked.wait()
        assert not await process.memories.record("acme", record("deb-1"))
        assert slow.ledger.waits
        slow.ledger.waits.set()
        await forgetting
        await process.is_whole([])


async def test_a_debate_that_is_forgotten_before_it_is_recorded_stays_forgotten_in_its_tenant_alone(
    tmp_path: Path,
) -> None:
    async with open_process(tmp_path) as process:
        assert not await process.memories.forget("acme", "deb-1")
        writes = Writes()
        assert not await process.stopping(writes).memories.record("acme", record("deb-1"))
        assert writes.made == []
        await process.memories.record("bolt", record("deb-1"))
        await process.is_whole(["deb-1"], tenant="bolt")


@pytest.mark.parametrize("stops", [True, False], ids=["and-stops", "and-goes-on"])
async def test_a_debate_that_is_forgotten_while_its_record_is_on_the_way_stays_forgotten(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stops: bool
) -> None:
    async with open_process(tmp_path) as process:
        insert = process.documents.insert

        async def insert_once_it_is_forgotten(*args: object) -> None:
            monkeypatch.undo()
            assert not await process.memories.forget("acme", "deb-1")
            await insert(*args)  # type: ignore[arg-type]
            if stops:
                raise StoppedError

        monkeypatch.setattr(process.documents, "insert", insert_once_it_is_forgotten)
        try:
            await process.memories.record("acme", record("deb-1"))
        except StoppedError:
            await finish_in_background(process)
        await process.is_whole([])


async def test_the_same_debate_id_of_another_tenant_is_another_record(tmp_path: Path) -> None:
    async with open_process(tmp_path) as process:
        for tenant, question in (("acme", "Ours?"), ("bolt", "Theirs?")):
            with pytest.raises(StoppedError):
                await process.stopping(Writes(1)).memories.record(tenant, record("deb-1", question))
        await finish_in_background(process)
        await process.memories.forget("acme", "deb-1")
        await process.is_whole(["deb-1"], tenant="bolt")
        assert process.ledger.kept["bolt", "deb-1"].debate.question == "Theirs?"
        assert (await process.recalled(), await process.recalled("bolt")) == ([], ["deb-1"])


async def test_a_record_that_cannot_be_read_is_forgotten_all_the_same(tmp_path: Path) -> None:
    async with open_process(tmp_path) as process:
        await process.memories.record("acme", record("deb-1"))
        await process.documents.update(DEBATES, KEY, {"record": {"debate": 7}, "unfinished": None})
        assert await process.memories.forget("acme", "deb-1")
        await process.is_whole([])


async def test_a_record_without_a_mark_is_left_alone(tmp_path: Path) -> None:
    async with open_process(tmp_path) as process:
        fields = to_fields("acme", record("deb-1"), Embedding(to_vector([1.0, 0.0]), "one"))
        await process.documents.insert(DEBATES, KEY, fields)
        writes = Writes()
        assert await process.stopping(writes).memories.record("acme", record("deb-1"))
        assert writes.made == []
