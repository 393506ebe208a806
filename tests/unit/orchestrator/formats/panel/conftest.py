"""A replica and what stands behind it, on a store of its own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.support.orchestration import Backstage, Replica, backstage


@pytest.fixture
async def stage(tmp_path: Path) -> AsyncIterator[Backstage]:
    async with backstage(tmp_path) as behind:
        yield behind


@pytest.fixture
async def replica(stage: Backstage) -> AsyncIterator[Replica]:
    async with stage.replica() as started:
        yield started
