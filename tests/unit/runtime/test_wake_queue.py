"""How often those are woken who wait for news."""

import asyncio

from parley.runtime.wake_queue import WakeGroup, WakeQueue


async def test_whoever_waits_for_two_kinds_of_news_that_are_there_is_woken_once() -> None:
    queue, news = WakeQueue(), [asyncio.Event() for _ in range(20)]
    urgent, other = WakeGroup(queue, urgent=True), WakeGroup(queue)
    for each in news:
        urgent.add(each)
        other.add(each)
    queue.wake([asyncio.Event() for _ in range(5)])  # it is busy in this iteration of the loop
    other.notify()
    urgent.notify()
    woken = 0
    for _ in range(50):
        await asyncio.sleep(0)
        for each in news:
            woken += each.is_set()
            each.clear()
    assert woken == len(news)


async def test_whoever_waits_for_other_news_is_woken_while_urgent_news_never_cease() -> None:
    queue = WakeQueue()
    urgent, other = WakeGroup(queue, urgent=True), WakeGroup(queue)
    for _ in range(20):
        urgent.add(asyncio.Event())
    waiting = [asyncio.Event() for _ in range(10)]
    for each in waiting:
        other.add(each)
    urgent.notify()
    other.notify()
    for _ in range(20):
        await asyncio.sleep(0)
        urgent.notify()
    assert all(each.is_set() for each in waiting)
