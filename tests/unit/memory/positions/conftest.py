"""What tests of the position ledger are given."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from parley.memory.approvals import APPROVALS
from parley.memory.changes import CHANGES, SETTLEMENTS
from parley.memory.stands import POSITIONS
from parley.storage.opening import open_store
from tests.support.word_meanings import WordMeanings
from tests.unit.memory.positions.kept_positions import KeptPositions, Sides


@pytest.fixture(params=[False, True], ids=["replicas", "alone"])
async def kept(tmp_path: Path, request: pytest.FixtureRequest) -> AsyncIterator[KeptPositions]:
    async with open_store(f"sqlite:///{tmp_path / 'store'}", "memory") as store:
        await store.documents.prepare(POSITIONS, CHANGES, SETTLEMENTS, APPROVALS)
        yield KeptPositions(store.documents, WordMeanings(["fence", "choir", "gate"]), Sides(), request.param)
