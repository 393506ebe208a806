import pytest

from parley.convergence.models import MiniLm, StaticWords


@pytest.fixture(scope="session")
def minilm() -> MiniLm:
    return MiniLm()


@pytest.fixture(scope="session")
def static_words() -> StaticWords:
    return StaticWords()
