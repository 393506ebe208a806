"""Wishes that are left in the inbox: they are taken up or ended, and keep no others waiting."""

import asyncio

import pytest

from parley.orchestrator.events import Intervened
from parley.orchestrator.inbox import Wish
from parley.orchestrator.rows import row_key
from tests.support.orchestration import TENANT, Backstage, Replica, make_spec, until


async def left(replica: Replica, debate: str, count: int) -> None:
    """Leave wishes in the inbox, as callers do that are gone right after."""
    key = row_key(TENANT, debate)
    async with asyncio.TaskGroup() as tasks:
        for number in range(count):
            wish = Intervened(f"left-{number}", "guide", text="be brief")
            tasks.create_task(replica.shop.inbox.put(Wish(key, f"2020/{number:06}", wish)))


async def test_a_wish_whose_caller_is_gone_ends_with_its_debate(stage: Backstage) -> None:
    async with stage.replica() as replica:
        debate = await replica.create(make_spec(2, 1))
        await stage.comes_to(debate, "COMPLETED")
        await left(replica, debate, 1)
        wish = await until(lambda: _ended(replica, debate, "left-0"), "it is ended")
    assert wish.sequence == 0
    assert "intervened" not in await stage.kinds(debate)


async def _ended(replica: Replica, debate: str, request_id: str) -> Wish | None:
    wish = await replica.shop.inbox.get(f"{row_key(TENANT, debate)}/{request_id}")
    return wish if wish is not None and wish.state == "ended" else None


async def test_a_wish_of_a_debate_that_rests_is_taken_up_though_its_caller_went_before_asking_for_an_owner(
    stage: Backstage,
) -> None:
    stage.gateway.hold("round/1/propose/*")
    async with stage.replica() as replica:
        debate = await replica.create(make_spec(2, 1))
        await replica.wish(debate, "pause", stop_calls=True)
        await stage.comes_to(debate, "PAUSED")
        await left(replica, debate, 1)
        await stage.has(debate, "intervened", 2)


async def test_wishes_that_nobody_takes_up_do_not_keep_others_waiting(
    stage: Backstage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("parley.orchestrator.inbox._AT_ONCE", 10)
    stage.gateway.hold("round/1/propose/*")
    async with stage.replica() as replica:
        ended, running = [await replica.create(make_spec(2, 1)) for _ in range(2)]
        await replica.wish(ended, "cancel")
        await stage.comes_to(ended, "CANCELLED")
        await left(replica, ended, 25)
        await replica.wish(running, "cancel")
        await stage.comes_to(running, "CANCELLED")
        await until(lambda: _ended(replica, ended, "left-24"), "those of the ended one are ended")
