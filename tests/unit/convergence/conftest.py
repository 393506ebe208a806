import pytest

from parley.convergence.encoder import CrossEncoder, default_encoder
from parley.convergence.models import MiniLm, StaticWords


@pytest.fixture(scope="session")
def minilm() -> MiniLm:
    return MiniLm()


@pytest.fixture(scope="session")
def static_words() -> StaticWords:
    return StaticWords()


@pytest.fixture(scope="session")
def cross_encoder() -> CrossEncoder:
    return CrossEncoder(default_encoder())
