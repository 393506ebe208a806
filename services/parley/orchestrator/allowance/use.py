"""What tenants use, counted over all replicas: a document a tenant, to which each replica adds every second what it counted.

Between two looks a replica knows the sum of a second ago and what it counted itself since. So a limit may be overstepped by
what the others counted within that second, and no call waits for the store. A replica that is killed takes its last second along.
"""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any, Final

from parley.runtime.clock import Clock
from parley.runtime.logs import get_logger
from parley.storage.ports import Collection, Documents, DuplicateError, StorageError

__all__ = ["TENANT_USE", "TenantUse", "Used"]

TENANT_USE: Final = Collection("tenant_use")
_TELL_SECONDS: Final = 1.0
_WATCHES_SECONDS: Final = 20.0
"""How often a replica says that its watchers are still there."""
_GONE_SECONDS: Final = 60.0
"""After which the watchers of a replica that says nothing count no more."""
_IDLE_SECONDS: Final = 10.0
"""After which nothing is kept of a tenant that does nothing: each look reads all that are kept, and its next call reads it again."""

_logger = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Used:
    """What was counted.

    Attributes:
        day: Days since 1970 (UTC) that `tokens` and `cost_micros` are of.
        minute: Minutes since 1970 that `requests` are of.
    """

    day: int = 0
    tokens: int = 0
    cost_micros: int = 0
    minute: int = 0
    requests: int = 0
    stored_bytes: int = 0

    def at(self, day: int, minute: int) -> "Used":
        """Return what of it counts at a day and a minute."""
        found = self if self.day == day else replace(self, day=day, tokens=0, cost_micros=0)
        return found if self.minute == minute else replace(found, minute=minute, requests=0)

    def plus(self, other: "Used") -> "Used":
        """Return the sum of two counts of one day and minute."""
        return replace(
            self,
            tokens=self.tokens + other.tokens,
            cost_micros=self.cost_micros + other.cost_micros,
            requests=self.requests + other.requests,
            stored_bytes=self.stored_bytes + other.stored_bytes,
        )

    def in_all(self) -> "Used":
        """Return a whole count: no less than nothing is stored, also where more was freed than had been counted."""
        return replace(self, stored_bytes=max(self.stored_bytes, 0))


@dataclass(slots=True)
class _Tenant:
    """What is known of a tenant here. `other_watches`: at other replicas."""

    total: Used
    active_at: float
    new: Used = field(default_factory=Used)
    watches: int = 0
    other_watches: int = 0
    told_watches: int = 0
    told_at: float = 0.0


class TenantUse:
    """The counts of all tenants; told to the other replicas while `run` runs."""

    def __init__(self, documents: Documents, clock: Clock, replica: str) -> None:
        """Keep them in a store whose collection TENANT_USE is prepared, as this replica."""
        self._documents = documents
        self._clock = clock
        self._replica = replica
        self._tenants: dict[str, _Tenant] = {}

    async def used(self, tenant: str) -> Used:
        """Return what a tenant has used today, in this minute, and in all."""
        day, minute = self._now()
        known = await self._known(tenant)
        return known.total.at(day, minute).plus(known.new.at(day, minute)).in_all()

    async def watches(self, tenant: str) -> int:
        """Return how many streams of a tenant are open."""
        known = await self._known(tenant)
        return known.watches + known.other_watches

    async def count(
        self, tenant: str, *, requests: int = 0, tokens: int = 0, cost_micros: int = 0, stored_bytes: int = 0
    ) -> None:
        """Count what a tenant uses now."""
        known = await self._known(tenant)
        day, minute = self._now()
        added = Used(day, tokens, cost_micros, minute, requests, stored_bytes)
        known.new = known.new.at(day, minute).plus(added)

    @contextmanager
    def watching(self, tenant: str) -> Iterator[None]:
        """Count a stream while the block runs. Something of the tenant was counted before."""
        known = self._tenants[tenant]
        known.watches += 1
        try:
            yield
        finally:
            known.watches -= 1

    async def run(self) -> None:
        """Tell the other replicas every second what was counted here, until cancelled."""
        while True:
            await self._clock.sleep(_TELL_SECONDS)
            try:
                await self.tell()
            except StorageError as error:
                _logger.warning("store away; what tenants use is told later", error=str(error))

    async def tell(self) -> None:
        """Add what was counted here to what is stored, and take over what others counted."""
        now = self._clock.monotonic()
        for tenant, known in list(self._tenants.items()):
            changed = known.new != Used() or known.watches != known.told_watches
            if changed or (known.watches and now >= known.told_at + _WATCHES_SECONDS):
                await self._add(tenant, known)
                known.active_at = now
            elif not known.watches and now >= known.active_at + _IDLE_SECONDS:
                del self._tenants[tenant]
            else:
                self._take(known, await self._stored(tenant))

    async def _add(self, tenant: str, known: _Tenant) -> None:
        new, known.new = known.new, Used()
        watches = known.watches
        try:
            while True:
                day, minute = self._now()
                stored = await self._stored(tenant)
                sum_ = _used(stored).at(day, minute).plus(new.at(day, minute)).in_all()
                others = self._others(stored)
                told = {**others, self._replica: [watches, self._seconds()]} if watches else others
                summed = {**asdict(sum_), "watches": told, "version": _version(stored) + 1}
                if await self._written(tenant, summed, stored):
                    break
        except BaseException:  # it is told with what comes next
            known.new = new.plus(known.new)
            raise
        known.told_watches, known.told_at = watches, self._clock.monotonic()
        self._take(known, summed)

    async def _written(self, tenant: str, summed: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
        """Write what was summed; false where another replica was faster."""
        if stored:
            return await self._documents.update(TENANT_USE, tenant, summed, {"version": _version(stored)})
        try:
            await self._documents.insert(TENANT_USE, tenant, summed)
        except DuplicateError:
            return False
        return True

    async def _known(self, tenant: str) -> _Tenant:
        known = self._tenants.get(tenant)
        if known is None:
            try:
                stored = await self._stored(tenant)
            except StorageError:  # what others counted is taken over with the next look
                stored = {}
            made = _Tenant(_used(stored), self._clock.monotonic())
            self._take(made, stored)
            known = self._tenants.setdefault(tenant, made)
        return known

    async def _stored(self, tenant: str) -> Mapping[str, Any]:
        found = await self._documents.get(TENANT_USE, tenant)
        return found.fields if found else {}

    def _take(self, known: _Tenant, stored: Mapping[str, Any]) -> None:
        known.total = _used(stored)
        known.other_watches = sum(count for count, _ in self._others(stored).values())

    def _others(self, stored: Mapping[str, Any]) -> dict[str, list[int]]:
        """Return the watches of the other replicas that live."""
        since = self._seconds() - _GONE_SECONDS
        told: Mapping[str, list[int]] = stored.get("watches", {})
        return {
            each: [count, seen]
            for each, (count, seen) in told.items()
            if each != self._replica and seen >= since
        }

    def _now(self) -> tuple[int, int]:
        seconds = self._seconds()
        return seconds // 86_400, seconds // 60

    def _seconds(self) -> int:
        return int(self._clock.now().timestamp())


def _used(stored: Mapping[str, Any]) -> Used:
    return Used(**{each.name: int(stored.get(each.name, 0)) for each in fields(Used)})


def _version(stored: Mapping[str, Any]) -> int:
    return int(stored.get("version", 0))
