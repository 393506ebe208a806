"""Calls that are stopped, by a name or with their replica."""

import asyncio
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from parley.gateway.calls import registry
from parley.gateway.calls.store import CallState, call_key
from parley.gateway.calls.stream import CallFailed, RunningCall
from parley.gateway.failures import CALL_CANCELLED
from parley.v1.gateway_pb2 import CallId, GenerateCompleted
from tests.support.waiting import wait_until
from tests.unit.gateway.calls.replicas import (
    KEY,
    LEASE,
    SHORT_LEASE,
    Model,
    read_all,
    read_completed,
    replicas,
)


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_cancel_stops_the_call_wherever_it_runs(elsewhere: bool, tmp_path: Path) -> None:
    model = Model()
    async with replicas(tmp_path, 2, lease=SHORT_LEASE) as (one, two):
        waiting = [asyncio.create_task(read_completed(each.ask(model))) for each in (one, two)]
        await wait_until(lambda: model.asked == 1)
        # The other one waits for it too; the document is all that tells.
        while (seen := await one.store.look(KEY)) is None or not seen.wanted:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        owner, other = (one, two) if len(one.calls._runs._owned) else (two, one)
        stopped = await (other if elsewhere else owner).calls.cancel(KEY)
        assert stopped.was_running
        assert stopped.HasField("usage"), "who runs it tells what it had used, wherever it was stopped"
        assert (stopped.usage.requests, stopped.usage.input_tokens) == (1, 30)
        await wait_until(lambda: model.stopped == 1)
        for each in waiting:
            with pytest.raises(CallFailed) as caught:
                await each
            assert caught.value.failure.kind is CALL_CANCELLED
        again = await one.calls.cancel(KEY)
        assert (again.was_running, again.run, again.usage) == (False, stopped.run, stopped.usage)
        model.may_answer.set()
        assert (await read_completed(two.ask(model))).text == "yes"
        kept = await one.calls.cancel(KEY)
        assert (kept.was_running, kept.answered, kept.usage.requests) == (False, True, 1)
        assert kept.run != again.run


async def test_an_answer_that_comes_after_a_cancel_elsewhere_is_not_handed_out_and_the_call_not_made_again(
    tmp_path: Path,
) -> None:
    model = Model()
    async with replicas(tmp_path, 2) as (one, two):
        one.keeping.cancel()  # it hears of the cancel by what is stored alone
        asked = asyncio.create_task(read_completed(one.ask(model)))
        await wait_until(lambda: model.asked == 1)
        cancelling = asyncio.create_task(two.calls.cancel(KEY))
        while (seen := await two.store.look(KEY)) is None or seen.state is CallState.RUNNING:  # noqa: ASYNC110
            await asyncio.sleep(0.005)
        model.may_answer.set()
        with pytest.raises(CallFailed) as caught:
            await asked
        assert caught.value.failure.kind is CALL_CANCELLED
        assert (await cancelling).was_running
        assert (await two.calls.cancel(KEY)).usage.requests == 1
        assert model.asked == 1


async def test_a_call_cancelled_before_its_first_step_tells_its_listeners(tmp_path: Path) -> None:
    async def work(_: RunningCall) -> GenerateCompleted:
        raise AssertionError("never begins")

    async with replicas(tmp_path) as (one,):
        listening = asyncio.create_task(read_all(one.ask(work)))
        call = None
        while call is None:
            await asyncio.sleep(0)
            call = one.calls.find(KEY)
        await one.calls.cancel(KEY)
        with pytest.raises(CallFailed, match="cancelled"):
            await listening
        assert not (await one.calls.cancel(KEY)).was_running


async def test_closing_lets_running_calls_finish_and_gives_up_the_others_to_whoever_wants_them(
    tmp_path: Path,
) -> None:
    quick, slow = Model(), Model()
    other = call_key(CallId(tenant="t", debate_id="deb-1", step="s", step_attempt=2))
    async with replicas(tmp_path, 2) as (one, two):
        for model, key in ((quick, KEY), (slow, other)):
            async with aclosing(one.ask(model, key)) as events:  # type: ignore[type-var]
                await anext(events)
        asyncio.get_running_loop().call_later(0.1, quick.may_answer.set)
        await one.calls.close(2.0)
        assert (await read_completed(two.ask(quick))).stored
        slow.may_answer.set()
        async with asyncio.timeout(LEASE / 2):  # nobody waits for a lease
            assert (await read_completed(two.ask(slow, other))).text == "yes"
    assert (quick.asked, slow.asked, slow.stopped) == (1, 2, 1)


async def test_closing_waits_for_no_store_that_is_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(registry, "_RELEASE_SECONDS", 0.05)
    is_back = asyncio.Event()
    async with replicas(tmp_path) as (one,):
        writes = one.store.end

        async def end(*given: Any) -> bool:
            await is_back.wait()
            return await writes(*given)

        monkeypatch.setattr(one.store, "end", end)
        async with aclosing(one.ask(Model())) as events:  # type: ignore[type-var]
            await anext(events)
        async with asyncio.timeout(20):
            await one.calls.close(0)
        assert one.calls.find(KEY) is not None, "it could not be given up"
        is_back.set()
