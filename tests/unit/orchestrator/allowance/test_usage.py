"""What tenants use: summed over replicas, reset by day and minute, never lost to a store that is away."""

from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from parley.orchestrator.allowance.usage import TENANT_USE, TenantUsage, key_account
from parley.storage.opening import open_store
from parley.storage.ports import Documents, StoreUnavailableError
from tests.support.manual_clock import ManualClock

NOON = datetime(2026, 5, 4, 12, tzinfo=UTC)


@pytest.fixture
async def documents(tmp_path: Path) -> AsyncIterator[Documents]:
    async with open_store(f"sqlite:///{tmp_path}", "orchestrator") as store:
        await store.documents.prepare(TENANT_USE)
        yield store.documents


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock(NOON)


async def test_replicas_come_to_one_sum(documents: Documents, clock: ManualClock) -> None:
    one, other = TenantUsage(documents, clock, "one"), TenantUsage(documents, clock, "other")
    for use, count in ((one, 3), (other, 4)):
        await use.count("acme", requests=count, tokens=10 * count, cost_micros=count, stored_bytes=100)
        await use.count("beta", requests=1)
    for use in (one, other, one):
        await use.publish()
    for use in (one, other):
        found = await use.get_counts("acme")
        assert (found.requests, found.tokens, found.cost_micros, found.stored_bytes) == (7, 70, 7, 200)
        assert (await use.get_counts("beta")).requests == 2


async def test_what_was_just_counted_here_counts_at_once(documents: Documents, clock: ManualClock) -> None:
    use = TenantUsage(documents, clock, "one")
    await use.count("acme", requests=1)
    await use.publish()
    await use.count("acme", requests=1)
    assert (await use.get_counts("acme")).requests == 2


async def test_a_minute_and_a_day_begin_at_nothing_and_what_is_stored_stays(
    documents: Documents, clock: ManualClock
) -> None:
    use = TenantUsage(documents, clock, "one")
    await use.count("acme", requests=5, tokens=50, stored_bytes=500)
    await use.publish()
    clock.advance(60)
    found = await use.get_counts("acme")
    assert (found.requests, found.tokens, found.stored_bytes) == (0, 50, 500)
    clock.advance(86_400)
    await use.count("acme", stored_bytes=-200)
    await use.publish()
    found = await use.get_counts("acme")
    assert (found.requests, found.tokens, found.stored_bytes) == (0, 0, 300)


async def test_a_replica_whose_clock_is_behind_does_not_end_what_the_others_count(
    documents: Documents, clock: ManualClock
) -> None:
    behind = ManualClock(clock.now() - timedelta(seconds=1))
    one, two = TenantUsage(documents, clock, "one"), TenantUsage(documents, behind, "two")
    for _ in range(2):
        for each in (one, two):
            await each.count("acme", requests=1, tokens=10)
            await each.publish()
    for each in (one, two):
        await each.publish()
        found = await each.get_counts("acme")
        assert (found.requests, found.tokens) == (4, 40)
    clock.advance(86_400)
    found = await one.get_counts("acme")
    assert (found.requests, found.tokens) == (0, 0)


async def test_streams_count_while_they_are_open_and_those_of_a_dead_replica_for_a_minute(
    documents: Documents, clock: ManualClock
) -> None:
    one, other = TenantUsage(documents, clock, "one"), TenantUsage(documents, clock, "other")
    for use in (one, other):
        await use.count("acme", requests=1)
    with one.track_watch("acme"), other.track_watch("acme"), other.track_watch("acme"):
        for use in (one, other, one):
            await use.publish()
        assert await one.count_watches("acme") == 3
        for _ in range(4):  # the other one is dead and says nothing
            clock.advance(20)
            await one.publish()
        assert await one.count_watches("acme") == 1
    await one.publish()
    assert await one.count_watches("acme") == 0


class Away:
    """A store that can be made unavailable, and counts its calls."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self.away = False
        self.calls = 0

    def __getattr__(self, name: str) -> Any:
        async def call(*arguments: Any, **named: Any) -> Any:
            self.calls += 1
            if self.away:
                raise StoreUnavailableError("away")
            return await getattr(self._documents, name)(*arguments, **named)

        return call


async def test_a_store_that_is_away_holds_up_no_call_and_loses_no_count(
    documents: Documents, clock: ManualClock
) -> None:
    store: Any = Away(documents)
    use = TenantUsage(store, clock, "one")
    store.away = True
    await use.count("acme", requests=2, stored_bytes=-5)
    with pytest.raises(StoreUnavailableError):
        await use.publish()
    await use.count("acme", requests=1, stored_bytes=9)
    assert (await use.get_counts("acme")).requests == 3
    store.away = False
    await use.publish()
    found = await TenantUsage(documents, clock, "other").get_counts("acme")
    assert (found.requests, found.stored_bytes) == (3, 4)


async def test_what_is_being_stored_counts_meanwhile(documents: Documents, clock: ManualClock) -> None:
    found = []

    class Asking(Away):
        """A store that is asked to write, and sees what counts by then."""

        async def insert(self, *arguments: Any) -> None:
            found.append((await use.get_counts("acme")).tokens)
            await documents.insert(*arguments)
            found.append((await use.get_counts("acme")).tokens)

    store: Any = Asking(documents)
    use = TenantUsage(store, clock, "one")
    await use.count("acme", tokens=7)
    await use.publish()
    assert [*found, (await use.get_counts("acme")).tokens] == [7, 7, 7]


async def test_nothing_is_kept_of_a_tenant_that_does_nothing(
    documents: Documents, clock: ManualClock
) -> None:
    use = TenantUsage(documents, clock, "one")
    for number in range(50):
        await use.count(f"tenant-{number}", requests=1)
    await use.publish()
    clock.advance(9)
    await use.count("tenant-0", requests=1)
    await use.publish()
    clock.advance(1)
    await use.publish()
    assert list(use._tenants) == ["tenant-0"]


async def test_tenants_that_did_something_a_while_ago_cost_no_reads_and_are_known_when_they_come_back(
    documents: Documents, clock: ManualClock
) -> None:
    store: Any = Away(documents)
    use = TenantUsage(store, clock, "one")
    for number in range(50):
        await use.count(f"tenant-{number}", requests=1, tokens=7)
    await use.publish()
    clock.advance(10)
    await use.publish()
    before = store.calls
    for _ in range(30):
        clock.advance(1)
        await use.publish()
    assert store.calls == before
    assert (await use.get_counts("tenant-7")).tokens == 7


async def test_what_a_tenant_uses_counts_though_it_is_forgotten_while_its_key_is_read(
    documents: Documents, clock: ManualClock
) -> None:
    class Idling(Away):
        """A store whose tenants do nothing for as long as the account of the key is read."""

        async def get(self, collection: Any, account: str) -> Any:
            if account == key_account("acme", "k"):
                clock.advance(10)
                await use.publish()
            return await documents.get(collection, account)

    store: Any = Idling(documents)
    use = TenantUsage(store, clock, "one")
    await use.count("acme", tokens=1)
    await use.publish()
    await use.count("acme", key="k", tokens=7)
    assert (await use.get_counts("acme")).tokens == 8
