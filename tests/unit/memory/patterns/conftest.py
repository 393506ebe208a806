"""What tests of critique patterns are given."""

from collections.abc import Iterator

import pytest

from parley.memory import patterns as patterns_module
from parley.memory.known_patterns import CONTRIBUTIONS, PATTERNS
from parley.storage.ports import Documents
from tests.support.word_meanings import WordMeanings
from tests.unit.memory.patterns.kept_patterns import KeptPatterns


@pytest.fixture
async def kept(documents: Documents) -> KeptPatterns:
    await documents.prepare(CONTRIBUTIONS, PATTERNS)
    return KeptPatterns(documents, WordMeanings(["rollback", "cost", "secret"]))


@pytest.fixture
def counted_at_once() -> Iterator[None]:
    """No contribution waits for others before its patterns count it."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(patterns_module, "MAX_WAITING", 1)
        yield
