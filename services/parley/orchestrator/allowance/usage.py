"""What tenants use, counted over all replicas: one document a tenant, to which each replica adds its counts every second.

Between two updates a replica knows the sum of a second ago and its own counts since. So a limit may be exceeded by what the
others counted within that second, and no call waits for the store. The last second of a killed replica is lost.
"""

from collections import OrderedDict
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from parley.orchestrator.log.usage import usage_of
from parley.runtime.clock import Clock
from parley.runtime.large_texts import in_thread_if_large
from parley.runtime.logs import get_logger
from parley.storage.ports import (
    Collection,
    Documents,
    DuplicateError,
    Insert,
    Log,
    Record,
    StorageError,
    StoreDamagedError,
    Update,
)
from parley.v1.agent_pb2 import Usage
from parley.v1.event_pb2 import DebateCreated, Event

TENANT_USE: Final = Collection("tenant_use")
_PUBLISH_SECONDS: Final = 1.0
_WATCHES_SECONDS: Final = 20.0
"""How often a replica publishes its number of watchers, even if it is unchanged."""
_GONE_SECONDS: Final = 60.0
"""Watchers of a replica are no longer counted after so long without an update."""
_IDLE_SECONDS: Final = 10.0
"""An inactive tenant is forgotten after so long, since each update reads all known tenants. Its next call loads it again."""

_logger = get_logger(__name__)


class UsageCounts(Struct, frozen=True):
    """Counts of one tenant.

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

    def at(self, day: int, minute: int) -> "UsageCounts":
        """Return the counts as of a day and a minute: those of earlier ones are 0.

        Those of the next ones stay: the clock of a replica that is behind must not end what the others count.
        """
        found = self if self.day - day in (0, 1) else replace(self, day=day, tokens=0, cost_micros=0)
        return found if self.minute - minute in (0, 1) else replace(found, minute=minute, requests=0)

    def plus(self, other: "UsageCounts") -> "UsageCounts":
        """Return the sum of two counts, as of the later day and minute of both."""
        return UsageCounts(
            day=max(self.day, other.day),
            minute=max(self.minute, other.minute),
            tokens=self.tokens + other.tokens,
            cost_micros=self.cost_micros + other.cost_micros,
            requests=self.requests + other.requests,
            stored_bytes=self.stored_bytes + other.stored_bytes,
        )

    def without_negatives(self) -> "UsageCounts":
        """Return the counts with at least 0 stored bytes: a log written before bytes were counted may be deleted."""
        return replace(self, stored_bytes=max(self.stored_bytes, 0))


class _TenantState(Struct):
    """The counts of a tenant at this replica: the stored `total`, those on their way to the store, and new ones.

    `other_watches`: open streams at other replicas.
    """

    total: UsageCounts
    active_at: float
    new: UsageCounts = field(default_factory=UsageCounts)
    on_their_way: UsageCounts = field(default_factory=UsageCounts)
    watches: int = 0
    other_watches: int = 0
    published_watches: int = 0
    published_at: float = 0.0


class TenantUsage:
    """The counts of all tenants. `run` shares them with the other replicas."""

    def __init__(self, documents: Documents, clock: Clock, replica: str) -> None:
        """Use a store whose collection TENANT_USE is prepared; `replica` is the name of this one."""
        self._documents = documents
        self._clock = clock
        self._replica = replica
        self._tenants: dict[str, _TenantState] = {}

    async def get_counts(self, tenant: str) -> UsageCounts:
        """Return what a tenant has used today, in this minute, and in all."""
        day, minute = self._now()
        known = await self._get_tenant(tenant)
        own = known.on_their_way.at(day, minute).plus(known.new.at(day, minute))
        return known.total.at(day, minute).plus(own).without_negatives()

    async def count_watches(self, tenant: str) -> int:
        """Return how many streams of a tenant are open."""
        known = await self._get_tenant(tenant)
        return known.watches + known.other_watches

    async def count(
        self,
        tenant: str,
        *,
        key: str = "",
        requests: int = 0,
        tokens: int = 0,
        cost_micros: int = 0,
        stored_bytes: int = 0,
    ) -> None:
        """Add to the counts of a tenant; tokens and cost to those of a key with a budget, too. If it is cancelled, nothing is counted."""
        day, minute = self._now()
        used = UsageCounts(day, tokens, cost_micros, minute)
        added = {tenant: replace(used, requests=requests, stored_bytes=stored_bytes)}
        if key:
            added[key_account(tenant, key)] = used
        loaded = {each: await self._get_tenant(each) for each in added}
        for each, counts in added.items():
            # One may be forgotten while another is loaded.
            known = self._tenants.setdefault(each, loaded[each])
            known.new = known.new.at(day, minute).plus(counts)

    @contextmanager
    def track_watch(self, tenant: str) -> Iterator[None]:
        """Count a stream while the block runs. The tenant was counted before, so its state is loaded."""
        known = self._tenants[tenant]
        known.watches += 1
        try:
            yield
        finally:
            known.watches -= 1

    async def run(self) -> None:
        """Publish the counts of this replica every second, until cancelled."""
        while True:
            await self._clock.sleep(_PUBLISH_SECONDS)
            try:
                await self.publish()
            except StorageError as error:
                _logger.warning(
                    "store unavailable; the usage of tenants is published later", error=str(error)
                )

    async def publish(self) -> None:
        """Add the counts of this replica to the stored ones, and load what the others counted."""
        now = self._clock.monotonic()
        for tenant, known in list(self._tenants.items()):
            changed = known.new != UsageCounts() or known.watches != known.published_watches
            if changed or (known.watches and now >= known.published_at + _WATCHES_SECONDS):
                await self._add(tenant, known)
                known.active_at = now
            elif not known.watches and now >= known.active_at + _IDLE_SECONDS:
                del self._tenants[tenant]
            else:
                self._apply_stored(known, await self._read_stored(tenant))

    async def _add(self, tenant: str, known: _TenantState) -> None:
        new, known.new = known.new, UsageCounts()
        known.on_their_way = new
        watches = known.watches
        try:
            while True:
                day, minute = self._now()
                stored = await self._read_stored(tenant)
                sum_ = _counts_from(stored).at(day, minute).plus(new.at(day, minute)).without_negatives()
                others = self._others(stored)
                live_watches = {**others, self._replica: [watches, self._seconds()]} if watches else others
                summed = {**asdict(sum_), "watches": live_watches, "version": _version(stored) + 1}
                if await self._write(tenant, summed, stored):
                    break
        except BaseException:  # it is published with the next counts
            known.new = new.plus(known.new)
            raise
        finally:
            known.on_their_way = UsageCounts()
        known.published_watches, known.published_at = watches, self._clock.monotonic()
        self._apply_stored(known, summed)

    async def _write(self, tenant: str, summed: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
        """Write the new sums. Return False if another replica was faster."""
        if stored:
            return await self._documents.update(TENANT_USE, tenant, summed, {"version": _version(stored)})
        try:
            await self._documents.insert(TENANT_USE, tenant, summed)
        except DuplicateError:
            return False
        return True

    async def _get_tenant(self, tenant: str) -> _TenantState:
        known = self._tenants.get(tenant)
        if known is None:
            try:
                stored = await self._read_stored(tenant)
            except StorageError:  # the counts of others are loaded with the next update
                stored = {}
            state = _TenantState(_counts_from(stored), self._clock.monotonic())
            self._apply_stored(state, stored)
            known = self._tenants.setdefault(tenant, state)
        return known

    async def _read_stored(self, tenant: str) -> Mapping[str, Any]:
        found = await self._documents.get(TENANT_USE, tenant)
        return found.fields if found else {}

    def _apply_stored(self, known: _TenantState, stored: Mapping[str, Any]) -> None:
        known.total = _counts_from(stored)
        known.other_watches = sum(count for count, _ in self._others(stored).values())

    def _others(self, stored: Mapping[str, Any]) -> dict[str, list[int]]:
        """Return the watches of the other replicas that are alive."""
        since = self._seconds() - _GONE_SECONDS
        watches: Mapping[str, list[int]] = stored.get("watches", {})
        return {
            each: [count, seen]
            for each, (count, seen) in watches.items()
            if each != self._replica and seen >= since
        }

    def _now(self) -> tuple[int, int]:
        seconds = self._seconds()
        return seconds // 86_400, seconds // 60

    def _seconds(self) -> int:
        return int(self._clock.now().timestamp())


def _counts_from(stored: Mapping[str, Any]) -> UsageCounts:
    return UsageCounts(**{name: int(stored.get(name, 0)) for name in UsageCounts.__struct_fields__})


def _version(stored: Mapping[str, Any]) -> int:
    return int(stored.get("version", 0))


_PAGE = 100
_MAX_BUDGET_KEYS = 1_000
"""Logs whose key is known, several times as many as debates run at once; of another one the first record is read again."""


class MeteredLog:
    """A log that counts for its tenant the bytes appended, and the tokens and the cost of recorded calls."""

    def __init__(self, log: Log, usage: TenantUsage) -> None:
        """Count in `usage` what is appended to `log`."""
        self._log = log
        self._usage = usage
        self._budget_keys: OrderedDict[str, str] = OrderedDict()
        """By log: the key whose budget its calls count against, or an empty text."""

    async def append(
        self, log: str, record: Record, *, insert: Insert | None = None, update: Update | None = None
    ) -> None:
        """Append as `Log` does. Count the record once it is durable."""
        await self._log.append(log, record, insert=insert, update=update)
        size = sum(map(len, record.entries))
        summed = await in_thread_if_large(size, partial(_sum_usage, record.entries))
        tokens, cost = summed.tokens, summed.cost_micros
        if summed.budget_key_id is not None:
            self._remember(log, summed.budget_key_id)
        # Read before anything is counted: an append whose writer is stopped meanwhile comes again.
        key = await self._find_budget_key(log) if tokens or cost else ""
        await self._usage.count(_tenant(log), key=key, tokens=tokens, cost_micros=cost, stored_bytes=size)

    async def _find_budget_key(self, log: str) -> str:
        """Return the key whose budget the calls of a debate count against; empty if there is none, or the store does not answer."""
        known = self._budget_keys.get(log)
        if known is not None:
            return known
        try:  # another replica created it
            records = await self._log.read(log, 0, 1)
        except StorageError:
            return ""
        created = Event.FromString(records[0].entries[0]).debate_created if records else DebateCreated()
        self._remember(log, created.budget_key_id)
        return created.budget_key_id

    def _remember(self, log: str, key: str) -> None:
        self._budget_keys[log] = key
        if len(self._budget_keys) > _MAX_BUDGET_KEYS:
            self._budget_keys.popitem(last=False)

    async def read(self, log: str, after: int = 0, limit: int = 1000) -> Sequence[Record]:
        """Read as `Log` does."""
        return await self._log.read(log, after, limit)

    def follow(self, log: str, after: int = 0) -> AsyncGenerator[Record, None]:
        """Follow as `Log` does."""
        return self._log.follow(log, after)

    async def delete(self, log: str) -> None:
        """Delete as `Log` does. Subtract the bytes that are freed; of a damaged log those before the damage."""
        freed = await self._measure_size(log)
        await self._log.delete(log)
        if freed:
            await self._usage.count(_tenant(log), stored_bytes=-freed)

    async def _measure_size(self, log: str) -> int:
        size = after = 0
        try:
            while records := await self._log.read(log, after, _PAGE):
                size += sum(len(entry) for each in records for entry in each.entries)
                after = records[-1].last
        except StoreDamagedError as error:
            _logger.warning(
                "a damaged log is deleted; what it held counts as stored", log=log, error=str(error)
            )
        return size


class _RecordedUsage(Struct, frozen=True):
    """What events record: the usage of calls, and the key that a debate's creation names; None if none is created."""

    tokens: int
    cost_micros: int
    budget_key_id: str | None


def _sum_usage(entries: Iterable[bytes]) -> _RecordedUsage:
    tokens = cost = 0
    key: str | None = None
    for entry in entries:
        event = Event.FromString(entry)
        if event.HasField("debate_created"):
            key = event.debate_created.budget_key_id
        for usage in _usages_of(event):
            tokens += usage.input_tokens + usage.output_tokens
            cost += usage.cost_micros
    return _RecordedUsage(tokens, cost, key)


def _usages_of(event: Event) -> Iterable[Usage]:
    """Return the usage of the calls that an event records: a step's call, or calls that were stopped."""
    match event.WhichOneof("payload"):
        case "step_succeeded" | "step_failed" as kind:
            return (usage_of(getattr(event, kind)),)
        case "paused" | "closed" as kind:
            return (each.usage for each in getattr(event, kind).stopped)
        case _:
            return ()


def key_account(tenant: str, key_id: str) -> str:
    """Return the name under which the use of a key is counted. No tenant has it: names of tenants have no slash."""
    return f"{tenant}/{key_id}"


def _tenant(log: str) -> str:
    return log.partition("/")[0]
