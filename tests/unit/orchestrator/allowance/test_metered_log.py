"""What is appended counts for its tenant: bytes, tokens and money, of calls that were stopped too."""

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from parley.orchestrator.allowance.usage import TENANT_USE, MeteredLog, TenantUsage, key_account
from parley.storage.opening import Store, open_store
from parley.storage.ports import Record
from parley.v1.agent_pb2 import Usage
from parley.v1.debate_pb2 import Work
from parley.v1.event_pb2 import Closed, Event, Paused, StoppedCall
from tests.support.encryption import create_keys, damage_data_key
from tests.support.manual_clock import ManualClock
from tests.support.passing_log import PassingLog
from tests.unit.orchestrator.made_logs import CREATED, log, make_failure, make_success

KEY = "0123456789ab"
USED = Usage(input_tokens=10, output_tokens=5, cost_micros=100, requests=1)
STOPPED = [StoppedCall(step="1", attempt=1, usage=USED), StoppedCall(step="2", attempt=1)]
WORK = Work(activity="proposal", agent_id="ada", round=1)


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(f"sqlite:///{tmp_path}", "orchestrator") as opened:
        await opened.documents.prepare(TENANT_USE)
        yield opened


async def test_every_call_counts_whatever_became_of_it(store: Store) -> None:
    use = TenantUsage(store.documents, ManualClock(), "one")
    events = log(
        CREATED,
        make_success(WORK, "text", usage=USED),
        make_failure(WORK),
        Paused(stopped=STOPPED),
        Closed(stopped=STOPPED),
    )
    entries = tuple(each.entry for each in events)
    await MeteredLog(store.log, use).append("acme/deb-1", Record(1, "first", entries))

    used = await use.get_counts("acme")
    assert list(use._tenants) == ["acme"], "no key has a budget"
    assert (used.tokens, used.cost_micros) == (15 + 3 + 15 + 15, 100 + 7 + 100 + 100)
    assert used.stored_bytes == sum(map(len, entries))


async def test_calls_of_a_debate_that_a_key_with_a_budget_asked_for_count_for_the_key_at_every_replica(
    store: Store,
) -> None:
    created = Event()
    created.CopyFrom(CREATED)
    created.debate_created.budget_key_id = KEY
    entries = [
        each.entry for each in log(created, make_success(WORK, "text", usage=USED), Paused(stopped=STOPPED))
    ]
    use = TenantUsage(store.documents, ManualClock(), "one")
    await MeteredLog(store.log, use).append("acme/deb-1", Record(1, "first", tuple(entries[:2])))
    await MeteredLog(store.log, use).append("acme/deb-1", Record(3, "second", tuple(entries[2:])))
    for account in ("acme", key_account("acme", KEY)):
        used = await use.get_counts(account)
        assert (used.tokens, used.cost_micros) == (30, 200)
    assert (await use.get_counts(key_account("acme", KEY))).stored_bytes == 0


async def test_a_log_whose_data_key_is_damaged_is_deleted(tmp_path: Path) -> None:
    keys, entries = create_keys(), tuple(each.entry for each in log(CREATED))
    async with open_store(f"sqlite:///{tmp_path}", "orchestrator", wrapping=keys) as store:
        await store.log.append("acme/deb-1", Record(1, "first", entries))
    damage_data_key(tmp_path / "parley.db", "orchestrator", "acme/deb-1")
    async with open_store(f"sqlite:///{tmp_path}", "orchestrator", wrapping=keys) as store:
        await store.documents.prepare(TENANT_USE)
        await MeteredLog(store.log, TenantUsage(store.documents, ManualClock(), "one")).delete("acme/deb-1")
        assert not await store.log.read("acme/deb-1")


async def test_what_is_appended_again_since_its_writer_was_stopped_counts_once(store: Store) -> None:
    entries = _make_budgeted_log()
    await store.log.append("acme/deb-1", Record(1, "first", tuple(entries[:1])))
    use, reading = TenantUsage(store.documents, ManualClock(), "one"), asyncio.Event()

    class Held(PassingLog):
        async def read(self, log: str, after: int = 0, limit: int = 1000) -> Sequence[Record]:
            reading.set()
            return await asyncio.Future()

    second = Record(2, "second", tuple(entries[1:]))
    writing = asyncio.create_task(MeteredLog(Held(store.log), use).append("acme/deb-1", second))
    await asyncio.wait_for(reading.wait(), 30)
    writing.cancel()
    await asyncio.wait({writing})
    await MeteredLog(store.log, use).append("acme/deb-1", second)
    assert (await use.get_counts("acme")).tokens == 15


async def test_what_is_appended_again_since_its_writer_was_stopped_as_it_counted_counts_once(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The account of the key is still to be loaded as the writer is stopped."""
    use, loading, account = (
        TenantUsage(store.documents, ManualClock(), "one"),
        asyncio.Event(),
        key_account("acme", KEY),
    )
    read = use._read_stored

    async def hold(tenant: str) -> Mapping[str, Any]:
        if tenant != account or loading.is_set():
            return await read(tenant)
        loading.set()
        return await asyncio.Future()

    monkeypatch.setattr(use, "_read_stored", hold)
    metered, record = MeteredLog(store.log, use), Record(1, "first", tuple(_make_budgeted_log()))
    writing = asyncio.create_task(metered.append("acme/deb-1", record))
    await asyncio.wait_for(loading.wait(), 30)
    writing.cancel()
    await asyncio.wait({writing})
    await metered.append("acme/deb-1", record)
    for each in ("acme", account):
        assert (await use.get_counts(each)).tokens == 15


async def test_of_many_logs_the_keys_of_the_last_are_known(
    store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parley.orchestrator.allowance.usage._MAX_BUDGET_KEYS", 1)
    read: list[str] = []

    class Noting(PassingLog):
        async def read(self, log: str, after: int = 0, limit: int = 1000) -> Sequence[Record]:
            read.append(log)
            return await super().read(log, after, limit)

    metered = MeteredLog(Noting(store.log), TenantUsage(store.documents, ManualClock(), "one"))
    created, answered = _make_budgeted_log()
    for name in ("acme/deb-1", "acme/deb-2"):
        await metered.append(name, Record(1, "first", (created,)))
    for name in ("acme/deb-2", "acme/deb-1"):
        await metered.append(name, Record(2, "second", (answered,)))
    assert read == ["acme/deb-1"]


def _make_budgeted_log() -> list[bytes]:
    """Return the entries of a debate with one call, which counts against the budget of a key."""
    created = Event()
    created.CopyFrom(CREATED)
    created.debate_created.budget_key_id = KEY
    return [each.entry for each in log(created, make_success(WORK, "text", usage=USED))]
