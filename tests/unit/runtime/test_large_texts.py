"""Work that goes through large texts leaves the loop to others, and no tenant waits behind all that another has."""

import asyncio
import threading
from collections.abc import Callable

from parley.runtime.labels import label_scope, labels
from parley.runtime.large_texts import in_thread_if_large, in_thread_per_tenant

_WITHIN = 30.0


def _start_work(tenant: str, work: Callable[[], object]) -> asyncio.Task[object]:
    with label_scope(tenant=tenant):
        return asyncio.create_task(in_thread_per_tenant(work))


async def _let_others_run() -> None:
    for _ in range(3):
        await asyncio.sleep(0)


async def test_work_on_small_texts_is_done_at_once_and_on_large_ones_in_a_thread() -> None:
    here = threading.get_ident()
    assert await in_thread_if_large(["small"] * 10, threading.get_ident) == here
    assert await in_thread_if_large(["x" * 70_000], threading.get_ident) != here
    assert await in_thread_if_large(["x"] * 2_000, threading.get_ident) != here


async def test_no_two_pieces_of_large_work_are_done_at_a_time() -> None:
    both = threading.Barrier(2)

    def is_alone() -> bool:
        try:
            both.wait(timeout=0.05)
        except threading.BrokenBarrierError:
            return True
        return False

    assert all(await asyncio.gather(*(_start_work(tenant, is_alone) for tenant in ("a", "b", "c"))))


async def test_a_tenant_waits_behind_one_piece_of_work_of_another_not_behind_all() -> None:
    gate, done = threading.Event(), list[str]()

    def wait_at_gate() -> None:
        assert gate.wait(_WITHIN)
        done.append("a")

    asked = [_start_work("a", wait_at_gate), *(_start_work("a", lambda: done.append("a")) for _ in range(9))]
    await _let_others_run()
    asked.append(_start_work("b", lambda: done.append("b")))
    await _let_others_run()
    gate.set()
    await asyncio.gather(*asked)
    assert done == ["a", "b", *["a"] * 9]


async def test_whoever_gives_up_waiting_leaves_its_turn_to_the_next() -> None:
    gate, done = threading.Event(), list[str]()
    begun = _start_work("a", lambda: gate.wait(_WITHIN))
    gives_up = _start_work("a", lambda: done.append("given up"))
    last = _start_work("a", lambda: done.append("last"))
    await _let_others_run()
    gives_up.cancel()
    await _let_others_run()
    gate.set()
    await asyncio.gather(begun, last)
    assert gives_up.cancelled()
    assert done == ["last"]


async def test_work_knows_what_it_is_about() -> None:
    assert await _start_work("a", labels) == {"tenant": "a"}
