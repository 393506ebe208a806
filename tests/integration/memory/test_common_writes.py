"""What a debate leaves is written in few commits."""

from pathlib import Path

import pytest

from parley.memory.changes import CHANGES, SETTLEMENTS
from parley.memory.debate import DEBATES, FILL_PROGRESS
from parley.memory.embedding import EmbeddingClient
from parley.memory.index import DebateIndex
from parley.memory.known_patterns import CONTRIBUTIONS, PATTERNS
from parley.memory.memories import Memories
from parley.memory.moments import MOMENTS, Moments
from parley.memory.outbox import Outbox
from parley.memory.patterns import Patterns
from parley.memory.positions import Positions
from parley.memory.stand_reader import StandReader
from parley.memory.stands import POSITIONS
from parley.memory.tiers import TIERS, Tiers
from parley.memory.tombstones import TOMBSTONES
from parley.memory.traces import TRACES, Traces
from parley.runtime.channel import channel
from parley.runtime.clock import SystemClock
from parley.storage.opening import open_store, open_vectors
from tests.integration.memory.serving import (
    convergence,
    debate,
    with_a_reversal,
    with_all_that_a_debate_leaves,
)
from tests.support.commits import count_commits


async def test_a_record_takes_a_commit_and_its_effects_another_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        convergence() as address,
        channel(address) as opened,
        open_store(f"sqlite:///{tmp_path / 'store'}", "memory") as store,
        open_vectors(f"edge:{tmp_path / 'vectors'}") as vectors,
    ):
        documents, meanings, clock = store.documents, EmbeddingClient(opened), SystemClock()
        await documents.prepare(DEBATES, FILL_PROGRESS, TRACES, TIERS, TOMBSTONES)
        await documents.prepare(CONTRIBUTIONS, PATTERNS, POSITIONS, CHANGES, SETTLEMENTS, MOMENTS)
        traces, tiers = Traces(documents, clock), Tiers(documents, clock)
        index, patterns = (
            DebateIndex(documents, vectors, meanings),
            Patterns(documents, meanings, alone=False),
        )
        positions = Positions(documents, meanings, StandReader(opened), clock)
        outbox = Outbox(documents, [traces, tiers, index, patterns, positions, Moments(documents)], clock)
        memories = Memories(documents, index, traces, tiers, meanings, outbox, clock, alone=False)
        commits = count_commits(monkeypatch)
        await memories.record("acme", with_a_reversal(with_all_that_a_debate_leaves(debate("deb-1"))))
        await outbox.close()
        assert commits == [1, 6, 1], "the record, its effects, and later the end of its mark"
