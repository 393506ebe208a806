"""Calls of a replica that is alone with its store: written once, or not at all if their caller records the answer."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from parley.gateway.calls import runs
from parley.gateway.calls import store as store_module
from parley.gateway.calls.registry import CallRegistry
from parley.gateway.calls.store import CallState, CallStore
from parley.gateway.calls.stream import CallFailed
from parley.runtime.errors import ParleyError
from parley.storage.ports import StoreUnavailableError
from tests.support.commits import count_commits
from tests.support.manual_clock import ManualClock
from tests.support.waiting import wait_until
from tests.unit.gateway.calls.replicas import (
    KEY,
    LEASE,
    Model,
    Replica,
    create_quick_model,
    read_completed,
    replicas,
)


@asynccontextmanager
async def run_alone(store: CallStore) -> AsyncIterator[Replica]:
    """A process that uses the store alone."""
    alone = Replica(store, CallRegistry(store, LEASE, alone=True))
    try:
        yield alone
    finally:
        alone.keeping.cancel()
        await alone.calls.close(LEASE)


@pytest.fixture
async def alone(tmp_path: Path) -> AsyncIterator[Replica]:
    async with replicas(tmp_path) as (one,), run_alone(one.store) as alone:
        one.keeping.cancel()
        yield alone


async def find_state(alone: Replica) -> CallState:
    """Return what is stored of the call."""
    found = await alone.store.look(KEY)
    assert found is not None
    return found.state


async def test_a_replica_that_is_alone_takes_over_at_once(tmp_path: Path) -> None:
    model = Model()
    async with replicas(tmp_path, 2) as (dead, later):
        lost = asyncio.create_task(read_completed(dead.ask(model)))
        await wait_until(lambda: model.asked == 1)
        await dead.die()
        model.may_answer.set()
        async with asyncio.timeout(LEASE / 2):
            alone = Replica(later.store, CallRegistry(later.store, LEASE, alone=True))
            assert (await read_completed(alone.ask(model))).text == "yes"
        alone.keeping.cancel()
        lost.cancel()


async def test_alone_a_call_is_written_once_with_its_answer_and_not_made_again(
    alone: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model()
    writes = count_commits(monkeypatch)
    asked = asyncio.create_task(read_completed(alone.ask(model)))
    await wait_until(lambda: model.asked == 1)
    assert not writes
    model.may_answer.set()
    assert (await asked).text == "yes"
    assert writes == [1]
    async with run_alone(alone.store) as later:
        assert (await read_completed(later.ask(model))).stored
    assert model.asked == 1


async def test_alone_no_new_call_is_looked_for_in_the_store_and_every_stored_one_is_found(
    alone: Replica, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model, looked = Model(), list[str]()
    model.may_answer.set()
    look = CallStore.look

    async def note(store: CallStore, key: str) -> object:
        looked.append(key)
        return await look(store, key)

    monkeypatch.setattr(CallStore, "look", note)
    assert not (await read_completed(alone.ask(model, "first"))).stored
    assert not (await read_completed(alone.ask(model, "second"))).stored
    assert looked == []
    async with replicas(tmp_path) as (one,), run_alone(one.store) as later:
        one.keeping.cancel()
        assert (await read_completed(later.ask(model, "first"))).stored
        assert not (await read_completed(later.ask(model, "third"))).stored
        assert set(looked) == {"first"}
        monkeypatch.setattr(store_module, "_MAX_LISTED", 1)
        assert (await read_completed(later.ask(model, "third"))).stored
    assert model.asked == 3


async def test_alone_who_records_an_answer_gets_it_before_it_is_stored_and_all_others_after(
    alone: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model()
    end, may_store = alone.store.end, asyncio.Event()

    async def end_late(*given: Any) -> bool:
        await may_store.wait()
        return await end(*given)

    monkeypatch.setattr(alone.store, "end", end_late)
    recording = asyncio.create_task(read_completed(alone.ask(model, records=True)))
    other = asyncio.create_task(read_completed(alone.ask(model)))
    await wait_until(lambda: model.asked == 1)
    model.may_answer.set()
    assert (await recording).text == "yes"
    assert (await read_completed(alone.ask(model, records=True))).text == "yes", "nor is it asked for again"
    assert not other.done()
    may_store.set()
    assert (await other).text == "yes"
    assert model.asked == 1


async def test_alone_an_answer_that_its_caller_records_is_not_stored(
    alone: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = create_quick_model()
    commits = count_commits(monkeypatch)
    assert (await read_completed(alone.ask(model, records=True))).held
    await alone.calls.forget([KEY])
    await wait_until(lambda: alone.calls.find(KEY) is None)
    assert commits == []
    assert await alone.store.look(KEY) is None


async def test_alone_no_digest_is_made_of_what_a_caller_asks_that_records_the_answer(alone: Replica) -> None:
    made: list[str] = []

    def digest() -> str:
        made.append("d")
        return "d"

    model = create_quick_model()
    await read_completed(alone.calls.listen(KEY, digest, model, records=True))
    await alone.calls.forget([KEY])
    await wait_until(lambda: alone.calls.find(KEY) is None)
    assert not made


async def test_alone_an_answer_that_its_caller_does_not_record_is_stored_soon(
    alone: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "_HOLD_SECONDS", 0.01)
    model = create_quick_model()
    await read_completed(alone.ask(model, records=True))
    await wait_until(lambda: alone.calls.find(KEY) is None)
    assert (await read_completed(alone.ask(model))).stored
    await alone.calls.forget([KEY])
    assert await find_state(alone) is CallState.FORGOTTEN, "late, but not for ever"


async def test_alone_an_answer_that_is_being_stored_while_it_is_forgotten_is_forgotten_too(
    alone: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "_HOLD_SECONDS", 0.0)
    model = create_quick_model()
    end, is_storing, may_store = alone.store.end, asyncio.Event(), asyncio.Event()

    async def end_late(*given: Any) -> bool:
        is_storing.set()
        await may_store.wait()
        return await end(*given)

    monkeypatch.setattr(alone.store, "end", end_late)
    await read_completed(alone.ask(model, records=True))
    await is_storing.wait()
    forgetting = asyncio.create_task(alone.calls.forget([KEY]))
    await asyncio.sleep(0)
    may_store.set()
    await forgetting
    await wait_until(lambda: alone.calls.find(KEY) is None)
    assert await find_state(alone) is CallState.FORGOTTEN


async def test_alone_an_answer_that_could_not_be_stored_before_it_is_forgotten_is_not_stored_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "_HOLD_SECONDS", 0.0)
    model = create_quick_model()
    async with replicas(tmp_path) as (one,):
        calls = CallRegistry(one.store, 0.0, alone=True)
        end = one.store.end

        async def fail(*_: object) -> bool:
            raise StoreUnavailableError("a full disk")

        monkeypatch.setattr(one.store, "end", fail)
        assert (await read_completed(calls.listen(KEY, lambda: "d", model, records=True))).held
        await wait_until(lambda: calls.find(KEY) is None)
        with pytest.raises(ParleyError) as caught:
            await calls.forget([KEY])
        assert caught.value.reason == "STORE_UNAVAILABLE"
        monkeypatch.setattr(one.store, "end", end)
        await calls.forget([KEY])
        with pytest.raises(ParleyError) as caught:
            await read_completed(calls.listen(KEY, lambda: "d", model))
    assert caught.value.reason == "ANSWER_FORGOTTEN"


async def test_alone_an_answer_that_is_held_is_stored_at_once_if_anyone_else_asks_for_it(
    alone: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "_HOLD_SECONDS", LEASE)
    model = create_quick_model()
    assert (await read_completed(alone.ask(model, records=True))).held
    async with asyncio.timeout(LEASE / 2):
        assert not (await read_completed(alone.ask(model))).held
    assert await find_state(alone) is CallState.ANSWERED


async def test_alone_an_answer_is_stored_before_its_call_is_stopped(
    alone: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "_HOLD_SECONDS", LEASE)
    model = create_quick_model()
    await read_completed(alone.ask(model, records=True))
    stopped = await alone.calls.cancel(KEY)
    assert not stopped.was_running
    assert (stopped.answered, stopped.usage.requests) == (True, 1)
    assert (await read_completed(alone.ask(model))).stored
    assert model.asked == 1


async def test_alone_an_answer_that_is_held_as_the_gateway_stops_is_stored_at_once(
    alone: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "_HOLD_SECONDS", 60.0)
    model = create_quick_model()
    assert (await read_completed(alone.ask(model, records=True))).held
    async with asyncio.timeout(10):
        await alone.calls.close(60.0)
    async with run_alone(alone.store) as later:
        assert (await read_completed(later.ask(model))).stored
    assert model.asked == 1


@pytest.mark.parametrize(
    ("listeners", "may_wait"), [([True, True], True), ([True, False], False), ([False], False)]
)
async def test_alone_an_answer_waits_only_if_all_who_listen_record_it_themselves(
    alone: Replica, monkeypatch: pytest.MonkeyPatch, listeners: list[bool], may_wait: bool
) -> None:
    monkeypatch.setattr(runs, "_HOLD_SECONDS", LEASE)
    model = Model()
    asked = [asyncio.create_task(read_completed(alone.ask(model, records=each))) for each in listeners]
    await wait_until(lambda: model.asked == 1)
    await wait_until(lambda: (call := alone.calls.find(KEY)) is not None and call.listeners == len(listeners))
    model.may_answer.set()
    async with asyncio.timeout(LEASE / 2):
        await asyncio.gather(*asked)
    if may_wait:
        await alone.calls.forget([KEY])
    await wait_until(lambda: alone.calls.find(KEY) is None)
    assert (await alone.store.look(KEY) is None) == may_wait


async def test_alone_a_call_that_was_given_up_leaves_nothing_and_one_that_failed_is_made_anew(
    alone: Replica,
) -> None:
    model = Model()
    async with run_alone(alone.store) as stopping:
        asked = asyncio.create_task(read_completed(stopping.ask(model)))
        await wait_until(lambda: model.asked == 1)
        await stopping.calls.close(0)
        with pytest.raises(CallFailed):
            await asked
    assert await alone.store.look(KEY) is None
    failing = asyncio.create_task(read_completed(alone.ask(model)))
    await wait_until(lambda: model.asked == 2)
    assert (await alone.calls.cancel(KEY)).usage.requests == 1
    with pytest.raises(CallFailed):
        await failing
    model.may_answer.set()
    assert not (await read_completed(alone.ask(model))).stored
    assert (await read_completed(alone.ask(model))).stored
    assert model.asked == 3


async def test_alone_no_call_begins_while_outcomes_cannot_be_written(
    alone: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "_HOLD_SECONDS", 0.01)
    first, later = Model(), Model()
    first.may_answer.set()
    later.may_answer.set()
    end, is_full, refused = alone.store.end, True, 0

    async def fail_as_full(*given: Any) -> bool:
        nonlocal refused
        if is_full:
            refused += 1
            raise StoreUnavailableError("the disk is full")
        return await end(*given)

    monkeypatch.setattr(alone.store, "end", fail_as_full)
    assert (await read_completed(alone.ask(first, records=True))).text == "yes"
    await wait_until(lambda: refused > 0)
    waiting = asyncio.create_task(read_completed(alone.ask(later, "another")))
    tried = refused
    await wait_until(lambda: refused > tried)
    assert later.asked == 0
    is_full = False
    assert (await waiting).text == "yes"


async def test_alone_an_answer_that_is_still_to_be_written_is_not_paid_for_again(
    alone: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "_HOLD_SECONDS", 0.01)
    alone.keeping.cancel()
    model, given_up = Model(), Model()
    model.may_answer.set()
    end = alone.store.end

    async def fail_as_full(*given: Any) -> bool:
        if given[2] is CallState.RELEASED:
            return await end(*given)
        raise StoreUnavailableError("the disk is full")

    alone = Replica(alone.store, CallRegistry(alone.store, 0.01, alone=True))
    alone.keeping.cancel()
    stopped = asyncio.create_task(read_completed(alone.ask(given_up, "another")))
    await wait_until(lambda: given_up.asked == 1)
    with monkeypatch.context() as patch:
        patch.setattr(alone.store, "end", fail_as_full)
        assert (await read_completed(alone.ask(model, records=True))).text == "yes"
        await wait_until(lambda: alone.calls.find(KEY) is None)
        await alone.calls.find("another").stop()  # type: ignore[union-attr]
        with pytest.raises(CallFailed):
            await stopped
    assert (await read_completed(alone.ask(model))).stored
    assert model.asked == 1


async def test_alone_a_call_whose_earlier_failure_is_swept_meanwhile_is_made_once(tmp_path: Path) -> None:
    clock, model = ManualClock(), Model()
    async with replicas(tmp_path, clock=clock) as (one,), run_alone(one.store) as alone:
        one.keeping.cancel()
        failing = asyncio.create_task(read_completed(alone.ask(model)))
        await wait_until(lambda: model.asked == 1)
        await alone.calls.cancel(KEY)
        with pytest.raises(CallFailed):
            await failing
        asked = asyncio.create_task(read_completed(alone.ask(model)))
        await wait_until(lambda: model.asked == 2)
        clock.advance(timedelta(days=2).total_seconds())
        assert await alone.store.sweep() == 1
        model.may_answer.set()
        assert (await asked).text == "yes"
        assert (await read_completed(alone.ask(model))).stored
    assert model.asked == 2
