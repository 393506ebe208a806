"""What the index says of a debate, along with the events of its log."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from msgspec import Struct

from parley.orchestrator.engine.inbox import INBOX, Inbox
from parley.orchestrator.engine.status_writer import StatusWriter
from parley.orchestrator.log.debate_record import CANCELLED, PENDING, RUNNING, DebateRecord
from parley.orchestrator.log.envelope import create_event
from parley.orchestrator.log.index import DEBATES, DebateIndex
from parley.orchestrator.log.journal import Journal
from parley.orchestrator.model.limits import TOKEN_BUDGET
from parley.storage.opening import open_store
from parley.storage.ports import StoreUnavailableError
from parley.v1.agent_pb2 import Usage
from parley.v1.debate_pb2 import Work
from parley.v1.event_pb2 import Closed, Concluded, DebateCreated, LimitReached
from tests.support.manual_clock import ManualClock
from tests.unit.orchestrator.made_logs import make_success

AT = "2026-01-01T00:00:00.000000+00:00"


class Owned(Struct, frozen=True):
    """A debate that `ada` has claimed. `noticed` are the debates of which notice was given."""

    index: DebateIndex
    journal: Journal
    writer: StatusWriter
    noticed: list[str]

    async def cost(self) -> int | None:
        """Return what the index says that it costs."""
        found = await self.index.get("t", "deb")
        assert found is not None
        return found.cost_micros

    async def said(self) -> tuple[str, bool, str | None]:
        """Return what the index says: the status, whether the debate needs an owner, and its owner."""
        found = await self.index.get("t", "deb")
        assert found is not None
        return found.status, found.open, found.owner


@asynccontextmanager
async def own_debate(folder: Path) -> AsyncIterator[Owned]:
    """Insert and claim a new debate, as one that runs at once."""
    async with open_store(f"sqlite:///{folder}", "orchestrator") as store:
        await store.documents.prepare(DEBATES, INBOX)
        index, noticed, clock = DebateIndex(store.documents), list[str](), ManualClock()
        index.notice = lambda _tenant, debate: noticed.append(debate)
        record = DebateRecord(
            "t", "deb", "one", "", "panel@1", PENDING, True, None, 0, 0, f"{AT}/deb", AT, "", "AA=="
        )
        journal = Journal(store.log, clock, "t", "deb")
        writer = StatusWriter(record, journal, index, Inbox(store.documents), clock, "ada")
        writer.claimed_status = RUNNING
        first = create_event("created", DebateCreated())
        await journal.claim("ada", first, insert=index.plan_insert(record))
        writing = asyncio.create_task(journal.run_writer())
        try:
            yield Owned(index, journal, writer, noticed)
        finally:
            writing.cancel()
            await asyncio.gather(writing, return_exceptions=True)


def count_writes(monkeypatch: pytest.MonkeyPatch, index: DebateIndex) -> list[str]:
    """Return a list of the statuses that are written by themselves from now on."""
    written: list[str] = []
    update = index._documents.update

    async def note(collection: Any, key: str, changes: Any, where: Any) -> bool:
        written.append(changes["status"])
        return await update(collection, key, changes, where)

    monkeypatch.setattr(index._documents, "update", note)
    return written


async def test_a_claim_a_conclusion_and_the_end_are_written_along_with_their_events(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with own_debate(tmp_path) as debate:
        written = count_writes(monkeypatch, debate.index)
        assert await debate.said() == (RUNNING, True, "ada")
        await debate.writer.write_status(RUNNING)
        await debate.journal.append(create_event("concluded", Concluded()))
        assert await debate.said() == (CANCELLED, True, "ada")
        await debate.writer.write_status(CANCELLED)
        await debate.journal.append(create_event("closed", Closed()))
        assert await debate.said() == (CANCELLED, False, None)
        await debate.writer.write_closed()
    assert written == [], "nothing is left to write by itself"
    assert debate.noticed == ["deb"] * 2


async def test_a_debate_that_is_released_just_after_its_conclusion_has_no_owner(tmp_path: Path) -> None:
    async with own_debate(tmp_path) as debate:
        await debate.journal.append(create_event("concluded", Concluded()))
        await debate.writer.release()
        assert await debate.said() == (CANCELLED, True, None)


async def test_a_status_that_changed_since_is_written_again(tmp_path: Path) -> None:
    async with own_debate(tmp_path) as debate:
        await debate.journal.append(create_event("concluded", Concluded()))
        await debate.writer.notify_status(RUNNING)  # a wait has ended just then
        await debate.writer.write_status(CANCELLED)
        assert await debate.said() == (CANCELLED, True, "ada")


async def test_a_limit_is_news_once_it_is_durable(tmp_path: Path) -> None:
    async with own_debate(tmp_path) as debate:
        debate.journal.enqueue(create_event("limit/token_budget", LimitReached(limit=TOKEN_BUDGET)))
        assert await debate.writer.renew_lease(2)
        assert debate.noticed == [], "whoever looked into the log would not find it"
        await debate.journal.wait_until_written()
        assert await debate.writer.renew_lease(3)
        assert await debate.writer.renew_lease(4)
    assert debate.noticed == ["deb"]


async def test_lists_tell_what_a_debate_costs_once_that_is_durable(tmp_path: Path) -> None:
    async with own_debate(tmp_path) as debate:
        work, used = Work(activity="proposal", agent_id="ada", round=1), Usage(cost_micros=100, requests=1)
        debate.journal.record(make_success(work, "text", usage=used))
        assert await debate.writer.renew_lease(2)
        assert await debate.cost() != 100, "whoever looked into the log would not find the call"
        await debate.journal.wait_until_written()
        assert await debate.writer.renew_lease(3)
        assert await debate.cost() == 100


async def test_a_limit_that_a_store_that_is_away_was_not_told_of_is_news_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def be_away(*_: object) -> bool:
        raise StoreUnavailableError("away")

    async with own_debate(tmp_path) as debate:
        await debate.journal.append(create_event("limit/token_budget", LimitReached(limit=TOKEN_BUDGET)))
        with monkeypatch.context() as patched:
            patched.setattr(debate.index._documents, "update", be_away)
            with pytest.raises(StoreUnavailableError):
                await debate.writer.renew_lease(2)
        assert await debate.writer.renew_lease(3)
    assert debate.noticed == ["deb"]
