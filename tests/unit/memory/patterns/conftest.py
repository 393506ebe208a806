"""What tests of critique patterns are given."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from parley.memory import patterns as patterns_module
from parley.memory.known_patterns import CONTRIBUTIONS, PATTERNS
from parley.storage.opening import open_store
from tests.support.word_meanings import WordMeanings
from tests.unit.memory.patterns.kept_patterns import KeptPatterns


@pytest.fixture
async def kept(tmp_path: Path) -> AsyncIterator[KeptPatterns]:
    async with open_store(f"sqlite:///{tmp_path / 'store'}", "memory") as store:
        await store.documents.prepare(CONTRIBUTIONS, PATTERNS)
        yield KeptPatterns(store.documents, WordMeanings(["rollback", "cost", "secret"]))


@pytest.fixture
def counted_at_once() -> Iterator[None]:
    """No contribution waits for others before its patterns count it."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(patterns_module, "MAX_WAITING", 1)
        yield
