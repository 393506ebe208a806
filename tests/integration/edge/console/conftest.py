"""A browser before an edge."""

from collections.abc import AsyncIterator

import pytest
from playwright.async_api import Browser, Page

from tests.integration.edge.conftest import Edge
from tests.support.browser import launch_browser, open_page


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    async with launch_browser() as browser:
        yield browser


@pytest.fixture
async def page(browser: Browser, edge: Edge) -> AsyncIterator[Page]:
    async with open_page(browser, edge.url) as page:
        yield page
