"""A replica with few slots: tenants take turns at them, and nobody jumps the queue."""

import asyncio
import uuid

import pytest

from tests.support.debate_logs import check_log
from tests.support.orchestration import Backstage, Replica, make_debate, until, with_fields

SPEC = make_debate(2, 1)


async def accept(replica: Replica, tenant: str) -> str:
    request = uuid.uuid4().hex
    debate, _ = await replica.intake.create_debate(tenant, with_fields(SPEC, request_id=request), request)
    return debate


def order(stage: Backstage) -> list[str]:
    """Tenants of debates in the order in which these were begun."""
    begun: dict[str, str] = {}
    for asked in stage.gateway.calls:
        begun.setdefault(asked.debate, asked.tenant)
    return list(begun.values())


async def wait_for_begun(stage: Backstage, count: int) -> list[str]:
    """Wait until so many debates were begun, and return their tenants."""

    async def has_come() -> bool:
        return len(order(stage)) == count

    await until(has_come, f"{count} begun")
    return order(stage)


async def test_a_tenant_with_one_debate_is_not_starved_by_one_with_many(stage: Backstage) -> None:
    hold = stage.gateway.hold("round/1/propose/*")
    async with stage.replica(max_debates=2) as replica:
        for _ in range(12):
            await accept(replica, "acme")
        await accept(replica, "small")
        assert await wait_for_begun(stage, 2) == ["acme", "acme"]
        hold.release()
        assert (await wait_for_begun(stage, 13)).index("small") <= 3


@pytest.mark.parametrize("queued", [0, 3])
async def test_a_tenant_that_has_none_gets_a_slot_though_another_holds_all(
    stage: Backstage, queued: int
) -> None:
    hold = stage.gateway.hold("round/1/propose/*")
    async with stage.replica(max_debates=8) as replica:
        for _ in range(8 + queued):
            await accept(replica, "acme")
        await wait_for_begun(stage, 8)

        async def stands() -> bool:
            return len(replica.runner._queued) == bool(queued)

        await until(stands, "the others wait")
        for _ in range(2):
            await accept(replica, "small")
        assert await wait_for_begun(stage, 9) == ["acme"] * 8 + ["small"]
        await accept(replica, "third")

        async def do_all_wait() -> bool:
            return {"small", "third"} <= replica.runner._queued

        await until(do_all_wait, "one more is all there is")
        assert len(order(stage)) == 9
        hold.release()
        await wait_for_begun(stage, 11 + queued)


async def test_a_debate_that_is_created_while_others_wait_goes_behind_them(stage: Backstage) -> None:
    hold = stage.gateway.hold("round/1/propose/*")
    async with stage.replica(max_debates=1) as replica:
        first = [await accept(replica, "acme") for _ in range(3)]

        async def queue_stands() -> bool:
            return bool(replica.runner._queued)

        await until(queue_stands, "two wait")
        replica.runner._slots._most = 2
        await accept(replica, "acme")
        await wait_for_begun(stage, 2)
        assert {asked.debate for asked in stage.gateway.calls} == set(first[:2])
        hold.release()
        await wait_for_begun(stage, 4)


async def test_of_many_debates_that_are_created_at_once_only_so_many_run(stage: Backstage) -> None:
    hold = stage.gateway.hold("round/1/propose/*")
    async with stage.replica(max_debates=2) as replica:
        debates = await asyncio.gather(*(replica.create(SPEC) for _ in range(12)))
        await wait_for_begun(stage, 2)
        assert len(replica.runner._owned) == 2
        records = [await stage.record(debate) for debate in debates]
        waiting = [record for record in records if record.owner is None]
        assert len(waiting) == 10, "whoever has a slot may run them"
        hold.release()
        for debate in debates:
            check_log(await stage.comes_to(debate, "COMPLETED"))


@pytest.mark.parametrize("act", ["cancel", "pause", "guide"])
async def test_a_debate_that_waits_for_a_slot_is_steered_at_once(stage: Backstage, act: str) -> None:
    hold = stage.gateway.hold("round/1/propose/*")
    async with stage.replica(max_debates=1) as replica:
        running = await replica.create(SPEC)
        await wait_for_begun(stage, 1)
        waiting = await replica.create(SPEC)
        sequence = await replica.intervene(waiting, act, text="be brief")
        assert (await stage.events(waiting))[sequence - 1].kind == "intervened"
        if act == "guide":
            await until(lambda: _waits(stage, waiting), "it waits for a slot again")
        else:
            await stage.comes_to(waiting, "CANCELLED" if act == "cancel" else "PAUSED")
        assert {asked.debate for asked in stage.gateway.calls} == {running}
        hold.release()
        await stage.comes_to(running, "COMPLETED")
        if act == "guide":
            check_log(await stage.comes_to(waiting, "COMPLETED"))
            assert "be brief" in stage.gateway.asked("round/1/propose/ada").prompt


async def _waits(stage: Backstage, debate: str) -> bool:
    record = await stage.record(debate)
    return (record.open, record.owner, record.status, record.epoch) == (True, None, "PENDING", 1)


async def test_a_debate_that_rests_is_steered_though_there_is_no_slot_and_goes_on_when_there_is(
    stage: Backstage,
) -> None:
    hold = stage.gateway.hold("round/1/propose/*")
    async with stage.replica(max_debates=1) as replica:
        first, second = [await replica.create(SPEC) for _ in range(2)]
        for debate in (first, second):
            await replica.intervene(debate, "pause", stop_calls=True)
            await stage.comes_to(debate, "PAUSED")
        running = await replica.create(SPEC)
        await until(lambda: _runs(replica, running), "a third one runs")
        assert await replica.intervene(first, "resume")
        assert await replica.intervene(second, "cancel")
        await stage.comes_to(second, "CANCELLED")
        await until(lambda: _owns_one(replica), "the cancelled one is given up")
        hold.release()
        for debate in (running, first):
            check_log(await stage.comes_to(debate, "COMPLETED"))


async def _owns_one(replica: Replica) -> bool:
    return len(replica.runner._owned) == 1


async def _runs(replica: Replica, debate: str) -> bool:
    return f"default/{debate}" in replica.runner._owned


async def test_debates_that_wait_keep_what_they_ask_in_their_log_and_not_in_their_record(
    stage: Backstage,
) -> None:
    hold = stage.gateway.hold("round/1/propose/*")
    async with stage.replica(max_debates=1) as replica:
        await accept(replica, "default")
        waiting = await accept(replica, "default")
        assert (await stage.record(waiting)).opening == ""
        hold.release()
        await stage.comes_to(waiting, "COMPLETED")
