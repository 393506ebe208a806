"""Fixtures over the support servers; a conftest imports the ones it wants."""

from collections.abc import AsyncIterator
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.support.model_server import ModelServer


@pytest.fixture
async def model_server() -> AsyncIterator["ModelServer"]:
    """A model server with no latency and no rules, for one test; set its `rules`, `latency` and switches there."""
    from tests.support.model_server import ModelServer  # a quarter of the time in which pytest starts

    async with ModelServer() as server:
        yield server
