"""Memories sink as they become weak, rise as they are recalled, and are forgotten from the slowest tier alone."""

from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from parley.memory import consolidation as consolidation_module
from parley.memory import tiers as tiers_module
from parley.memory.approvals import APPROVALS
from parley.memory.consolidation import LEASE_SECONDS, Consolidation
from parley.memory.debate import DEBATES, FILL_PROGRESS
from parley.memory.index import DebateIndex
from parley.memory.known_patterns import CONTRIBUTIONS, PATTERNS
from parley.memory.lease import LEASES, Lease
from parley.memory.memories import Memories
from parley.memory.outbox import Outbox
from parley.memory.patterns import Patterns
from parley.memory.retention import Retention, end_effect
from parley.memory.tiers import (
    FAST,
    GLACIAL,
    MEDIUM,
    SLOW,
    TIERS,
    Standing,
    Tiers,
    start_standing,
    to_fields,
)
from parley.memory.tombstones import TOMBSTONES
from parley.memory.traces import TRACES, Traces
from parley.memory.writing import write_together
from parley.storage.opening import open_store, open_vectors
from parley.storage.ports import Document, Documents, Vectors
from tests.support.manual_clock import ManualClock
from tests.support.stopping_stores import StoppingDocuments, Writes
from tests.unit.memory.outboxes import OneMeaning
from tests.unit.memory.test_index import record

HOUR = 3600.0
DAY = 24 * HOUR


@dataclass(frozen=True)
class Replica:
    documents: Documents
    tiers: Tiers
    memories: Memories
    consolidation: Consolidation
    writes: Writes

    async def places(self) -> dict[str, int]:
        found = await self.documents.find(TIERS, {})
        return {each.key: int(str(each.fields["tier"])) for each in found}

    async def recall(self) -> list[str]:
        found = self.memories.recall("acme", "later", domain="", excluded=(), limit=100, floor=0.1)
        return [each.debate_id async for each in found]


@dataclass
class Stage:
    documents: Documents
    vectors: Vectors
    clock: ManualClock

    def replica(self, *, days: float = 0, patterns_days: float = 0) -> Replica:
        writes = Writes()
        documents = StoppingDocuments(self.documents, writes)
        index = DebateIndex(documents, self.vectors, OneMeaning())
        traces, tiers = Traces(documents, self.clock), Tiers(documents, self.clock)
        patterns = Patterns(documents, OneMeaning(), alone=False)
        outbox = Outbox(documents, [traces, tiers, index, patterns], self.clock)
        memories = Memories(documents, index, traces, tiers, OneMeaning(), outbox, self.clock, alone=False)
        lease = Lease(documents, "consolidation", LEASE_SECONDS, self.clock)
        retentions = [
            Retention(days, tiers.list_old, memories.forget),
            Retention(patterns_days, patterns.list_old, end_effect(patterns)),
        ]
        consolidation = Consolidation(documents, tiers, memories, lease, self.clock, retentions)
        return Replica(documents, tiers, memories, consolidation, writes)

    @property
    def now(self) -> float:
        return self.clock.now().timestamp()

    async def put(self, key: str, tier: int, **fields: Any) -> None:
        """Write a memory's place, as it came to its tier now."""
        standing = replace(start_standing("acme", 0.5, self.now, self.now), tier=tier, **fields)
        await self.documents.insert(TIERS, key, {"key": key, **to_fields(standing)})


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Stage]:
    async with _open_stage(tmp_path) as stage:
        yield stage


@asynccontextmanager
async def _open_stage(folder: Path) -> AsyncIterator[Stage]:
    async with (
        open_store(f"sqlite:///{folder / 'store'}", "memory") as store,
        open_vectors(f"edge:{folder / 'vectors'}") as vectors,
    ):
        await store.documents.prepare(
            DEBATES, FILL_PROGRESS, TRACES, TIERS, LEASES, TOMBSTONES, APPROVALS, CONTRIBUTIONS, PATTERNS
        )
        yield Stage(store.documents, vectors, ManualClock())


@pytest.mark.parametrize(
    ("tier", "half_life"), [(FAST, HOUR), (MEDIUM, DAY), (SLOW, 7 * DAY), (GLACIAL, 30 * DAY)]
)
def test_strength_halves_after_the_half_life_of_its_tier(tier: int, half_life: float) -> None:
    standing = Standing("acme", tier, 0.8, 1000.0, 0, 0.5, 0.0)
    assert standing.measure_strength(1000.0 + half_life) == pytest.approx(0.4)
    assert standing.measure_strength(0.0) == 0.8, "a clock that goes back makes nothing stronger"


def test_a_memory_is_due_when_a_quarter_of_its_strength_is_left_and_more_important_ones_are_due_later() -> (
    None
):
    plain, important = (start_standing("acme", each, 0.0, 1000.0) for each in (0.0, 1.0))
    assert (plain.due_at, important.due_at) == (1000 + HOUR, 1000 + 2 * HOUR)
    assert plain.measure_strength(plain.due_at or 0) == pytest.approx(0.25)
    assert replace(plain, tier=GLACIAL).due_at is None


def test_a_memory_of_a_faster_tier_is_more_present() -> None:
    places = [
        Standing("acme", tier, strength, 0.0, 0, 0.5, 0.0) for tier in range(4) for strength in (1.0, 0.26)
    ]
    presences = [each.measure_presence(0.0) for each in places]
    assert presences == sorted(presences, reverse=True)
    assert 0 < presences[-1] < presences[0] == 1


async def test_a_new_memory_is_in_the_fast_tier_and_sinks_to_the_glacial_one_if_it_is_not_recalled(
    stage: Stage,
) -> None:
    replica = stage.replica()
    await replica.memories.record("acme", record("deb-1"))
    seen = []
    for hours in (0, 2, 48, 14 * 24, 365 * 24):
        stage.clock.advance(hours * HOUR)
        await replica.consolidation.consolidate()
        seen.append((await replica.places())["acme/deb-1"])
    assert seen == [FAST, MEDIUM, SLOW, GLACIAL, GLACIAL]
    assert await replica.recall() == ["deb-1"], "it is kept without end"


async def test_a_memory_that_is_recalled_again_rises_and_an_important_one_at_once(stage: Stage) -> None:
    replica = stage.replica()
    for debate in ("deb-1", "deb-2"):
        await replica.memories.record("acme", record(debate))
    for key, importance in (("acme/deb-1", 0.5), ("acme/deb-2", 0.9)):
        standing = start_standing("acme", importance, stage.now, stage.now)
        await stage.documents.update(TIERS, key, to_fields(replace(standing, tier=SLOW)))
    await replica.recall()
    await replica.consolidation.consolidate()
    assert await replica.places() == {"acme/deb-1": SLOW, "acme/deb-2": MEDIUM}
    await replica.recall()
    await replica.consolidation.consolidate()
    assert await replica.places() == {"acme/deb-1": MEDIUM, "acme/deb-2": FAST}


async def test_a_memory_that_is_recalled_stays_as_long_as_a_new_one(stage: Stage) -> None:
    replica = stage.replica()
    await replica.memories.record("acme", record("deb-1"))
    stage.clock.advance(1.4 * HOUR)
    await replica.recall()
    await replica.consolidation.consolidate()
    stage.clock.advance(1.9 * HOUR)
    await replica.consolidation.consolidate()
    assert await replica.places() == {"acme/deb-1": FAST}


async def test_the_weakest_of_a_tenant_sink_from_a_tier_that_is_too_full(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(tiers_module.CAPACITIES, FAST, 2)
    monkeypatch.setitem(tiers_module.CAPACITIES, MEDIUM, 1)
    replica = stage.replica()
    for number in range(5):
        await stage.put(f"acme/deb-{number}", FAST, strength=0.5 + number / 10)
    await stage.put("bolt/deb-9", FAST, tenant="bolt", strength=0.3)
    await replica.consolidation.consolidate()
    assert await replica.places() == {
        "acme/deb-0": SLOW,
        "acme/deb-1": SLOW,
        "acme/deb-2": MEDIUM,
        "acme/deb-3": FAST,
        "acme/deb-4": FAST,
        "bolt/deb-9": FAST,
    }


async def test_memories_of_a_tier_that_is_far_too_full_are_read_in_pages_which_stop_the_event_loop_shortly(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(tiers_module.CAPACITIES, FAST, 2)
    read = list[int]()

    def note_read(found: Sequence[Document]) -> list[tuple[str, Standing]]:
        read.append(len(found))
        return tiers_module.read_standings(found)

    monkeypatch.setattr(consolidation_module, "read_standings", note_read)
    replica = stage.replica()
    for number in range(250):
        await stage.put(f"acme/deb-{number}", FAST, strength=0.5 + number / 1_000)
    await replica.consolidation.consolidate()
    assert Counter((await replica.places()).values()) == {FAST: 2, MEDIUM: 248}
    assert max(read) == 100


async def test_a_consolidation_writes_what_is_due_and_what_was_recalled_and_nothing_else(
    stage: Stage,
) -> None:
    replica = stage.replica()
    await replica.memories.record("acme", record("deb-recalled"))
    stage.clock.advance(0.5 * HOUR)
    for number in range(300):
        await stage.put(f"acme/deb-{number}", (MEDIUM, SLOW, GLACIAL)[number % 3])
    for number in range(7):
        await stage.put(f"acme/due-{number}", FAST, strength=0.26)
    stage.clock.advance(0.2 * HOUR)
    assert await replica.recall() == ["deb-recalled"]
    replica.writes.made.clear()
    await replica.consolidation.consolidate()
    assert replica.writes.made.count("update tier") == 7 + 1
    replica.writes.made.clear()
    await replica.consolidation.consolidate()
    assert set(replica.writes.made) <= {"update lease"}, "nothing has changed since"


async def test_one_replica_consolidates_at_a_time_and_another_goes_on_when_it_is_gone(stage: Stage) -> None:
    first, second = stage.replica(), stage.replica()
    await stage.put("acme/deb-1", FAST)
    await first.consolidation.consolidate()
    stage.clock.advance(2 * HOUR)
    await second.consolidation.consolidate()
    assert await second.places() == {"acme/deb-1": FAST}, (
        "the first one has the lease as far as the second knows"
    )
    await first.consolidation.consolidate()
    assert await second.places() == {"acme/deb-1": MEDIUM}
    stage.clock.advance(DAY * 3)
    await second.consolidation.consolidate()
    assert await second.places() == {"acme/deb-1": MEDIUM}, "it has just seen the first one renew"
    stage.clock.advance(LEASE_SECONDS)
    await second.consolidation.consolidate()
    assert await second.places() == {"acme/deb-1": SLOW}


async def test_only_glacial_memories_older_than_the_retention_are_forgotten(stage: Stage) -> None:
    keeps, forgets = stage.replica(), stage.replica(days=10)
    for debate in ("deb-old", "deb-new", "deb-slow"):
        await keeps.memories.record("acme", record(debate))
    for debate, tier, days in (("deb-old", GLACIAL, 11), ("deb-new", GLACIAL, 9), ("deb-slow", SLOW, 11)):
        standing = start_standing("acme", 0.5, stage.now - days * DAY, stage.now)
        await stage.documents.update(TIERS, f"acme/{debate}", to_fields(replace(standing, tier=tier)))
    await keeps.consolidation.consolidate()
    assert len(await keeps.places()) == 3
    stage.clock.advance(LEASE_SECONDS)
    await forgets.consolidation.consolidate()
    stage.clock.advance(LEASE_SECONDS)
    await forgets.consolidation.consolidate()
    assert await keeps.places() == {"acme/deb-new": GLACIAL, "acme/deb-slow": SLOW}
    assert sorted(await keeps.recall()) == ["deb-new", "deb-slow"]
    assert await stage.documents.get(DEBATES, "acme/deb-old") is None


async def test_a_debate_that_is_older_than_patterns_are_kept_stays_remembered_and_counts_in_none(
    stage: Stage,
) -> None:
    replica = stage.replica(patterns_days=10)
    for debate, days in (("deb-old", 11), ("deb-new", 9)):
        past = record(debate)
        past.debate.concluded_at.FromSeconds(int(stage.now - days * DAY))
        past.issues.add(critic_agent_id="ada", target_agent_id="cy").issue.text = "No cost."
        await replica.memories.record("acme", past)
    await stage.replica().consolidation.consolidate()
    assert len(await stage.documents.find(CONTRIBUTIONS, {})) == 2, "it keeps patterns without end"
    stage.clock.advance(LEASE_SECONDS)
    for _ in range(2):
        await replica.consolidation.consolidate()
        stage.clock.advance(LEASE_SECONDS)
    assert [each.key for each in await stage.documents.find(CONTRIBUTIONS, {})] == ["acme/deb-new"]
    (pattern,) = await stage.documents.find(PATTERNS, {})
    assert "deb-old" not in str(pattern.fields)
    assert sorted(await replica.recall()) == ["deb-new", "deb-old"]


async def test_a_debate_that_was_forgotten_can_be_recorded_again_30_days_later_and_not_before(
    stage: Stage,
) -> None:
    replica = stage.replica()
    await replica.memories.forget("acme", "deb-1")
    stage.clock.advance(20 * DAY)
    await replica.memories.forget("acme", "deb-1")
    await replica.memories.forget("acme", "deb-2")
    stage.clock.advance(29.9 * DAY)
    await replica.consolidation.consolidate()
    await replica.memories.record("acme", record("deb-1"))
    assert await replica.recall() == [], "the last time counts"
    stage.clock.advance(0.2 * DAY)
    await replica.consolidation.consolidate()
    assert not await stage.documents.find(TOMBSTONES, {})
    await replica.memories.record("acme", record("deb-1"))
    assert await replica.recall() == ["deb-1"]


async def test_a_place_that_ranking_uses_is_read_once_in_30_seconds_unless_this_process_moves_it(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stage.put("acme/deb-1", MEDIUM)
    tiers, find, read = Tiers(stage.documents, stage.clock), stage.documents.find, list[str]()

    async def note(*args: Any, **kwargs: Any) -> Sequence[Document]:
        found = await find(*args, **kwargs)
        read.extend(each.key for each in found)
        return found

    monkeypatch.setattr(stage.documents, "find", note)
    await tiers.apply("acme", record("deb-2"), write_together)
    await tiers.load_recent(["acme/deb-1", "acme/deb-2"])
    recent = await tiers.load_recent(["acme/deb-1", "acme/deb-2"])
    assert {key: each.tier for key, each in recent.items()} == {"acme/deb-1": MEDIUM, "acme/deb-2": FAST}
    assert read == ["acme/deb-1"], "the other one was just written"
    await tiers.move("acme/deb-1", recent["acme/deb-1"], recent["acme/deb-1"].sink(stage.now))
    assert (await tiers.load_recent(["acme/deb-1"]))["acme/deb-1"].tier == SLOW
    await tiers.remove("acme", record("deb-2"))
    assert await tiers.load_recent(["acme/deb-2"]) == {}
    read.clear()
    stage.clock.advance(30)
    await tiers.load_recent(["acme/deb-1"])
    assert read == ["acme/deb-1"]
