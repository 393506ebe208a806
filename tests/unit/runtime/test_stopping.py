"""A task is stopped though something in it swallows cancellations, and is not waited for without end."""

import asyncio

from parley.runtime.tasks import stop_task


async def swallow_cancellations(times: int) -> None:
    """As PyMongo's calls on Python 3.11: a cancellation that comes with the answer is lost."""
    while True:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            if times == 0:
                raise
            times -= 1


async def test_a_task_that_swallows_a_cancellation_is_cancelled_again() -> None:
    task = asyncio.create_task(swallow_cancellations(3))
    await asyncio.sleep(0)
    async with asyncio.timeout(30):
        await stop_task(task, again_seconds=0.01)
    assert task.cancelled()


async def test_a_task_that_never_ends_is_left_alone() -> None:
    task = asyncio.create_task(swallow_cancellations(55), name="deaf")
    await asyncio.sleep(0)
    async with asyncio.timeout(30):
        await stop_task(task, again_seconds=0.001)
    assert not task.done()
    await stop_task(task, again_seconds=0.001)
    assert task.done()
