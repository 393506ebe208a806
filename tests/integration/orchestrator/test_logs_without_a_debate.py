"""Logs that a crash left without their debate are deleted, and those of debates are not."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from parley.orchestrator.delivery.deliveries import DELIVERIES
from parley.orchestrator.log.debate_record import COMPLETED
from parley.orchestrator.log.deletions import DELETIONS, Deletion, DeletionStore
from parley.orchestrator.log.feedback import FEEDBACK
from parley.orchestrator.log.imported_receipts import IMPORTED_RECEIPTS
from parley.v1.debate_pb2 import ContextDocument
from tests.integration.orchestrator.deleting import deletions
from tests.support.debate_logs import StoppingLog
from tests.support.manual_clock import ManualClock
from tests.support.orchestration import TENANT, Backstage, backstage, make_debate

LARGE = make_debate(context=(ContextDocument(path="a.json", text="x" * 1024 * 1024),))
"""A debate whose log is written before its record."""


async def list_begun(stage: Backstage) -> list[str]:
    """The debates of which only the log may be there."""
    notes = await stage.store.documents.find(DELETIONS, {})
    return [str(note.fields["debate"]) for note in notes]


async def after(stage: Backstage, since: timedelta) -> None:
    """Look for debates that never came to be, some time later."""
    clock = ManualClock(datetime.now(UTC) + since)
    await deletions(stage.store, stage.channel, clock=clock).delete_abandoned()


@pytest.mark.parametrize("durable", [False, True], ids=["before", "after"])
async def test_a_log_that_a_crash_left_without_its_debate_is_deleted_an_hour_later(
    tmp_path: Path, *, durable: bool
) -> None:
    async with backstage(tmp_path) as stage:
        await stage.store.documents.prepare(FEEDBACK, DELIVERIES, IMPORTED_RECEIPTS)
        log = StoppingLog(stage.store.log, 1, durable=durable)
        taken_in = asyncio.create_task(stage.replica(log=log).create(LARGE))
        await log.stopped.wait()
        taken_in.cancel()
        await asyncio.gather(taken_in, return_exceptions=True)
        (debate,) = await list_begun(stage)
        await after(stage, timedelta(minutes=50))
        assert bool(await stage.kinds(debate)) == durable, "whoever takes it in may be slow"
        await after(stage, timedelta(minutes=70))
        assert not await stage.kinds(debate)
        assert not await list_begun(stage)


async def test_a_log_that_is_written_again_is_not_taken_for_one_without_a_debate(tmp_path: Path) -> None:
    now = datetime.now(UTC)
    long_ago, an_hour_ago = (
        (now - timedelta(minutes=each)).isoformat(timespec="microseconds") for each in (70, 60)
    )
    async with backstage(tmp_path) as stage:
        notes = DeletionStore(stage.store.documents)
        await notes.record_log_start(TENANT, "one", long_ago)
        (found,) = await notes.list_started(an_hour_ago)
        assert await notes.renew_log_start(TENANT, "one", now.isoformat(timespec="microseconds"))
        assert not await notes.start_deletion(found, an_hour_ago), "found before it was renewed"
        await after(stage, timedelta())
        assert await list_begun(stage) == ["one"]
        assert not await notes.is_deleting(TENANT, "one")


async def test_a_log_without_a_debate_is_not_written_again_while_it_is_deleted(tmp_path: Path) -> None:
    async with backstage(tmp_path) as stage:
        notes = DeletionStore(stage.store.documents)
        await notes.record_log_start(TENANT, "one", "2026-01-01T00:00:00.000000")
        (found,) = await notes.list_started("2026-01-01T00:00:01.000000")
        assert await notes.start_deletion(found, "2026-01-01T00:00:01.000000")
        assert not await notes.renew_log_start(TENANT, "one", "2026-01-02T00:00:00.000000")
        assert await notes.is_deleting(TENANT, "one")


async def test_a_debate_that_came_to_be_is_kept_whatever_is_noted_of_it(tmp_path: Path) -> None:
    async with backstage(tmp_path) as stage, stage.replica() as replica:
        await stage.store.documents.prepare(FEEDBACK, DELIVERIES, IMPORTED_RECEIPTS)
        debate = await replica.create(LARGE)
        assert not await list_begun(stage)
        await stage.comes_to(debate, COMPLETED)
        notes = DeletionStore(stage.store.documents)
        # As where the store was away when the note was to go.
        await notes.record_log_start(TENANT, debate, "2026-01-01T00:00:00.000000")
        await deletions(stage.store, stage.channel).finish_all()
        await after(stage, timedelta())
        assert await stage.kinds(debate)
        assert not await list_begun(stage)
        await notes.record_log_start(TENANT, debate, "2026-01-01T00:00:00.000000")
        assert await deletions(stage.store, stage.channel).delete(TENANT, debate, ratings=False)
        assert not await stage.kinds(debate)
        assert not await list_begun(stage)


async def test_a_deletion_is_finished_of_a_debate_of_which_it_is_noted_that_it_began(tmp_path: Path) -> None:
    async with backstage(tmp_path) as stage:
        store = DeletionStore(stage.store.documents)
        await store.record_log_start(TENANT, "one", datetime.now(UTC).isoformat(timespec="microseconds"))
        await store.put(Deletion(TENANT, "one", ratings=True))
        assert await store.list_all() == [Deletion(TENANT, "one", ratings=True)]
