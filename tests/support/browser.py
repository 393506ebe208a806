"""Debian's Chromium, driven by Playwright, and what `axe` finds on a page."""

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page, async_playwright, expect

_CHROMIUM: Final = next(
    filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "chromium-browser"))), None
)
"""The shell has no windows, with tabs and menus that nobody sees: a page takes less than half of the processor's time."""
_SERIOUS: Final = ("serious", "critical")
WITHIN_MS: Final = 30_000
"""How long a page may take on a busy machine."""
_NOTE_BREACHES: Final = """
window.breaches = [];
document.addEventListener("securitypolicyviolation", (each) => window.breaches.push(each.violatedDirective));
"""
expect.set_options(timeout=WITHIN_MS)


@asynccontextmanager
async def launch_browser() -> AsyncIterator[Browser]:
    """A browser while the block runs; without one the test is skipped."""
    if _CHROMIUM is None:
        pytest.skip(
            "no Chromium here: install the package chromium-headless-shell to test the console's pages"
        )
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=_CHROMIUM, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            await browser.close()


@asynccontextmanager
async def open_page(browser: Browser, url: str) -> AsyncIterator[Page]:
    """A page below an address; at the end of the block no script may have failed, and the policy may not have been breached."""
    context = await browser.new_context(base_url=url)
    context.set_default_timeout(WITHIN_MS)
    await context.add_init_script(_NOTE_BREACHES)
    page = await context.new_page()
    failures: list[str] = []
    page.on("pageerror", lambda error: failures.append(str(error)))
    yield page
    assert failures == []
    assert await page.evaluate("window.breaches") == []
    await context.close()


async def find_serious_faults(page: Page) -> list[str]:
    """Return what keeps people out, in the light and in the dark scheme."""
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
