"""Calls by name over one store: told from the answers, shared by replicas, kept, taken over and stopped."""

import asyncio
import gc
from collections.abc import AsyncIterator, Callable
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from parley.gateway.calls import registry, runs
from parley.gateway.calls import store as store_module
from parley.gateway.calls.registry import CallRegistry
from parley.gateway.calls.store import CallState, CallStore, StoredCall, call_key
from parley.gateway.calls.stream import CallFailed, RunningCall
from parley.gateway.failures import BAD_REQUEST, CALL_CANCELLED, Failure
from parley.gateway.routing.route import Route
from parley.runtime.errors import ParleyError
from parley.storage.opening import open_store
from parley.storage.ports import (
    KeyMissingError,
    StorageError,
    StoreDamagedError,
    StoreUnavailableError,
)
from parley.v1.gateway_pb2 import CallId, GenerateCompleted, GenerateResponse
from tests.support.commits import count_commits
from tests.support.manual_clock import ManualClock
from tests.unit.gateway.calls.events import attempt, delta

KEY = call_key(CallId(tenant="t", debate_id="deb-1", step="round/1/propose/ada", step_attempt=1))
LEASE = 60.0
"""Longer than any test: what is done within it was done at once."""
SHORT_LEASE = 1.0
"""For tests that see one end. A busy machine must let who lives say so within it."""


def answer(text: str) -> GenerateCompleted:
    return GenerateCompleted(text=text, route="p/m", model="m")


async def all_of(events: AsyncIterator[GenerateResponse]) -> list[GenerateResponse]:
    return [event async for event in events]


async def completed(events: AsyncIterator[GenerateResponse]) -> GenerateCompleted:
    last = (await all_of(events))[-1]
    assert last.HasField("completed")
    return last.completed


async def until(condition: Callable[[], bool], within: float = 30.0) -> None:
    async with asyncio.timeout(within):
        while not condition():  # noqa: ASYNC110 (the store tells nobody)
            await asyncio.sleep(0.005)


@dataclass
class Model:
    """Answers when it is let, and counts what it was asked."""

    asked: int = 0
    stopped: int = 0
    may_answer: asyncio.Event = field(default_factory=asyncio.Event)
    text: str = "yes"

    async def __call__(self, call: RunningCall) -> GenerateCompleted:
        self.asked += 1
        call.start_route_attempt("p/m")
        call.add_text(self.text[:1])
        used = call.meter.of(Route("p/m", "p", "m"))
        used.requests, used.input_tokens = used.requests + 1, 30
        try:
            await self.may_answer.wait()
        except asyncio.CancelledError:
            self.stopped += 1
            raise
        return answer(self.text)


class Replica:
    """One gateway's calls; `die` is what kill -9 does to them."""

    def __init__(self, store: CallStore, calls: CallRegistry) -> None:
        self.store, self.calls = store, calls
        self.keeping = asyncio.create_task(calls.keep())

    def ask(
        self, model: Any, key: str | None = KEY, digest: str = "d", *, records: bool = False
    ) -> AsyncIterator[GenerateResponse]:
        return self.calls.listen(key, digest, model, records=records)

    async def die(self) -> None:
        self.keeping.cancel()

        async def gone(*_: object) -> bool:
            raise StoreUnavailableError("dead")

        self.store.end = gone  # type: ignore[method-assign, assignment]


@asynccontextmanager
async def replicas(
    folder: Path, count: int = 1, clock: ManualClock | None = None, lease: float = LEASE
) -> AsyncIterator[list[Replica]]:
    async with AsyncExitStack() as stack:
        made = []
        for _ in range(count):
            opened = await stack.enter_async_context(open_store(f"sqlite:///{folder}", "gateway"))
            store = CallStore(opened.documents, clock or ManualClock())
            await store.prepare()
            made.append(Replica(store, CallRegistry(store, lease)))
        try:
            yield made
        finally:
            for each in made:
                each.keeping.cancel()
                await each.calls.close(0)


async def test_text_that_came_while_the_listener_was_away_comes_as_one_piece(tmp_path: Path) -> None:
    async def work(call: RunningCall) -> GenerateCompleted:
        call.start_route_attempt("p/m")
        for word in ("a ", "b ", "c"):
            call.add_text(word)
        return answer("a b c")

    async with replicas(tmp_path) as (one,):
        events = await all_of(one.ask(work, key=None))
    assert events[:2] == [attempt(1, "p/m"), delta(1, 0, "a b c")]
    assert events[2].HasField("completed")


async def test_text_of_an_attempt_that_is_over_is_not_sent_to_those_who_come_late(tmp_path: Path) -> None:
    async def work(call: RunningCall) -> GenerateCompleted:
        call.start_route_attempt("p/m")
        call.add_text("old")
        call.start_route_attempt("q/m")
        call.add_text("new")
        return answer("new")

    async with replicas(tmp_path) as (one,):
        events = await all_of(one.ask(work, key=None))
    assert events[:3] == [attempt(1, "p/m"), attempt(2, "q/m"), delta(2, 0, "new")]


async def test_a_call_without_a_name_is_stopped_when_its_listener_goes(tmp_path: Path) -> None:
    model = Model()
    async with replicas(tmp_path) as (one,):
        async with aclosing(one.ask(model, key=None)) as events:  # type: ignore[type-var]
            assert await anext(events) == attempt(1, "p/m")
        assert model.stopped == 1


async def test_an_answer_is_stored_before_it_is_heard_and_had_again_without_asking(tmp_path: Path) -> None:
    model = Model()
    model.may_answer.set()
    async with replicas(tmp_path, 2) as (one, two):
        first = await completed(one.ask(model))
        assert not first.stored
        for each in (one, two):
            again = await completed(each.ask(model))
            assert again.stored
            again.stored = False
            assert again == first
    async with replicas(tmp_path) as (later,):
        assert (await completed(later.ask(model))).text == "yes"
    assert model.asked == 1


async def test_a_new_call_is_claimed_without_a_look_for_it_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model()
    model.may_answer.set()
    async with replicas(tmp_path) as (one,):
        look, looks = one.store.look, 0

        async def counted(key: str) -> Any:
            nonlocal looks
            looks += 1
            return await look(key)

        monkeypatch.setattr(one.store, "look", counted)
        assert not (await completed(one.ask(model))).stored
        assert looks == 0
        assert (await completed(one.ask(model))).stored
        assert (looks, model.asked) == (1, 1)


async def test_a_second_caller_at_the_same_replica_joins_the_stream(tmp_path: Path) -> None:
    model = Model()
    async with replicas(tmp_path) as (one,):
        first = asyncio.create_task(all_of(one.ask(model)))
        await until(lambda: model.asked == 1)
        second = asyncio.create_task(all_of(one.ask(model)))
        await until(lambda: (running := one.calls.find(KEY)) is not None and running.listeners == 2)
        model.may_answer.set()
        assert (await first)[:2] == (await second)[:2] == [attempt(1, "p/m"), delta(1, 0, "y")]
    assert model.asked == 1


async def test_a_caller_at_another_replica_waits_for_the_owner_however_long_it_takes(tmp_path: Path) -> None:
    model = Model()
    async with replicas(tmp_path, 2, lease=SHORT_LEASE) as (one, two):
        first = asyncio.create_task(completed(one.ask(model)))
        await until(lambda: model.asked == 1)
        second = asyncio.create_task(completed(two.ask(model)))
        done, _ = await asyncio.wait({first, second}, timeout=2 * SHORT_LEASE)
        assert not done
        model.may_answer.set()
        assert (await first).text == (await second).text
    assert model.asked == 1


async def test_the_call_of_a_dead_replica_is_taken_over_when_its_lease_ends_by_exactly_one(
    tmp_path: Path,
) -> None:
    model = Model()
    async with replicas(tmp_path, 3, lease=SHORT_LEASE) as (dead, two, three):
        lost = asyncio.create_task(completed(dead.ask(model)))
        await until(lambda: model.asked == 1)
        await dead.die()
        others = [asyncio.create_task(completed(each.ask(model))) for each in (two, three)]
        await until(lambda: model.asked == 2)
        model.may_answer.set()
        assert [(await each).text for each in others] == ["yes", "yes"]
        assert model.asked == 2
        lost.cancel()


async def test_a_replica_that_is_alone_takes_over_at_once(tmp_path: Path) -> None:
    model = Model()
    async with replicas(tmp_path, 2) as (dead, later):
        lost = asyncio.create_task(completed(dead.ask(model)))
        await until(lambda: model.asked == 1)
        await dead.die()
        model.may_answer.set()
        async with asyncio.timeout(LEASE / 2):
            alone = Replica(later.store, CallRegistry(later.store, LEASE, alone=True))
            assert (await completed(alone.ask(model))).text == "yes"
        alone.keeping.cancel()
        lost.cancel()


@asynccontextmanager
async def alone_with(store: CallStore) -> AsyncIterator[Replica]:
    """A process that uses the store alone."""
    alone = Replica(store, CallRegistry(store, LEASE, alone=True))
    try:
        yield alone
    finally:
        alone.keeping.cancel()
        await alone.calls.close(LEASE)


@pytest.fixture
async def alone(tmp_path: Path) -> AsyncIterator[Replica]:
    async with replicas(tmp_path) as (one,), alone_with(one.store) as alone:
        one.keeping.cancel()
        yield alone


async def test_alone_a_call_is_written_once_with_its_answer_and_not_made_again(
    alone: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model()
    writes = count_commits(monkeypatch)
    asked = asyncio.create_task(completed(alone.ask(model)))
    await until(lambda: model.asked == 1)
    assert not writes
    model.may_answer.set()
    assert (await asked).text == "yes"
    assert writes == [1]
    async with alone_with(alone.store) as later:
        assert (await completed(later.ask(model))).stored
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
    assert not (await completed(alone.ask(model, "first"))).stored
    assert not (await completed(alone.ask(model, "second"))).stored
    assert looked == []
    async with replicas(tmp_path) as (one,), alone_with(one.store) as later:
        one.keeping.cancel()
        assert (await completed(later.ask(model, "first"))).stored
        assert not (await completed(later.ask(model, "third"))).stored
        assert set(looked) == {"first"}
        monkeypatch.setattr(store_module, "_MAX_LISTED", 1)
        assert (await completed(later.ask(model, "third"))).stored
    assert model.asked == 3


async def test_alone_who_records_an_answer_gets_it_before_it_is_stored_and_all_others_after(
    alone: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model()
    end, may_store = alone.store.end, asyncio.Event()

    async def late(*given: Any) -> bool:
        await may_store.wait()
        return await end(*given)

    monkeypatch.setattr(alone.store, "end", late)
    recording = asyncio.create_task(completed(alone.ask(model, records=True)))
    other = asyncio.create_task(completed(alone.ask(model)))
    await until(lambda: model.asked == 1)
    model.may_answer.set()
    assert (await recording).text == "yes"
    assert (await completed(alone.ask(model, records=True))).text == "yes", "nor is it asked for again"
    assert not other.done()
    may_store.set()
    assert (await other).text == "yes"
    assert model.asked == 1


async def test_alone_an_answer_that_its_caller_records_is_not_stored(
    alone: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model()
    model.may_answer.set()
    commits = count_commits(monkeypatch)
    assert (await completed(alone.ask(model, records=True))).held
    await alone.calls.forget([KEY])
    await until(lambda: alone.calls.find(KEY) is None)
    assert commits == []
    assert await alone.store.look(KEY) is None


async def test_alone_an_answer_that_its_caller_does_not_record_is_stored_soon(
    alone: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "_HOLD_SECONDS", 0.01)
    model = Model()
    model.may_answer.set()
    await completed(alone.ask(model, records=True))
    await until(lambda: alone.calls.find(KEY) is None)
    assert (await completed(alone.ask(model))).stored
    await alone.calls.forget([KEY])
    found = await alone.store.look(KEY)
    assert found is not None
    assert found.state is CallState.FORGOTTEN, "late, but not for ever"


async def test_alone_an_answer_that_is_being_stored_while_it_is_forgotten_is_forgotten_too(
    alone: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "_HOLD_SECONDS", 0.0)
    model = Model()
    model.may_answer.set()
    end, is_storing, may_store = alone.store.end, asyncio.Event(), asyncio.Event()

    async def late(*given: Any) -> bool:
        is_storing.set()
        await may_store.wait()
        return await end(*given)

    monkeypatch.setattr(alone.store, "end", late)
    await completed(alone.ask(model, records=True))
    await is_storing.wait()
    forgetting = asyncio.create_task(alone.calls.forget([KEY]))
    await asyncio.sleep(0)
    may_store.set()
    await forgetting
    await until(lambda: alone.calls.find(KEY) is None)
    found = await alone.store.look(KEY)
    assert found is not None
    assert found.state is CallState.FORGOTTEN


async def test_alone_an_answer_that_could_not_be_stored_before_it_is_forgotten_is_not_stored_later(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "_HOLD_SECONDS", 0.0)
    model = Model()
    model.may_answer.set()
    async with replicas(tmp_path) as (one,):
        calls = CallRegistry(one.store, 0.0, alone=True)
        end = one.store.end

        async def fail(*_: object) -> bool:
            raise StoreUnavailableError("a full disk")

        monkeypatch.setattr(one.store, "end", fail)
        assert (await completed(calls.listen(KEY, "d", model, records=True))).held
        await until(lambda: calls.find(KEY) is None)
        with pytest.raises(ParleyError) as caught:
            await calls.forget([KEY])
        assert caught.value.reason == "STORE_UNAVAILABLE"
        monkeypatch.setattr(one.store, "end", end)
        await calls.forget([KEY])
        with pytest.raises(ParleyError) as caught:
            await completed(calls.listen(KEY, "d", model))
    assert caught.value.reason == "ANSWER_FORGOTTEN"


async def test_alone_an_answer_that_is_held_is_stored_at_once_if_anyone_else_asks_for_it(
    alone: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "_HOLD_SECONDS", LEASE)
    model = Model()
    model.may_answer.set()
    assert (await completed(alone.ask(model, records=True))).held
    async with asyncio.timeout(LEASE / 2):
        assert not (await completed(alone.ask(model))).held
    found = await alone.store.look(KEY)
    assert found is not None
    assert found.state is CallState.ANSWERED


async def test_alone_an_answer_is_stored_before_its_call_is_stopped(
    alone: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "_HOLD_SECONDS", LEASE)
    model = Model()
    model.may_answer.set()
    await completed(alone.ask(model, records=True))
    stopped = await alone.calls.cancel(KEY)
    assert not stopped.was_running, "what the debate cost would not be known, though the answer says it"
    assert (await completed(alone.ask(model))).stored
    assert model.asked == 1


@pytest.mark.parametrize(
    ("listeners", "may_wait"), [([True, True], True), ([True, False], False), ([False], False)]
)
async def test_alone_an_answer_waits_only_if_all_who_listen_record_it_themselves(
    alone: Replica, monkeypatch: pytest.MonkeyPatch, listeners: list[bool], may_wait: bool
) -> None:
    monkeypatch.setattr(runs, "_HOLD_SECONDS", LEASE)
    model = Model()
    asked = [asyncio.create_task(completed(alone.ask(model, records=each))) for each in listeners]
    await until(lambda: model.asked == 1)
    await until(lambda: (call := alone.calls.find(KEY)) is not None and call.listeners == len(listeners))
    model.may_answer.set()
    async with asyncio.timeout(LEASE / 2):
        await asyncio.gather(*asked)
    if may_wait:
        await alone.calls.forget([KEY])
    await until(lambda: alone.calls.find(KEY) is None)
    assert (await alone.store.look(KEY) is None) == may_wait


async def test_a_forgotten_answer_is_gone_and_its_call_is_not_made_again(tmp_path: Path) -> None:
    model, clock = Model(text="a word that nobody says"), ManualClock()
    model.may_answer.set()
    async with replicas(tmp_path, 2, clock) as (one, two):
        await completed(one.ask(model))
        for _ in range(2):
            await two.calls.forget([KEY, "a call that nobody made"])
        found = await one.store.look(KEY)
        assert found is not None
        assert (found.state, found.outcome) == (CallState.FORGOTTEN, {})
        for replica in (one, two):
            with pytest.raises(ParleyError) as caught:
                await completed(replica.ask(model))
            assert caught.value.reason == "ANSWER_FORGOTTEN"
        assert not (await two.calls.cancel(KEY)).was_running
        assert model.asked == 1
        clock.advance(timedelta(days=1, seconds=1).total_seconds())
        await one.store.sweep()
        assert await one.store.look(KEY) is None


async def test_a_call_that_runs_or_has_failed_is_not_forgotten(tmp_path: Path) -> None:
    model = Model()
    async with replicas(tmp_path) as (one,):
        asked = asyncio.create_task(completed(one.ask(model)))
        await until(lambda: model.asked == 1)
        await one.calls.forget([KEY])
        await one.calls.cancel(KEY)
        with pytest.raises(CallFailed):
            await asked
        await one.calls.forget([KEY])
        model.may_answer.set()
        assert (await completed(one.ask(model))).text == "yes"


async def test_alone_a_call_that_was_given_up_leaves_nothing_and_one_that_failed_is_made_anew(
    alone: Replica,
) -> None:
    model = Model()
    async with alone_with(alone.store) as stopping:
        asked = asyncio.create_task(completed(stopping.ask(model)))
        await until(lambda: model.asked == 1)
        await stopping.calls.close(0)
        with pytest.raises(CallFailed):
            await asked
    assert await alone.store.look(KEY) is None
    failing = asyncio.create_task(completed(alone.ask(model)))
    await until(lambda: model.asked == 2)
    assert (await alone.calls.cancel(KEY)).usage.requests == 1
    with pytest.raises(CallFailed):
        await failing
    model.may_answer.set()
    assert not (await completed(alone.ask(model))).stored
    assert (await completed(alone.ask(model))).stored
    assert model.asked == 3


async def test_alone_no_call_begins_while_outcomes_cannot_be_written(
    alone: Replica, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "_HOLD_SECONDS", 0.01)
    first, later = Model(), Model()
    first.may_answer.set()
    later.may_answer.set()
    end, is_full, refused = alone.store.end, True, 0

    async def full(*given: Any) -> bool:
        nonlocal refused
        if is_full:
            refused += 1
            raise StoreUnavailableError("the disk is full")
        return await end(*given)

    monkeypatch.setattr(alone.store, "end", full)
    assert (await completed(alone.ask(first, records=True))).text == "yes"
    await until(lambda: refused > 0)
    waiting = asyncio.create_task(completed(alone.ask(later, "another")))
    tried = refused
    await until(lambda: refused > tried)
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

    async def full(*given: Any) -> bool:
        if given[2] is CallState.RELEASED:
            return await end(*given)
        raise StoreUnavailableError("the disk is full")

    alone = Replica(alone.store, CallRegistry(alone.store, 0.01, alone=True))
    alone.keeping.cancel()
    stopped = asyncio.create_task(completed(alone.ask(given_up, "another")))
    await until(lambda: given_up.asked == 1)
    with monkeypatch.context() as patch:
        patch.setattr(alone.store, "end", full)
        assert (await completed(alone.ask(model, records=True))).text == "yes"
        await until(lambda: alone.calls.find(KEY) is None)
        await alone.calls.find("another").stop()  # type: ignore[union-attr]
        with pytest.raises(CallFailed):
            await stopped
    assert (await completed(alone.ask(model))).stored
    assert model.asked == 1


async def test_alone_a_call_whose_earlier_failure_is_swept_meanwhile_is_made_once(tmp_path: Path) -> None:
    clock, model = ManualClock(), Model()
    async with replicas(tmp_path, clock=clock) as (one,), alone_with(one.store) as alone:
        one.keeping.cancel()
        failing = asyncio.create_task(completed(alone.ask(model)))
        await until(lambda: model.asked == 1)
        await alone.calls.cancel(KEY)
        with pytest.raises(CallFailed):
            await failing
        asked = asyncio.create_task(completed(alone.ask(model)))
        await until(lambda: model.asked == 2)
        clock.advance(timedelta(days=2).total_seconds())
        assert await alone.store.sweep() == 1
        model.may_answer.set()
        assert (await asked).text == "yes"
        assert (await completed(alone.ask(model))).stored
    assert model.asked == 2


async def test_an_owner_that_was_taken_over_hands_out_the_answer_that_is_stored(tmp_path: Path) -> None:
    slow, quick = Model(text="slow"), Model(text="quick")
    quick.may_answer.set()
    async with replicas(tmp_path, 2, lease=SHORT_LEASE) as (one, two):
        first = asyncio.create_task(completed(one.ask(slow)))
        await until(lambda: slow.asked == 1)
        one.keeping.cancel()  # it lives, and cannot say so
        assert (await completed(two.ask(quick))).text == "quick"
        slow.may_answer.set()
        assert (await first).text == "quick"


async def test_other_content_under_the_name_is_refused_running_or_answered(tmp_path: Path) -> None:
    model = Model()
    async with replicas(tmp_path, 2) as (one, two):
        first = asyncio.create_task(completed(one.ask(model)))
        await until(lambda: model.asked == 1)
        for each in (one, two):
            with pytest.raises(ParleyError, match="already used for a different request") as caught:
                await completed(each.ask(model, digest="other"))
            assert caught.value.reason == "CALL_ID_REUSED"
        model.may_answer.set()
        await first
        for each in (one, two):
            with pytest.raises(ParleyError, match="already used for a different request"):
                await completed(each.ask(model, digest="other"))


async def test_a_failure_is_told_to_all_who_waited_and_not_kept(tmp_path: Path) -> None:
    model = Model()
    gate = asyncio.Event()

    async def fails(call: RunningCall) -> GenerateCompleted:
        model.asked += 1
        await gate.wait()
        raise Failure(BAD_REQUEST, "no", status=400, retry_after=2.5, route="p/m")

    async with replicas(tmp_path, 2) as (one, two):
        first = asyncio.create_task(completed(one.ask(fails)))
        await until(lambda: model.asked == 1)
        second = asyncio.create_task(completed(two.ask(fails)))
        await asyncio.wait({second}, timeout=0.3)
        gate.set()
        for each in (first, second):
            with pytest.raises(CallFailed) as caught:
                await each
            said = caught.value.failure
            assert (said.kind, said.message, said.status, said.retry_after, said.route) == (
                BAD_REQUEST, "no", 400, 2.5, "p/m"
            )  # fmt: skip
        model.may_answer.set()
        assert (await completed(two.ask(model, digest="other"))).text == "yes"


async def test_a_call_goes_on_without_callers_of_its_own_while_another_replica_waits_for_it(
    tmp_path: Path,
) -> None:
    model = Model()
    async with replicas(tmp_path, 2, lease=SHORT_LEASE) as (owner, other):
        hung_up = asyncio.create_task(all_of(owner.ask(model)))
        await until(lambda: model.asked == 1)
        waiting = asyncio.create_task(completed(other.ask(model)))
        looks, look = 0, owner.store.look

        async def counted(key: str) -> StoredCall | None:
            nonlocal looks
            looks += 1
            return await look(key)

        owner.store.look = counted  # type: ignore[method-assign]
        hung_up.cancel()
        await until(lambda: looks == 2)  # each after two leases
        model.may_answer.set()
        assert (await waiting).text == "yes"
    assert (model.asked, model.stopped) == (1, 0)


async def test_a_call_outlives_its_callers_for_two_leases_and_is_then_stopped(tmp_path: Path) -> None:
    model = Model()
    async with replicas(tmp_path, lease=SHORT_LEASE) as (one,):
        loop = asyncio.get_running_loop()
        async with aclosing(one.ask(model)) as events:  # type: ignore[type-var]
            await anext(events)
        left = loop.time()
        await until(lambda: model.stopped == 1)
        assert loop.time() - left > 2 * SHORT_LEASE * 0.9
        model.may_answer.set()
        assert (await completed(one.ask(model))).text == "yes"


async def test_a_caller_whose_time_is_over_is_told_so_while_the_call_goes_on(tmp_path: Path) -> None:
    model = Model()
    async with replicas(tmp_path, 2) as (one, two):
        first = asyncio.create_task(completed(one.ask(model)))
        await until(lambda: model.asked == 1)
        for each in (one, two):
            ends = asyncio.get_running_loop().time() + 0.1
            with pytest.raises(CallFailed, match="within the time of this caller"):
                await completed(each.calls.listen(KEY, "d", model, ends))
        model.may_answer.set()
        assert (await first).text == "yes"
    assert model.asked == 1


async def test_a_caller_that_comes_back_finds_the_call_running_and_keeps_it(tmp_path: Path) -> None:
    model = Model()
    async with replicas(tmp_path, lease=SHORT_LEASE) as (one,):
        for _ in range(3):
            async with aclosing(one.ask(model)) as events:  # type: ignore[type-var]
                assert await anext(events) == attempt(1, "p/m")
                await asyncio.wait([asyncio.create_task(asyncio.sleep(1.2 * SHORT_LEASE))])
        model.may_answer.set()
        assert (await completed(one.ask(model))).text == "yes"
    assert model.asked == 1


@pytest.mark.parametrize("elsewhere", [False, True])
async def test_cancel_stops_the_call_wherever_it_runs(elsewhere: bool, tmp_path: Path) -> None:
    model = Model()
    async with replicas(tmp_path, 2, lease=SHORT_LEASE) as (one, two):
        waiting = [asyncio.create_task(completed(each.ask(model))) for each in (one, two)]
        await until(lambda: model.asked == 1)
        # The other one waits for it too; the document is all that tells.
        while (seen := await one.store.look(KEY)) is None or not seen.wanted:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        owner, other = (one, two) if len(one.calls._runs._owned) else (two, one)
        stopped = await (other if elsewhere else owner).calls.cancel(KEY)
        assert stopped.was_running
        assert stopped.HasField("usage"), "who runs it tells what it had used, wherever it was stopped"
        assert (stopped.usage.requests, stopped.usage.input_tokens) == (1, 30)
        await until(lambda: model.stopped == 1)
        for each in waiting:
            with pytest.raises(CallFailed) as caught:
                await each
            assert caught.value.failure.kind is CALL_CANCELLED
        again = await one.calls.cancel(KEY)
        assert (again.was_running, again.run, again.usage) == (False, stopped.run, stopped.usage)
        model.may_answer.set()
        assert (await completed(two.ask(model))).text == "yes"
        assert not (await one.calls.cancel(KEY)).HasField("usage"), (
            "the answer is kept, and tells its usage by itself"
        )


async def test_an_answer_that_comes_after_a_cancel_elsewhere_is_not_handed_out_and_the_call_not_made_again(
    tmp_path: Path,
) -> None:
    model = Model()
    async with replicas(tmp_path, 2) as (one, two):
        one.keeping.cancel()  # it hears of the cancel by what is stored alone
        asked = asyncio.create_task(completed(one.ask(model)))
        await until(lambda: model.asked == 1)
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
        listening = asyncio.create_task(all_of(one.ask(work)))
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
        assert (await completed(two.ask(quick))).stored
        slow.may_answer.set()
        async with asyncio.timeout(LEASE / 2):  # nobody waits for a lease
            assert (await completed(two.ask(slow, other))).text == "yes"
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


async def test_an_answer_is_kept_for_a_day(tmp_path: Path) -> None:
    clock, model = ManualClock(), Model()
    model.may_answer.set()
    async with replicas(tmp_path, clock=clock) as (one,):
        await completed(one.ask(model))
        clock.advance(timedelta(hours=23).total_seconds())
        await one.store.sweep()
        assert (await completed(one.ask(model))).stored
        clock.jump(timedelta(days=30))
        assert not await one.store.sweep()
        clock.jump(timedelta(days=-30))
        assert not await one.store.sweep()
        assert (await completed(one.ask(model))).stored
        clock.advance(timedelta(hours=2).total_seconds())
        assert await one.store.sweep() > 0
        assert not (await completed(one.ask(model))).stored
    assert model.asked == 2


async def test_an_answer_that_could_not_be_stored_is_not_heard_and_not_paid_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model()
    model.may_answer.set()
    async with replicas(tmp_path, lease=SHORT_LEASE) as (one,):
        writes, away = one.store.end, True

        async def end(*given: Any) -> bool:
            if away:
                raise StoreUnavailableError("away")
            return await writes(*given)

        monkeypatch.setattr(one.store, "end", end)
        with pytest.raises(ParleyError) as caught:
            await completed(one.ask(model))
        assert caught.value.reason == "STORE_UNAVAILABLE"
        away = False
        assert (await completed(one.ask(model))).text == "yes"
    assert model.asked == 1


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (KeyMissingError("the key"), "ENCRYPTION_KEY_MISSING"),
        (StoreDamagedError("changed"), "STORE_DAMAGED"),
    ],
)
async def test_a_stored_call_that_cannot_be_read_says_why(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: StorageError, reason: str
) -> None:
    async with replicas(tmp_path) as (one,):

        async def fail(*_: object) -> None:
            raise error

        monkeypatch.setattr(one.store, "claim", fail)
        monkeypatch.setattr(one.store, "look", fail)
        with pytest.raises(ParleyError) as asked:
            await completed(one.ask(Model()))
        with pytest.raises(ParleyError) as cancelled:
            await one.calls.cancel(KEY)
    assert (asked.value.reason, cancelled.value.reason) == (reason, reason)


async def test_two_that_write_an_unrecorded_answer_at_once_do_not_stop_the_keeping_of_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = Model()
    model.may_answer.set()
    async with replicas(tmp_path, lease=SHORT_LEASE) as (one,):
        writes, writing = one.store.end, 0
        mode, both = "away", asyncio.Event()

        async def end(*given: Any) -> bool:
            nonlocal writing
            if mode == "away":
                raise StoreUnavailableError("away")
            writing += 1
            if writing >= 2:
                both.set()
            async with asyncio.timeout(30):
                await both.wait()  # the one that keeps and the one that asks are here together
            return await writes(*given)

        monkeypatch.setattr(one.store, "end", end)
        with pytest.raises(ParleyError):
            await completed(one.ask(model))
        mode = "back"
        assert (await completed(one.ask(model))).text == "yes"
        await until(both.is_set)
        await asyncio.sleep(0)
        assert not one.keeping.done()
        assert (await completed(one.ask(model))).stored
    assert model.asked == 1


async def test_a_claim_that_was_interrupted_does_not_lock_the_call(tmp_path: Path) -> None:
    model = Model()
    model.may_answer.set()
    async with replicas(tmp_path, 2) as (one, two):
        for _ in range(20):
            asking = asyncio.create_task(completed(one.ask(model)))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            asking.cancel()
            await asyncio.wait({asking})
        async with asyncio.timeout(LEASE / 2):
            assert (await completed(two.ask(model))).text == "yes"


async def test_a_claim_that_fails_after_its_call_was_stopped_leaves_no_traceback_in_the_log(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    async with replicas(tmp_path) as (replica,):
        claiming, may_fail = asyncio.Event(), asyncio.Event()

        async def fail(*_: object) -> bool:
            claiming.set()
            await may_fail.wait()
            raise StoreUnavailableError("not primary")

        replica.store.claim = fail  # type: ignore[method-assign, assignment]
        asked = asyncio.create_task(all_of(replica.ask(Model())))
        await claiming.wait()
        stopping = asyncio.create_task(replica.calls.cancel(KEY))
        await until(lambda: replica.calls.find(KEY).stopping)  # type: ignore[union-attr]
        may_fail.set()
        await asyncio.wait({asked, stopping})
        assert isinstance(asked.exception(), CallFailed | ParleyError)
        gc.collect()  # a task whose error is never asked for says so when it is collected
    assert "never retrieved" not in caplog.text
