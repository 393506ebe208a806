"""Calls by name over one store: told from the answers, shared by replicas, kept and taken over."""

import asyncio
import gc
from contextlib import aclosing
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from parley.gateway.calls.store import CallState, StoredCall
from parley.gateway.calls.stream import CallFailed, RunningCall
from parley.gateway.failures import BAD_REQUEST, Failure
from parley.runtime.errors import ParleyError
from parley.storage.ports import (
    KeyMissingError,
    StorageError,
    StoreDamagedError,
    StoreUnavailableError,
)
from parley.v1.gateway_pb2 import GenerateCompleted
from tests.support.manual_clock import ManualClock
from tests.support.waiting import wait_until
from tests.unit.gateway.calls.events import attempt, delta
from tests.unit.gateway.calls.replicas import (
    KEY,
    LEASE,
    SHORT_LEASE,
    Model,
    answer,
    create_quick_model,
    read_all,
    read_completed,
    replicas,
)


async def test_text_that_came_while_the_listener_was_away_comes_as_one_piece(tmp_path: Path) -> None:
    async def work(call: RunningCall) -> GenerateCompleted:
        call.start_route_attempt("p/m")
        for word in ("a ", "b ", "c"):
            call.add_text(word)
        return answer("a b c")

    async with replicas(tmp_path) as (one,):
        events = await read_all(one.ask(work, key=None))
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
        events = await read_all(one.ask(work, key=None))
    assert events[:3] == [attempt(1, "p/m"), attempt(2, "q/m"), delta(2, 0, "new")]


async def test_a_call_without_a_name_is_stopped_when_its_listener_goes(tmp_path: Path) -> None:
    model = Model()
    async with replicas(tmp_path) as (one,):
        async with aclosing(one.ask(model, key=None)) as events:  # type: ignore[type-var]
            assert await anext(events) == attempt(1, "p/m")
        assert model.stopped == 1


async def test_an_answer_is_stored_before_it_is_heard_and_had_again_without_asking(tmp_path: Path) -> None:
    model = create_quick_model()
    async with replicas(tmp_path, 2) as (one, two):
        first = await read_completed(one.ask(model))
        assert not first.stored
        for each in (one, two):
            again = await read_completed(each.ask(model))
            assert again.stored
            again.stored = False
            assert again == first
    async with replicas(tmp_path) as (later,):
        assert (await read_completed(later.ask(model))).text == "yes"
    assert model.asked == 1


async def test_a_new_call_is_claimed_without_a_look_for_it_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = create_quick_model()
    async with replicas(tmp_path) as (one,):
        look, looks = one.store.look, 0

        async def look_and_count(key: str) -> Any:
            nonlocal looks
            looks += 1
            return await look(key)

        monkeypatch.setattr(one.store, "look", look_and_count)
        assert not (await read_completed(one.ask(model))).stored
        assert looks == 0
        assert (await read_completed(one.ask(model))).stored
        assert (looks, model.asked) == (1, 1)


async def test_a_second_caller_at_the_same_replica_joins_the_stream(tmp_path: Path) -> None:
    model = Model()
    async with replicas(tmp_path) as (one,):
        first = asyncio.create_task(read_all(one.ask(model)))
        await wait_until(lambda: model.asked == 1)
        second = asyncio.create_task(read_all(one.ask(model)))
        await wait_until(lambda: (running := one.calls.find(KEY)) is not None and running.listeners == 2)
        model.may_answer.set()
        assert (await first)[:2] == (await second)[:2] == [attempt(1, "p/m"), delta(1, 0, "y")]
    assert model.asked == 1


async def test_a_caller_at_another_replica_waits_for_the_owner_however_long_it_takes(tmp_path: Path) -> None:
    model = Model()
    async with replicas(tmp_path, 2, lease=SHORT_LEASE) as (one, two):
        first = asyncio.create_task(read_completed(one.ask(model)))
        await wait_until(lambda: model.asked == 1)
        second = asyncio.create_task(read_completed(two.ask(model)))
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
        lost = asyncio.create_task(read_completed(dead.ask(model)))
        await wait_until(lambda: model.asked == 1)
        await dead.die()
        others = [asyncio.create_task(read_completed(each.ask(model))) for each in (two, three)]
        await wait_until(lambda: model.asked == 2)
        model.may_answer.set()
        assert [(await each).text for each in others] == ["yes", "yes"]
        assert model.asked == 2
        lost.cancel()


async def test_a_forgotten_answer_is_gone_and_its_call_is_not_made_again(tmp_path: Path) -> None:
    model, clock = Model(text="a word that nobody says"), ManualClock()
    model.may_answer.set()
    async with replicas(tmp_path, 2, clock) as (one, two):
        await read_completed(one.ask(model))
        for _ in range(2):
            await two.calls.forget([KEY, "a call that nobody made"])
        found = await one.store.look(KEY)
        assert found is not None
        assert (found.state, found.outcome) == (CallState.FORGOTTEN, {})
        for replica in (one, two):
            with pytest.raises(ParleyError) as caught:
                await read_completed(replica.ask(model))
            assert caught.value.reason == "ANSWER_FORGOTTEN"
        assert not (await two.calls.cancel(KEY)).was_running
        assert model.asked == 1
        clock.advance(timedelta(days=1, seconds=1).total_seconds())
        await one.store.sweep()
        assert await one.store.look(KEY) is None


async def test_a_call_that_runs_or_has_failed_is_not_forgotten(tmp_path: Path) -> None:
    model = Model()
    async with replicas(tmp_path) as (one,):
        asked = asyncio.create_task(read_completed(one.ask(model)))
        await wait_until(lambda: model.asked == 1)
        await one.calls.forget([KEY])
        await one.calls.cancel(KEY)
        with pytest.raises(CallFailed):
            await asked
        await one.calls.forget([KEY])
        model.may_answer.set()
        assert (await read_completed(one.ask(model))).text == "yes"


async def test_an_owner_that_was_taken_over_hands_out_the_answer_that_is_stored(tmp_path: Path) -> None:
    slow, quick = Model(text="slow"), Model(text="quick")
    quick.may_answer.set()
    async with replicas(tmp_path, 2, lease=SHORT_LEASE) as (one, two):
        first = asyncio.create_task(read_completed(one.ask(slow)))
        await wait_until(lambda: slow.asked == 1)
        one.keeping.cancel()  # it lives, and cannot say so
        assert (await read_completed(two.ask(quick))).text == "quick"
        slow.may_answer.set()
        assert (await first).text == "quick"


async def test_other_content_under_the_name_is_refused_running_or_answered(tmp_path: Path) -> None:
    model = Model()
    async with replicas(tmp_path, 2) as (one, two):
        first = asyncio.create_task(read_completed(one.ask(model)))
        await wait_until(lambda: model.asked == 1)
        for each in (one, two):
            with pytest.raises(ParleyError, match="already used for a different request") as caught:
                await read_completed(each.ask(model, digest="other"))
            assert caught.value.reason == "CALL_ID_REUSED"
        model.may_answer.set()
        await first
        for each in (one, two):
            with pytest.raises(ParleyError, match="already used for a different request"):
                await read_completed(each.ask(model, digest="other"))


async def test_a_failure_is_told_to_all_who_waited_and_not_kept(tmp_path: Path) -> None:
    model = Model()
    gate = asyncio.Event()

    async def fails(call: RunningCall) -> GenerateCompleted:
        model.asked += 1
        await gate.wait()
        raise Failure(BAD_REQUEST, "no", status=400, retry_after=2.5, route="p/m")

    async with replicas(tmp_path, 2) as (one, two):
        first = asyncio.create_task(read_completed(one.ask(fails)))
        await wait_until(lambda: model.asked == 1)
        second = asyncio.create_task(read_completed(two.ask(fails)))
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
        assert (await read_completed(two.ask(model, digest="other"))).text == "yes"


async def test_a_call_goes_on_without_callers_of_its_own_while_another_replica_waits_for_it(
    tmp_path: Path,
) -> None:
    model = Model()
    async with replicas(tmp_path, 2, lease=SHORT_LEASE) as (owner, other):
        hung_up = asyncio.create_task(read_all(owner.ask(model)))
        await wait_until(lambda: model.asked == 1)
        waiting = asyncio.create_task(read_completed(other.ask(model)))
        looks, look = 0, owner.store.look

        async def look_and_count(key: str) -> StoredCall | None:
            nonlocal looks
            looks += 1
            return await look(key)

        owner.store.look = look_and_count  # type: ignore[method-assign]
        hung_up.cancel()
        await wait_until(lambda: looks == 2)  # each after two leases
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
        await wait_until(lambda: model.stopped == 1)
        assert loop.time() - left > 2 * SHORT_LEASE * 0.9
        model.may_answer.set()
        assert (await read_completed(one.ask(model))).text == "yes"


async def test_a_caller_whose_time_is_over_is_told_so_while_the_call_goes_on(tmp_path: Path) -> None:
    model = Model()
    async with replicas(tmp_path, 2) as (one, two):
        first = asyncio.create_task(read_completed(one.ask(model)))
        await wait_until(lambda: model.asked == 1)
        for each in (one, two):
            ends = asyncio.get_running_loop().time() + 0.1
            with pytest.raises(CallFailed, match="within the time of this caller"):
                await read_completed(each.calls.listen(KEY, lambda: "d", model, ends))
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
        assert (await read_completed(one.ask(model))).text == "yes"
    assert model.asked == 1


async def test_an_answer_that_could_not_be_stored_is_not_heard_and_not_paid_for_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = create_quick_model()
    async with replicas(tmp_path, lease=SHORT_LEASE) as (one,):
        writes, away = one.store.end, True

        async def end(*given: Any) -> bool:
            if away:
                raise StoreUnavailableError("away")
            return await writes(*given)

        monkeypatch.setattr(one.store, "end", end)
        with pytest.raises(ParleyError) as caught:
            await read_completed(one.ask(model))
        assert caught.value.reason == "STORE_UNAVAILABLE"
        away = False
        assert (await read_completed(one.ask(model))).text == "yes"
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
            await read_completed(one.ask(Model()))
        with pytest.raises(ParleyError) as cancelled:
            await one.calls.cancel(KEY)
    assert (asked.value.reason, cancelled.value.reason) == (reason, reason)


async def test_two_that_write_an_unrecorded_answer_at_once_do_not_stop_the_keeping_of_calls(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    model = create_quick_model()
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
            await read_completed(one.ask(model))
        mode = "back"
        assert (await read_completed(one.ask(model))).text == "yes"
        await wait_until(both.is_set)
        await asyncio.sleep(0)
        assert not one.keeping.done()
        assert (await read_completed(one.ask(model))).stored
    assert model.asked == 1


async def test_a_claim_that_was_interrupted_does_not_lock_the_call(tmp_path: Path) -> None:
    model = create_quick_model()
    async with replicas(tmp_path, 2) as (one, two):
        for _ in range(20):
            asking = asyncio.create_task(read_completed(one.ask(model)))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            asking.cancel()
            await asyncio.wait({asking})
        async with asyncio.timeout(LEASE / 2):
            assert (await read_completed(two.ask(model))).text == "yes"


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
        asked = asyncio.create_task(read_all(replica.ask(Model())))
        await claiming.wait()
        stopping = asyncio.create_task(replica.calls.cancel(KEY))
        await wait_until(lambda: replica.calls.find(KEY).stopping)  # type: ignore[union-attr]
        may_fail.set()
        await asyncio.wait({asked, stopping})
        assert isinstance(asked.exception(), CallFailed | ParleyError)
        gc.collect()  # a task whose error is never asked for says so when it is collected
    assert "never retrieved" not in caplog.text
