"""Fixtures over the support servers; a conftest imports the ones it wants."""

from collections.abc import AsyncIterator

import pytest

from tests.support.model_server import ModelServer

__all__ = ["model_server"]


@pytest.fixture
async def model_server() -> AsyncIterator[ModelServer]:
    """A model server with no latency and no rules, for one test; set its `rules`, `latency` and switches there."""
    async with ModelServer() as server:
        yield server
