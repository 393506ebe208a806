"""A browser before an edge. Every page must run without an error, and without a breach of its security policy."""

import shutil
from collections.abc import AsyncIterator

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page, async_playwright, expect

from tests.integration.edge.conftest import Edge

_CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
_SERIOUS = ("serious", "critical")
_WITHIN_MS = 20_000
expect.set_options(timeout=_WITHIN_MS)
_NOTE_BREACHES = """
window.breaches = [];
document.addEventListener("securitypolicyviolation", (each) => window.breaches.push(each.violatedDirective));
"""


@pytest.fixture
async def browser() -> AsyncIterator[Browser]:
    if _CHROMIUM is None:
        pytest.skip("no Chromium here: install the package chromium to test the console's pages")
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            await browser.close()


@pytest.fixture
async def page(browser: Browser, edge: Edge) -> AsyncIterator[Page]:
    """A page of the edge; the test fails at its end if a script failed or the policy was breached."""
    context = await browser.new_context(base_url=edge.url)
    context.set_default_timeout(_WITHIN_MS)
    await context.add_init_script(_NOTE_BREACHES)
    page = await context.new_page()
    failures: list[str] = []
    page.on("pageerror", lambda error: failures.append(str(error)))
    yield page
    assert failures == []
    assert await page.evaluate("window.breaches") == []
    await context.close()


async def find_serious_faults(page: Page) -> list[str]:
    """Return what `axe` finds that keeps people out, in the light and in the dark scheme."""
    found = []
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme)
        results = await Axe().run(page)
        found += [
            f"{scheme}: {each['id']}: {node['html'][:200]}"
            for each in results.response["violations"]
            if each["impact"] in _SERIOUS
            for node in each["nodes"]
        ]
    return found
