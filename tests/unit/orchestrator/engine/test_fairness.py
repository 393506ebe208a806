"""Whose debate is begun next: by the rule alone, and by a runner with few slots."""

from collections import Counter
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.orchestrator.engine.fairness import order_fairly
from parley.orchestrator.log import index as index_module
from parley.orchestrator.log.debate_record import PENDING, DebateRecord
from parley.orchestrator.log.index import DEBATES, DebateIndex
from parley.storage.opening import open_store
from parley.storage.ports import Documents
from tests.support.counting_documents import CountingDocuments
from tests.support.debate_records import create_record


def record(tenant: str, number: int, owner: str | None = None) -> DebateRecord:
    debate = f"deb-20300101-000000-{number:08d}"
    accepted = datetime(2030, 1, 1, microsecond=number, tzinfo=UTC)
    return create_record(tenant, debate, accepted, PENDING, request_id=f"{number}", owner=owner)


def start_order(waiting: list[DebateRecord], running: list[DebateRecord] = []) -> list[tuple[str, int]]:  # noqa: B006 (not changed)
    return [
        (each.tenant, int(each.request_id))
        for each in order_fairly(waiting, Counter(each.tenant for each in running))
    ]


def test_a_tenant_with_many_debates_does_not_keep_one_with_a_single_debate_waiting() -> None:
    many = [record("acme", number) for number in range(100)]
    assert start_order([*many, record("small", 500)])[:3] == [("acme", 0), ("small", 500), ("acme", 1)]


def test_tenants_take_turns_and_each_has_its_oldest_first() -> None:
    waiting = [record(tenant, number) for number in range(6) for tenant in "ba"]
    assert start_order(list(reversed(waiting)))[:6] == [
        ("a", 0),
        ("b", 0),
        ("a", 1),
        ("b", 1),
        ("a", 2),
        ("b", 2),
    ]


def test_a_tenant_that_has_debates_running_waits_for_those_that_have_fewer() -> None:
    running = [record("acme", number, "replica") for number in range(3)]
    waiting = [
        record("acme", 10),
        record("acme", 11),
        record("new", 20),
        record("new", 21),
        record("new", 22),
        record("new", 23),
    ]
    assert start_order(waiting, running) == [
        ("new", 20), ("new", 21), ("new", 22), ("acme", 10), ("new", 23), ("acme", 11),
    ]  # fmt: skip


@given(
    st.lists(st.sampled_from("abcd"), max_size=40),
    st.lists(st.sampled_from("abcd"), max_size=10),
)
def test_every_debate_gets_its_turn_once_and_who_waits_never_has_more_than_one_that_is_preferred(
    tenants: list[str], busy: list[str]
) -> None:
    waiting = [record(tenant, number) for number, tenant in enumerate(tenants)]
    order = list(order_fairly(waiting, Counter(busy)))
    assert sorted(each.created for each in order) == sorted(each.created for each in waiting)
    count, left = Counter(busy), Counter(tenants)
    for each in order:
        assert count[each.tenant] == min(count[tenant] for tenant in left if left[tenant])
        count[each.tenant] += 1
        left[each.tenant] -= 1
    for tenant in set(tenants):
        mine = [each.created for each in order if each.tenant == tenant]
        assert mine == sorted(mine)


async def test_what_waits_for_a_tenant_is_in_sight_however_many_older_debates_of_others_wait(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_module, "_PAGE_SIZE", 20)
    async with open_store(f"sqlite:///{tmp_path}", "orchestrator") as store:
        await store.documents.prepare(DEBATES)
        index = DebateIndex(store.documents)
        for number in range(30):
            await index.insert(record("acme", number))
            await index.insert(record("busy", 100 + number, "replica"))
        await index.insert(record("small", 900))
        await index.insert(record("zeta", 901))
        owned, (waiting, are_all) = await index.list_owned(), await index.list_waiting()
    assert [each.tenant for each in owned] == ["busy"] * 30
    order = start_order(waiting, owned)
    assert order[:4] == [("acme", 0), ("small", 900), ("zeta", 901), ("acme", 1)]
    assert len(set(order)) == len(order) == 32
    assert not are_all


async def test_who_follows_a_dead_owner_reads_its_oldest_debates_and_those_of_each_tenant_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_module, "_PAGE_PER_OWNED_TENANT", 2)
    async with open_store(f"sqlite:///{tmp_path}", "orchestrator") as store:
        await store.documents.prepare(DEBATES)
        counting = CountingDocuments(store.documents)
        index = DebateIndex(cast("Documents", counting))
        for number in range(30):
            await index.insert(record("acme", 100 + number, "dead"))
        await index.insert(record("small", 900, "dead"))
        await index.insert(record("acme", 99, "dead too"))
        found = [(each.tenant, each.owner) for each in await index.list_owned(of_each=10)]
    assert found == [("acme", "dead too"), *[("acme", "dead")] * 10, ("small", "dead")]
    assert counting.read <= 20, "of thirty-two"
