"""A memory service beside a convergence service that embeds by words."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from parley.v1.memory_pb2_grpc import MemoryServiceStub
from tests.integration.memory.serving import convergence, run_memory


@pytest.fixture
async def memory(tmp_path: Path) -> AsyncIterator[MemoryServiceStub]:
    async with convergence() as address, run_memory(tmp_path, address) as stub:
        yield stub
