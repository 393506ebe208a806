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
