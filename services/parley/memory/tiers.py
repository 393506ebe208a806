"""The tiers of memories: from fast, for what is fresh, over medium and slow to glacial, for what was not needed for long.

A memory's strength halves after its tier's half-life. A weak one sinks to the next slower tier; one that is recalled again rises.
"""

from collections.abc import Collection as Keys
from collections.abc import Iterable
from math import exp2, log2
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict, replace

from parley.memory.debate import debate_of, storage_key
from parley.memory.traces import judge_importance
from parley.memory.writing import Write
from parley.runtime.clock import Clock
from parley.runtime.expiring_cache import ExpiringCache
from parley.runtime.unreadable import skip_unreadable
from parley.storage.ports import (
    Below,
    Collection,
    Document,
    Documents,
    DuplicateError,
    Fields,
    Index,
    Order,
    Where,
)
from parley.storage.scan import find_by_keys
from parley.v1.memory_pb2 import RecordDebateRequest

TIERS: Final = Collection(
    "tiers",
    (
        Index(("due_at",)),
        Index(("touched",)),
        Index(("tenant", "tier", "due_at")),
        Index(("tier", "concluded")),
    ),
    superseded=(Index(("key",)),),
)
FAST, MEDIUM, SLOW, GLACIAL = range(4)
_HOUR: Final = 3600.0
_DAY: Final = 24 * _HOUR
_HALF_LIVES: Final = (_HOUR, _DAY, 7 * _DAY, 30 * _DAY)
"""In seconds, a tier each."""
CAPACITIES: Final = {FAST: 100, MEDIUM: 1_000, SLOW: 5_000}
"""How many memories of a tenant a tier holds; the weakest of more sink."""
_WEAK: Final = 0.25
"""The strength at which a memory sinks."""
_RECALLS: Final = 2
"""So often a memory is recalled in its tier before it rises; an important one rises at once."""
_IMPORTANT: Final = 0.7
_KIND: Final = "tier of a memory"
_KEPT_SECONDS: Final = 30.0
"""How old a place may be that ranking uses: what replicas recall is written that late anyway, every 30 seconds."""


class Standing(Struct, frozen=True):
    """A memory's place in the tiers. Times are in seconds of Unix time.

    Attributes:
        strength: When it was touched, above 0, at most 1.
        touched: When it came to its tier, or was last recalled.
        recalls: How often it was recalled since it came to its tier.
        importance: 0 to 1.
        concluded: When its debate concluded.
    """

    tenant: str
    tier: int
    strength: float
    touched: float
    recalls: int
    importance: float
    concluded: float

    def measure_strength(self, now: float) -> float:
        """Return the strength that is left."""
        return self.strength * exp2(-max(now - self.touched, 0.0) / _HALF_LIVES[self.tier])

    def measure_presence(self, now: float) -> float:
        """Return how present it is, 0 to 1: any memory of a tier is more present than any of a slower one."""
        return (GLACIAL - self.tier + self.measure_strength(now)) / len(_HALF_LIVES)

    @property
    def due_at(self) -> float | None:
        """When it will be so weak that it sinks; None in the glacial tier."""
        if self.tier == GLACIAL:
            return None
        return self.touched + _HALF_LIVES[self.tier] * max(log2(self.strength / _WEAK), 0.0)

    def sink(self, now: float) -> "Standing":
        """Return its place in the next slower tier. The more important it is, the longer it stays there."""
        strength = _starting_strength(self.importance)
        return replace(self, tier=self.tier + 1, strength=strength, touched=now, recalls=0)

    def recall(self, times: int, now: float) -> "Standing":
        """Return its place after it was recalled so often: with full strength, and maybe in the next faster tier."""
        recalls = self.recalls + times
        touched = replace(self, strength=1.0, touched=max(now, self.touched), recalls=recalls)
        if self.tier > FAST and (recalls >= _RECALLS or self.importance >= _IMPORTANT):
            return replace(touched, tier=self.tier - 1, recalls=0)
        return touched


def start_standing(tenant: str, importance: float, concluded: float, now: float) -> Standing:
    """Return the place of a new memory, in the fast tier."""
    return Standing(tenant, FAST, _starting_strength(importance), now, 0, importance, concluded)


def _starting_strength(importance: float) -> float:
    return 0.5 + 0.5 * importance


class Tiers:
    """The places of all memories; that of a record is one of its effects."""

    def __init__(self, documents: Documents, clock: Clock) -> None:
        self._documents = documents
        self._clock = clock
        self._kept = ExpiringCache[str, Standing]()

    async def apply(self, tenant: str, record: RecordDebateRequest, write: Write) -> None:
        """Put a debate into the fast tier, unless it has a place."""
        key, debate = storage_key(tenant, record.debate.debate_id), record.debate
        concluded = debate.concluded_at.seconds + debate.concluded_at.nanos / 1e9
        standing = start_standing(tenant, judge_importance(debate), concluded, self._clock.now().timestamp())
        try:
            await write(self._documents.insert(TIERS, key, {"key": key, **to_fields(standing)}))
        except DuplicateError:
            return
        self._keep(key, standing)

    async def remove(self, tenant: str, record: RecordDebateRequest) -> None:
        """Delete a debate's place."""
        key = storage_key(tenant, record.debate.debate_id)
        await self._documents.delete(TIERS, key)
        self._kept.remove(key)  # last, since it may be read meanwhile

    async def load_recent(self, keys: Keys[str]) -> dict[str, Standing]:
        """Return the places that debates had at a time within the last 30 seconds, as `load` does."""
        kept = self._kept.get_many(keys, self._clock.monotonic())
        read = await self.load([key for key in keys if key not in kept])
        for key, standing in read.items():
            self._keep(key, standing)
        return kept | read

    async def load(self, keys: Keys[str]) -> dict[str, Standing]:
        """Return the places of debates by their keys, without those that are missing or cannot be read."""
        found = await find_by_keys(self._documents, TIERS, keys, fields=Standing.__struct_fields__)
        return dict(read_standings(found))

    async def list_old(self, before: float, limit: int) -> list[tuple[str, str]]:
        """Return tenant and id of debates of the glacial tier that concluded before a time, the oldest first."""
        where: Where = {"tier": GLACIAL, "concluded": Below(before)}
        found = await self._documents.find(TIERS, where, order=(Order("concluded"),), limit=limit)
        return [debate_of(each) for each in found]

    async def move(self, key: str, before: Standing, after: Standing) -> bool:
        """Write a new place if the memory still has the one before; return whether it had."""
        still: dict[str, Any] = {"tier": before.tier, "touched": before.touched}
        moved = await self._documents.update(TIERS, key, to_fields(after), still)
        self._kept.remove(key)  # another one is there now, or was before
        return moved

    def _keep(self, key: str, standing: Standing) -> None:
        self._kept.put(key, standing, self._clock.monotonic() + _KEPT_SECONDS)


def to_fields(standing: Standing) -> Fields:
    """Return the content of a place's document but for its key."""
    return {**asdict(standing), "due_at": standing.due_at}


def read_standings(found: Iterable[Document]) -> list[tuple[str, Standing]]:
    """Return the places in documents with their keys, without those that cannot be read."""
    return list(skip_unreadable(found, _from_document, _KIND))


def _from_document(document: Document) -> tuple[str, Standing]:
    fields: Any = document.fields
    tier = int(fields["tier"])
    if not FAST <= tier <= GLACIAL:
        raise ValueError(f"there is no tier {tier}")
    numbers = {name: float(fields[name]) for name in ("strength", "touched", "importance", "concluded")}
    return document.key, Standing(
        tenant=str(fields["tenant"]), tier=tier, recalls=int(fields["recalls"]), **numbers
    )
