"""The index of debates, on every store: those that wait without an owner are out of a scan's sight until they are due."""

from datetime import UTC, datetime
from typing import Any

import pytest

from parley.orchestrator.log.debate_record import PAUSED, RUNNING, WAITING, DebateRecord
from parley.orchestrator.log.index import DEBATES, DebateIndex
from parley.storage.opening import Store
from tests.support.debate_records import create_record

LATER, NOW, SOONER = (f"2026-01-01T00:00:{second:02}.000000+00:00" for second in (40, 30, 20))


def record(name: str, status: str = RUNNING, owner: str | None = "one", **fields: Any) -> DebateRecord:
    accepted = datetime(2026, 1, 1, tzinfo=UTC)
    return create_record("default", name, accepted, status, owner=owner, epoch=1, **fields)


@pytest.fixture
async def index(store: Store) -> DebateIndex:
    await store.documents.prepare(DEBATES)
    return DebateIndex(store.documents)


async def insert_waiting(index: DebateIndex, name: str, due: str) -> DebateRecord:
    """Put a debate in that waits without an owner."""
    made = record(name)
    await index.insert(made)
    assert await index.write(
        index.plan_status(made, 1, status=WAITING, is_open=False, owner=None, updated=made.updated, due=due)
    )
    return made


async def keys(index: DebateIndex) -> tuple[set[str], list[str]]:
    """The debates that a scan sees as in need of an owner, and those that are due, in order."""
    owned, (waiting, _) = await index.list_owned(), await index.list_waiting()
    overdue = await index.list_overdue(NOW)
    return {each.debate for each in (*owned, *waiting)}, [each.debate for each in overdue]


async def test_a_debate_is_found_from_the_moment_on_until_which_it_waits(index: DebateIndex) -> None:
    for name, due in (("later", LATER), ("now", NOW), ("sooner", SOONER)):
        await insert_waiting(index, name, due)
    await index.insert(record("running"))
    await index.insert(record("paused", status=PAUSED, open=False, owner=None))
    assert await keys(index) == ({"running"}, ["sooner", "now"])


async def test_whoever_asks_for_an_owner_brings_it_back_into_sight(index: DebateIndex) -> None:
    await insert_waiting(index, "sooner", SOONER)
    assert await index.reopen("default", "sooner")
    assert await keys(index) == ({"sooner"}, [])
    assert not await index.reopen("default", "sooner")


async def test_a_claim_and_the_next_status_end_the_wait(index: DebateIndex) -> None:
    claimed = await insert_waiting(index, "claimed", SOONER)
    assert await index.write(index.plan_claim(claimed, "two", 2, NOW))
    assert await keys(index) == ({"claimed"}, [])
    rests = await insert_waiting(index, "rests", SOONER)
    await index.write(index.plan_status(rests, 1, status=PAUSED, is_open=False, owner=None, updated=NOW))
    assert await keys(index) == ({"claimed"}, [])


async def test_an_owner_that_has_lost_its_claim_puts_nothing_out_of_sight(index: DebateIndex) -> None:
    made = record("lost")
    await index.insert(made)
    await index.write(index.plan_claim(made, "two", 2, NOW))
    told = await index.write(
        index.plan_status(made, 1, status=WAITING, is_open=False, owner=None, updated=NOW, due=LATER)
    )
    assert (told, await keys(index)) == (False, ({"lost"}, []))
