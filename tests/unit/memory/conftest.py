"""What tests of memory are given."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from parley.storage.opening import open_store
from parley.storage.ports import Documents


@pytest.fixture
async def documents(tmp_path: Path) -> AsyncIterator[Documents]:
    """The documents of a new store of memory."""
    async with open_store(f"sqlite:///{tmp_path / 'store'}", "memory") as store:
        yield store.documents
