import pytest

from parley.convergence.encoder import CrossEncoder, default_encoder
from parley.convergence.encoder_graph import load_pooled_graph
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


@pytest.fixture(scope="session")
def pooled_graph() -> bytes:
    """The encoder's graph as it is loaded: it takes a second to make."""
    return load_pooled_graph(default_encoder().model)
