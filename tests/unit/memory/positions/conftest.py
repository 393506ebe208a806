"""What tests of the position ledger are given."""

import pytest

from parley.memory.approvals import APPROVALS
from parley.memory.changes import CHANGES, SETTLEMENTS
from parley.memory.stands import POSITIONS
from parley.storage.ports import Documents
from tests.support.word_meanings import WordMeanings
from tests.unit.memory.positions.kept_positions import KeptPositions, Sides


@pytest.fixture(params=[False, True], ids=["replicas", "alone"])
async def kept(documents: Documents, request: pytest.FixtureRequest) -> KeptPositions:
    await documents.prepare(POSITIONS, CHANGES, SETTLEMENTS, APPROVALS)
    return KeptPositions(documents, WordMeanings(["fence", "choir", "gate"]), Sides(), request.param)
