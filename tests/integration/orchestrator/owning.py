"""What tests of the owners of debates share: a log that stalls, and waits for what replicas do."""

import asyncio
from typing import Any

from parley.storage.ports import Log, Record


async def wait_for_looks(*replicas: Any) -> None:
    """Wait until replicas have looked at the store some times."""
    seen = [replica.dependencies.inbox for replica in replicas]
    for inbox in seen:
        original, count = inbox.list_waiting, asyncio.Event()
        left = [3]

        async def count_down(
            original: Any = original, count: asyncio.Event = count, left: list[int] = left
        ) -> Any:
            left[0] -= 1
            if left[0] <= 0:
                count.set()
            return await original()

        inbox.list_waiting = count_down
        await asyncio.wait_for(count.wait(), 30)
        inbox.list_waiting = original


class StallingLog:
    """A log whose appends wait while it is stalled."""

    def __init__(self, log: Log) -> None:
        self.inner = log
        self.going = asyncio.Event()
        self.going.set()
        self.waiting = asyncio.Event()

    async def append(self, log: str, record: Record, **beside: Any) -> None:
        if not self.going.is_set():
            self.waiting.set()
            await self.going.wait()
        await self.inner.append(log, record, **beside)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)


async def owns_nothing(replica: Any) -> bool:
    return not replica.runner._owned
