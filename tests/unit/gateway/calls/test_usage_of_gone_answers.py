"""What an answer used is counted once, though nobody had the answer before it was gone."""

import asyncio
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from parley.gateway.calls import registry
from parley.gateway.calls.registry import CallRegistry
from parley.gateway.calls.stream import CallFailed
from tests.support.manual_clock import ManualClock
from tests.support.waiting import wait_until
from tests.unit.gateway.calls.replicas import KEY, LEASE, Model, create_quick_model, read_completed, replicas


async def test_an_answer_is_kept_for_a_day(tmp_path: Path) -> None:
    clock, model = ManualClock(), Model()
    model.may_answer.set()
    async with replicas(tmp_path, clock=clock) as (one,):
        await read_completed(one.ask(model))
        clock.advance(timedelta(hours=23).total_seconds())
        await one.store.sweep()
        assert (await read_completed(one.ask(model))).stored
        clock.jump(timedelta(days=30))
        assert not await one.store.sweep()
        clock.jump(timedelta(days=-30))
        assert not await one.store.sweep()
        assert (await read_completed(one.ask(model))).stored
        clock.advance(timedelta(hours=2).total_seconds())
        assert await one.store.sweep() > 0
        assert not (await read_completed(one.ask(model))).stored
    assert model.asked == 2


@pytest.mark.parametrize("is_alone", [False, True])
async def test_what_an_answer_used_that_nobody_had_for_a_day_counts_if_the_call_is_made_again(
    tmp_path: Path, is_alone: bool
) -> None:
    clock, model = ManualClock(), Model()
    model.may_answer.set()
    async with replicas(tmp_path, clock=clock) as (one,):
        one.calls = CallRegistry(one.store, LEASE, alone=is_alone)
        for times in (1, 2):
            assert (await read_completed(one.ask(model))).usage.requests == times
            clock.advance(timedelta(days=2).total_seconds())
            await one.store.sweep()
            told = await one.calls.cancel(KEY)
            assert (told.was_running, told.answered, told.usage.requests) == (False, True, times)
        clock.advance(timedelta(days=31).total_seconds())
        await one.store.sweep()
        assert not (await one.calls.cancel(KEY)).HasField("usage")
        assert (await read_completed(one.ask(model))).usage.requests == 1


async def test_what_an_answer_used_that_is_gone_counts_once_where_the_replica_that_made_the_call_again_is_killed(
    tmp_path: Path,
) -> None:
    clock, model, again = ManualClock(), Model(), Model()
    model.may_answer.set()
    async with replicas(tmp_path, 2, clock=clock) as (dead, later):
        await read_completed(dead.ask(model))
        clock.advance(timedelta(days=2).total_seconds())
        await dead.store.sweep()
        lost = asyncio.create_task(read_completed(dead.ask(again)))
        await wait_until(lambda: again.asked == 1)
        await dead.die()
        later.calls = CallRegistry(later.store, LEASE, alone=True)
        assert (await read_completed(later.ask(model))).usage.requests == 2
        lost.cancel()


async def test_what_an_answer_used_that_is_gone_counts_where_the_call_is_stopped_whose_replica_was_killed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_STOP_LOOKS", 1)
    clock, again = ManualClock(), Model()
    async with replicas(tmp_path, 2, clock=clock) as (dead, later):
        await read_completed(dead.ask(create_quick_model()))
        clock.advance(timedelta(days=2).total_seconds())
        await dead.store.sweep()
        lost = asyncio.create_task(read_completed(dead.ask(again)))
        await wait_until(lambda: again.asked == 1)
        await dead.die()
        told = await later.calls.cancel(KEY)
        assert (told.was_running, told.usage.requests) == (True, 1)
        lost.cancel()


async def test_what_an_answer_used_that_is_gone_counts_where_the_call_is_stopped_as_it_begins_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    clock, claimed, goes_on = ManualClock(), asyncio.Event(), asyncio.Event()
    async with replicas(tmp_path, clock=clock) as (one,):
        await read_completed(one.ask(create_quick_model()))
        clock.advance(timedelta(days=2).total_seconds())
        await one.store.sweep()
        claim = one.store.claim

        async def claim_slowly(*args: Any) -> bool:
            if is_claimed := await claim(*args):
                claimed.set()
                await goes_on.wait()
            return is_claimed

        monkeypatch.setattr(one.store, "claim", claim_slowly)
        asking = asyncio.create_task(read_completed(one.ask(Model())))
        await claimed.wait()
        stopping = asyncio.create_task(one.calls.cancel(KEY))
        await asyncio.sleep(0)
        goes_on.set()
        assert (await stopping).usage.requests == 1
        with pytest.raises(CallFailed):
            await asking
