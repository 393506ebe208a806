"""One browser before an edge for each test. A browser takes a second of the processor to start, and ends with its loop: all is on one loop."""

import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page

from tests.integration.edge.conftest import Edge, open_edge
from tests.support.browser import launch_browser, open_page
from tests.support.orchestration import Orchestrator, orchestrating
from tests.support.scripted_gateway import ScriptedGateway

_FOLDER: Final = f"{Path(__file__).parent}{os.sep}"

on_one_loop = pytest_asyncio.fixture(loop_scope="session")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for each in items:
        if str(each.path).startswith(_FOLDER):
            each.add_marker(pytest.mark.asyncio(loop_scope="session"), append=False)


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def browser() -> AsyncIterator[Browser]:
    async with launch_browser() as browser:
        yield browser


@on_one_loop
async def orchestrator(
    gateway: ScriptedGateway, tmp_path: Path, orchestrator_settings: dict[str, Any]
) -> AsyncIterator[Orchestrator]:
    async with gateway.served() as server, orchestrating(tmp_path, server, **orchestrator_settings) as served:
        yield served


@on_one_loop
async def edge(orchestrator: Orchestrator, settings: dict[str, Any]) -> AsyncIterator[Edge]:
    async with open_edge(orchestrator, settings) as opened:
        yield opened


@on_one_loop
async def page(browser: Browser, edge: Edge) -> AsyncIterator[Page]:
    async with open_page(browser, edge.url) as page:
        yield page
