"""What a tenant may still do, by the debates it has."""

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from grpc import StatusCode

from parley.orchestrator.allowance.allowance import Allowance, _find_queue
from parley.orchestrator.allowance.limits import TenantLimits
from parley.orchestrator.allowance.usage import TENANT_USE, TenantUsage, key_account
from parley.orchestrator.log.debate_record import COMPLETED, PENDING, RUNNING, WAITING
from parley.orchestrator.log.index import DEBATES, DebateIndex
from parley.runtime.errors import ParleyError
from parley.storage.opening import Store, open_store
from parley.v1.access_pb2 import CALL_QUEUE_READ, queue
from parley.v1.key_pb2 import KeyBudget
from parley.v1.orchestrator_pb2 import DESCRIPTOR
from tests.support.debate_records import create_record
from tests.support.manual_clock import ManualClock
from tests.support.waiting import wait_until


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Store]:
    async with open_store(f"sqlite:///{tmp_path}", "orchestrator") as opened:
        await opened.documents.prepare(DEBATES, TENANT_USE)
        yield opened


@pytest.fixture
def clock() -> ManualClock:
    return ManualClock()


def allowance(store: Store, clock: ManualClock, **limits: int) -> Allowance:
    use = TenantUsage(store.documents, clock, "one")
    return Allowance(TenantLimits(**limits), use, DebateIndex(store.documents), clock)


async def have(store: Store, tenant: str, *statuses: str) -> None:
    for number, status in enumerate(statuses):
        record = create_record(tenant, f"deb-{status}-{number}", datetime(2026, 1, 1, tzinfo=UTC), status)
        await DebateIndex(store.documents).insert(record)


async def refusal(allowance: Allowance, tenant: str = "acme") -> str:
    try:
        async with allowance.admit_debate(tenant):
            pass
    except ParleyError as error:
        return error.reason
    return ""


async def test_debates_that_wait_for_somebody_hold_no_place(store: Store, clock: ManualClock) -> None:
    await have(store, "acme", PENDING, RUNNING, *[WAITING] * 3, *[COMPLETED] * 5)
    assert await refusal(allowance(store, clock, debates=3)) == ""
    assert await refusal(allowance(store, clock, debates=2)) == "TENANT_DEBATES"
    assert await refusal(allowance(store, clock, waiting=4)) == ""
    assert await refusal(allowance(store, clock, waiting=3)) == "TENANT_WAITING"
    assert await refusal(allowance(store, clock, debates=2), "beta") == ""


async def test_debates_made_here_count_before_somebody_looks_again(store: Store, clock: ManualClock) -> None:
    found = allowance(store, clock, debates=2)
    for _ in range(2):
        assert await refusal(found) == ""
    assert await refusal(found) == "TENANT_DEBATES"
    clock.advance(1)
    assert await refusal(found) == "", "they are not there, or have ended"


async def test_debates_that_are_being_made_count_and_those_that_fail_make_room(
    store: Store, clock: ManualClock
) -> None:
    found = allowance(store, clock, debates=2)

    async def make_one_and_fail_one() -> None:
        async with found.admit_debate("acme"):
            async with found.admit_debate("acme"):
                assert await refusal(found) == "TENANT_DEBATES"
                assert await refusal(found, "beta") == ""
            raise RuntimeError("failed")

    with pytest.raises(RuntimeError, match="failed"):
        await make_one_and_fail_one()
    assert await refusal(found) == "", "one was made"
    assert await refusal(found) == "TENANT_DEBATES"


@pytest.mark.parametrize(
    ("method", "at_once"),
    [("GetDebate", 2), ("SubmitFeedback", 2), ("StreamReport", 4), ("CreateDebate", 8), ("Intervene", 32)],
)
async def test_so_many_calls_of_a_tenant_are_worked_on_at_a_time(
    store: Store, clock: ManualClock, method: str, at_once: int
) -> None:
    found, inside = allowance(store, clock), 0
    leave = asyncio.Event()

    async def call(tenant: str, name: str = method) -> None:
        nonlocal inside
        async with found.admit_call(f"parley.v1.OrchestratorService/{name}", tenant):
            inside += 1
            await leave.wait()

    async with asyncio.TaskGroup() as tasks:
        for _ in range(at_once + 3):
            tasks.create_task(call("acme"))
        tasks.create_task(call("beta"))
        tasks.create_task(call("acme", "ListKeys"))
        await wait_until(lambda: inside >= at_once + 2)
        for _ in range(20):
            await found.usage.get_counts("acme")
        assert inside == at_once + 2, (
            "neither another tenant nor another call waits, and no more of these are let in"
        )
        leave.set()
    assert inside == at_once + 5


def test_an_rpc_that_names_no_queue_waits_with_those_that_read() -> None:
    found = DESCRIPTOR.services_by_name["OrchestratorService"]
    unnamed = [each for each in found.methods if not each.GetOptions().Extensions[queue]]
    assert "GetDebate" in [each.name for each in unnamed]
    for each in unnamed:
        assert _find_queue(f"{found.full_name}/{each.name}") == (CALL_QUEUE_READ, False)


async def test_without_limits_nothing_is_refused(store: Store, clock: ManualClock) -> None:
    await have(store, "acme", *[RUNNING] * 50)
    found = allowance(store, clock)
    await found.usage.count("acme", tokens=10**12, cost_micros=10**12, stored_bytes=10**12, requests=10**6)
    assert await refusal(found) == ""
    async with found.admit_call("parley.v1.OrchestratorService/WatchDebate", "acme"):
        pass


async def test_a_refusal_says_when_the_day_and_the_minute_end(store: Store, clock: ManualClock) -> None:
    clock.advance(3600 * 5 + 12)
    found = allowance(store, clock, cost_micros=5, requests=1)
    await found.usage.count("acme", cost_micros=5)
    with pytest.raises(ParleyError, match="money of today is used up") as refused:
        async with found.admit_debate("acme"):
            pass
    assert refused.value.retry_after == 19 * 3600 - 12
    async with found.admit_call("parley.v1.OrchestratorService/GetDebate", "acme"):
        pass
    call = asyncio.create_task(enter(found, "acme"))
    await clock.sleeping(1)
    clock.advance(1)
    with pytest.raises(ParleyError, match="requests of this minute") as refused:
        await call
    assert refused.value.retry_after == 47


async def enter(allowed: Allowance, tenant: str) -> None:
    async with allowed.admit_call("parley.v1.OrchestratorService/GetDebate", tenant):
        pass


async def test_whoever_made_too_many_calls_is_told_late_but_not_more_than_some_at_a_time(
    store: Store, clock: ManualClock
) -> None:
    allowed = allowance(store, clock, requests=1)
    await enter(allowed, "acme")
    calls = [asyncio.create_task(enter(allowed, "acme")) for _ in range(260)]
    await clock.sleeping(256)
    await wait_until(lambda: sum(call.done() for call in calls) >= 4)
    await enter(allowed, "beta")
    clock.advance(1)
    told = await asyncio.gather(*calls, return_exceptions=True)
    assert [each.reason for each in told if isinstance(each, ParleyError)] == ["TENANT_REQUESTS"] * 260
    late = asyncio.create_task(enter(allowed, "acme"))
    await clock.sleeping(1)
    late.cancel()
    with pytest.raises(asyncio.CancelledError):
        await late
    assert not allowed._delayed


async def test_no_tenant_waits_behind_all_that_another_reads(store: Store, clock: ManualClock) -> None:
    allowed, leave = allowance(store, clock), asyncio.Event()
    inside: list[str] = []

    async def read(tenant: str) -> None:
        async with allowed.admit_call("parley.v1.OrchestratorService/GetDebate", tenant):
            inside.append(tenant)
            await leave.wait()

    async with asyncio.timeout(30), asyncio.TaskGroup() as tasks:
        for tenant in ("acme",) * 50 + ("small",):
            tasks.create_task(read(tenant))
        while "small" not in inside:  # noqa: ASYNC110 (the store answers when it does)
            await asyncio.sleep(0)
        assert inside.count("acme") == 2
        async with allowed.admit_call("parley.v1.OrchestratorService/Intervene", "acme"):
            pass  # what may wait for others keeps no reader out, nor is kept out
        leave.set()
    assert inside.count("acme") == 50


@pytest.mark.parametrize(
    ("used", "reason"),
    [({"tokens": 10}, "KEY_TOKENS"), ({"cost_micros": 20}, "KEY_COST"), ({"tokens": 9}, "")],
)
async def test_a_key_that_has_used_up_its_budget_asks_for_no_debate_until_the_day_ends(
    store: Store, clock: ManualClock, used: dict[str, Any], reason: str
) -> None:
    found = allowance(store, clock)
    budget = KeyBudget(tokens_per_day=10, cost_micros_per_day=20)

    async def refusal_of(key_id: str) -> str:
        try:
            async with found.admit_debate("acme", budget, key_id):
                return ""
        except ParleyError as error:
            return error.reason if 0 < (error.retry_after or 0) <= 86_400 else "no time to come back"

    await found.usage.count(key_account("acme", "one"), **used)
    assert await refusal_of("one") == reason
    assert await refusal_of("two") == ""
    assert await refusal(found) == ""
    clock.advance(86_400)
    assert await refusal_of("one") == ""


async def test_a_large_request_waits_for_others_and_is_refused_after_a_while(
    store: Store, clock: ManualClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    limited = allowance(store, clock)
    large = limited.large_requests.limit // 2
    async with limited.admit_request("acme", large):
        async with limited.admit_request("acme", 1000):
            pass  # a small one does not wait
        monkeypatch.setattr("parley.orchestrator.allowance.allowance._REQUEST_SECONDS", 0.0)
        with pytest.raises(ParleyError) as refused:
            async with limited.admit_request("acme", large):
                pass
        assert refused.value.code is StatusCode.RESOURCE_EXHAUSTED
        assert (refused.value.reason, refused.value.retry_after) == ("TENANT_REQUEST_BYTES", 5.0)
    monkeypatch.undo()
    async with limited.admit_request("acme", large):
        assert limited.large_requests.held == large
