"""A bound on bytes that a process holds at a time, shared fairly by tenants."""

import asyncio
from collections import Counter, OrderedDict, deque
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from parley.runtime.labels import labels


class Share:
    """Bytes that one piece of work holds, until they are released."""

    def __init__(self, budget: "ByteBudget", tenant: str, size: int) -> None:
        """Hold bytes that `ByteBudget.take` has counted."""
        self._budget = budget
        self._tenant = tenant
        self._size = size

    def release(self) -> None:
        """Give the bytes back. A second call does nothing."""
        size, self._size = self._size, 0
        if size:
            self._budget._release(self._tenant, size)  # noqa: SLF001 - its own part


class ByteBudget:
    """Bytes that all work of a process may hold, and how many the work of one tenant may.

    Work that finds too few waits. The tenant that holds the least is next; of one tenant, the work that waits longest.
    Work that alone needs more than a tenant may hold is let in once its tenant holds nothing.

    Attributes:
        limit: The bytes that may be held in all.
    """

    def __init__(self, total: int, per_tenant: int | None = None) -> None:
        """Share `total` bytes. A tenant holds half of them at most unless `per_tenant` says otherwise."""
        self.limit = total
        self._per_tenant = min(per_tenant or total // 2, total)
        self._held: Counter[str] = Counter()
        self._waiting: OrderedDict[str, deque[tuple[int, asyncio.Future[None]]]] = OrderedDict()

    @property
    def held(self) -> int:
        """The bytes that are held now."""
        return self._held.total()

    @asynccontextmanager
    async def hold(self, size: int) -> AsyncGenerator[None, None]:
        """Hold bytes for the current tenant while the block runs."""
        share = await self.take(size)
        try:
            yield
        finally:
            share.release()

    async def take(self, size: int, within: float | None = None) -> Share:
        """Wait until the current tenant may hold so many bytes more, and return its share.

        Raise TimeoutError if that takes longer than `within` seconds; None: it may take any time.
        """
        tenant, size = labels().get("tenant", ""), min(size, self._per_tenant)
        if size <= 0:
            return Share(self, tenant, 0)
        if (
            not self._waiting
            and self._held[tenant] + size <= self._per_tenant
            and self.held + size <= self.limit
        ):
            self._held[tenant] += size
            return Share(self, tenant, size)
        admitted: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        entry = size, admitted
        self._waiting.setdefault(tenant, deque()).append(entry)
        self._admit()
        if not admitted.done():
            async with asyncio.timeout(within):
                await self._wait(tenant, entry)
        return Share(self, tenant, size)

    async def _wait(self, tenant: str, entry: tuple[int, asyncio.Future[None]]) -> None:
        size, admitted = entry
        try:
            await admitted
        except asyncio.CancelledError:
            if admitted.cancelled():
                self._forget(tenant, entry)
            else:
                self._release(tenant, size)
            raise

    def _release(self, tenant: str, size: int) -> None:
        self._held[tenant] -= size
        if not self._held[tenant]:
            del self._held[tenant]
        self._admit()

    def _forget(self, tenant: str, entry: tuple[int, asyncio.Future[None]]) -> None:
        waiting = self._waiting.get(tenant, deque())
        if entry in waiting:
            waiting.remove(entry)
            if not waiting:
                del self._waiting[tenant]
            self._admit()

    def _admit(self) -> None:
        """Let in what fits now. Who needs more than is free is not passed by, or small pieces of others would keep it out for ever."""
        while self._waiting and (tenant := self._next_tenant()) is not None:
            size, admitted = self._waiting[tenant][0]
            if self.held + size > self.limit:
                return
            self._waiting[tenant].popleft()
            if not self._waiting[tenant]:
                del self._waiting[tenant]
            if not admitted.cancelled():
                self._held[tenant] += size
                admitted.set_result(None)

    def _next_tenant(self) -> str | None:
        """Return the tenant that holds the least of those that may hold what they wait for."""
        allowed = [
            tenant
            for tenant, waiting in self._waiting.items()
            if self._held[tenant] + waiting[0][0] <= self._per_tenant
        ]
        return min(allowed, key=self._held.__getitem__, default=None)
