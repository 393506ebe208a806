import asyncio

import pytest

from parley.runtime.byte_budget import ByteBudget, Share
from parley.runtime.labels import label_scope


def _start(budget: ByteBudget, tenant: str, size: int) -> asyncio.Task[Share]:
    with label_scope(tenant=tenant):
        return asyncio.create_task(budget.take(size))


async def _turn() -> None:
    """Let every task go on that can."""
    for _ in range(5):
        await asyncio.sleep(0)


async def test_work_waits_until_there_are_bytes_for_it() -> None:
    budget = ByteBudget(100, 100)
    first = await _start(budget, "a", 60)
    second = _start(budget, "a", 60)
    await _turn()
    assert not second.done()
    first.release()
    await second
    assert budget.held == 60


async def test_work_that_waits_too_long_for_bytes_is_told_so_and_holds_none() -> None:
    budget = ByteBudget(10, per_tenant=10)
    held = await budget.take(10, within=0)
    with pytest.raises(TimeoutError):
        await budget.take(1, within=0)
    held.release()
    assert budget.held == 0
    (await budget.take(10, within=0)).release()


async def test_one_tenant_leaves_half_to_the_others() -> None:
    budget = ByteBudget(100)
    await _start(budget, "a", 50)
    waiting = _start(budget, "a", 10)
    await _start(budget, "b", 50)
    await _turn()
    assert not waiting.done()


async def test_the_tenant_that_holds_least_is_next() -> None:
    budget = ByteBudget(100, 80)
    large, small = await _start(budget, "a", 60), await _start(budget, "b", 40)
    again, other = _start(budget, "a", 20), _start(budget, "c", 20)
    await _turn()
    small.release()
    await other
    assert budget.held == 100
    assert again.done()
    large.release()


async def test_small_pieces_do_not_pass_a_large_one_for_ever() -> None:
    budget = ByteBudget(100, 80)
    held = await _start(budget, "b", 50)
    large, small = _start(budget, "a", 70), _start(budget, "b", 10)
    await _turn()
    assert not large.done()
    assert not small.done()
    held.release()
    await large
    await small


async def test_work_larger_than_the_bound_is_let_in_alone() -> None:
    budget = ByteBudget(100, 50)
    share = await _start(budget, "a", 1000)
    waiting = _start(budget, "a", 1)
    await _turn()
    assert not waiting.done()
    share.release()
    await waiting


async def test_bytes_are_given_back_once() -> None:
    budget = ByteBudget(100)
    share, _ = await _start(budget, "a", 20), await _start(budget, "a", 20)
    share.release()
    share.release()
    assert budget.held == 20


@pytest.mark.parametrize("is_admitted", [False, True])
async def test_cancelled_work_holds_nothing(*, is_admitted: bool) -> None:
    budget = ByteBudget(100, 100)
    first = await _start(budget, "a", 80)
    waiting = _start(budget, "a", 80)
    await _turn()
    if is_admitted:
        first.release()  # it is admitted and cancelled before it has run
    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting
    first.release()
    assert budget.held == 0
    await _start(budget, "a", 100)


async def test_the_block_holds_its_bytes() -> None:
    budget = ByteBudget(100)
    async with budget.hold(10):
        assert budget.held == 10
    assert budget.held == 0
