"""Consolidation: memories that are weak sink, those that were recalled rise, and in the end what the operator keeps no longer is deleted.

One replica at a time does it. It reads and writes only what was recalled, what is due and what is in a tier that is too full.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Iterable, Sequence
from typing import Final

from parley.memory.lease import Lease
from parley.memory.memories import Memories
from parley.memory.retention import Retention
from parley.memory.tiers import CAPACITIES, TIERS, Standing, Tiers, read_standings
from parley.memory.tombstones import Tombstones
from parley.runtime.clock import Clock
from parley.runtime.clock_watch import ClockWatch
from parley.runtime.errors import ParleyError
from parley.runtime.logs import get_logger
from parley.storage.ports import Above, Below, Documents, Order, StorageError, Where

LEASE_SECONDS: Final = 120.0
"""More than a page of writes takes, by far."""
_SECONDS: Final = 30.0
"""Between two consolidations."""
_PAGE: Final = 100

_logger = get_logger(__name__)


class Consolidation:
    """The job of one replica.

    What this replica recalled since the last one is lost with its process, which costs a memory some strength and no more.
    """

    def __init__(
        self,
        documents: Documents,
        tiers: Tiers,
        memories: Memories,
        lease: Lease,
        clock: Clock,
        retentions: Sequence[Retention],
    ) -> None:
        self._documents = documents
        self._tiers = tiers
        self._memories = memories
        self._lease = lease
        self._clock = clock
        self._watch = ClockWatch(clock)
        self._retentions = retentions
        self._tombstones = Tombstones(documents, clock)
        self._looked_at = clock.now().timestamp()

    async def run(self) -> None:
        """Consolidate every 30 seconds, until cancelled."""
        while True:
            await self._clock.sleep(_SECONDS)
            try:
                await self.consolidate()
            except* (StorageError, ParleyError) as errors:
                reason = str(errors.exceptions[0])
                _logger.warning("memories could not be consolidated", error=reason)

    async def consolidate(self) -> None:
        """Do what there is to do now, if no other replica does. What this replica recalled is written in any case."""
        now, is_steady = self._clock.now().timestamp(), self._watch.is_steady()
        await self._lift_recalled(now)
        if is_steady and await self._lease.hold():
            await self._sink_weak(now)
            await self._make_room(now)
            self._looked_at = now
            for each in self._retentions:
                await each.end_old(now, self._lease.hold)
            await self._tombstones.delete_old()

    async def _lift_recalled(self, now: float) -> None:
        counts = self._memories.take_recalled()
        keys = list(counts)
        for start in range(0, len(keys), _PAGE):
            found = await self._tiers.load(keys[start : start + _PAGE])
            await self._move([(key, each, each.recall(counts[key], now)) for key, each in found.items()])

    async def _sink_weak(self, now: float) -> None:
        while page := await self._documents.find(
            TIERS, {"due_at": Below(now)}, order=(Order("due_at"),), limit=_PAGE
        ):
            due = read_standings(page)
            if not due or not await self._lease.hold():
                return
            await self._sink(due, now)

    async def _make_room(self, now: float) -> None:
        """Let the weakest sink from every tier that something came to since the last look and that is too full."""
        tenants = await self._list_changed()
        for tier in CAPACITIES:
            for tenant in tenants[tier]:
                async for over in self._find_overflow(tenant, tier):
                    await self._sink(over, now)
                    tenants[tier + 1].add(tenant)

    async def _list_changed(self) -> defaultdict[int, set[str]]:
        """Return the tenants of each tier that something came to."""
        changed = defaultdict[int, set[str]](set)
        since = self._looked_at - LEASE_SECONDS  # the clocks of replicas differ
        while page := await self._documents.find(
            TIERS, {"touched": Above(since)}, order=(Order("touched"),), limit=_PAGE
        ):
            for _, each in read_standings(page):
                changed[each.tier].add(each.tenant)
            if len(page) < _PAGE:
                break
            since = float(str(page[-1].fields["touched"]))
        return changed

    async def _sink(self, found: Iterable[tuple[str, Standing]], now: float) -> None:
        await self._move([(key, each, each.sink(now)) for key, each in found])

    async def _find_overflow(self, tenant: str, tier: int) -> AsyncIterator[list[tuple[str, Standing]]]:
        """Yield the weakest memories of a tier that is too full, a page at a time: they may be all that a tenant has."""
        left = CAPACITIES[tier]
        where: Where = {"tenant": tenant, "tier": tier}
        while page := await self._documents.find(
            TIERS, where, order=(Order("due_at", descending=True),), limit=_PAGE
        ):
            if over := page[max(left, 0) :]:
                yield read_standings(over)
            left -= len(page)
            due = page[-1].fields["due_at"]
            if not isinstance(due, int | float):
                break
            where = {"tenant": tenant, "tier": tier, "due_at": Below(due)}

    async def _move(self, moves: Sequence[tuple[str, Standing, Standing]]) -> None:
        for start in range(0, len(moves), _PAGE):
            async with asyncio.TaskGroup() as tasks:
                for key, before, after in moves[start : start + _PAGE]:
                    tasks.create_task(self._tiers.move(key, before, after))
