"""A moderated debate held in the page, while its orchestrator and its edge are killed: nothing is missing or doubled on it."""

import json
import signal
from collections import Counter
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from parley.client import ParleyClient
from tests.e2e.harness import EDGE, SERVICES, model_server, system
from tests.support.browser import launch_browser, open_page
from tests.support.moderator_rules import moderator_rules

pytestmark = pytest.mark.timeout(
    300
)  # eight processes and a browser start here, on a machine that may be busy
LATENCY_MS = "1500"


async def test_a_debate_is_started_guided_and_approved_in_the_page_across_kills(tmp_path: Path) -> None:
    (tmp_path / "rules.json").write_text(json.dumps(moderator_rules(2)))
    slow = ("--latency-ms", LATENCY_MS, "--first-token-share", "0.1")
    with (
        model_server("--faults", str(tmp_path / "rules.json"), *slow) as models,
        system(tmp_path, models) as services,
    ):
        for name in SERVICES:
            services.start(name)
        services.wait(*SERVICES)
        services.start(EDGE)
        services.wait_for_edge()
        url = f"http://{services.addresses[EDGE]}"
        async with (
            launch_browser() as browser,
            open_page(browser, url) as page,
            open_page(browser, url) as other,
        ):
            await start_debate(page)
            await other.goto(page.url)
            await wait_for_checkpoint(page)

            services.stop("orchestrator", signal.SIGKILL)
            await expect(page.get_by_text("The connection was lost")).to_be_visible()
            services.start("orchestrator")
            services.wait("orchestrator")
            await expect(page.get_by_text("The connection was lost")).to_be_hidden()
            await other.reload()
            await wait_for_checkpoint(other)
            await other.get_by_label("Guidance for the agents").fill("Mind the cost.")
            await other.get_by_role("button", name="Guide", exact=True).click()
            await expect(page.get_by_text("A person: guided: Mind the cost.")).to_be_visible()

            await expect(page.locator(".card[data-state=writing]").first).to_be_visible()
            services.stop(EDGE, signal.SIGKILL)
            await expect(page.get_by_text("The connection was lost")).to_be_visible()
            services.start(EDGE)
            services.wait_for_edge()
            await expect(page.get_by_text("The connection was lost")).to_be_hidden()
            await wait_for_checkpoint(page)
            await page.reload()
            await wait_for_checkpoint(page)
            await page.get_by_role("button", name="Continue").click()
            await page.get_by_role("button", name="Approve").click()
            await expect(page.get_by_role("region", name="The answer")).to_be_visible()
            debate = page.url.rpartition("/")[2]
            for each in (page, other):
                await expect(each.get_by_role("region", name="The answer")).to_be_visible()
                await check_page(each, services.addresses["orchestrator"], debate)

            await page.get_by_role("link", name="Result in full").click()
            async with page.expect_download() as download:
                await page.get_by_role("button", name="Decision (Markdown)").click()
            path = tmp_path / "decision.md"
            await (await download.value).save_as(path)
            assert "Where do sessions live?" in path.read_text()


async def start_debate(page: Page) -> None:
    """Start a moderated debate of two rounds from the form."""
    await page.goto("/new")
    await page.get_by_label("Question").fill("Where do sessions live?")
    await page.get_by_role("radio", name="moderated").check()
    await page.get_by_text("Options of moderated").click()
    await page.get_by_label("Default perspectives").fill("2")
    await page.get_by_label("Max rounds").fill("2")
    await page.get_by_role("button", name="Start the debate").click()
    await expect(page.get_by_role("heading", name="Where do sessions live?")).to_be_visible()


async def wait_for_checkpoint(page: Page) -> None:
    await expect(page.get_by_role("heading", name="The debate waits for you")).to_be_visible(timeout=90_000)


async def check_page(page: Page, orchestrator: str, debate_id: str) -> None:
    """Check that each contribution has one card, and each note stands once."""
    async with ParleyClient(orchestrator) as parley:
        debate = await parley.get(debate_id)
    keys = Counter(f"step-{each.key.replace('/', '-')}" for each in debate.contributions)
    cards = Counter(
        await page.eval_on_selector_all(".card[data-state=done]", "found => found.map(each => each.id)")
    )
    assert keys <= cards
    assert max(cards.values()) == 1
    notes = await page.eval_on_selector_all(
        ".notes li", "found => found.map(each => each.dataset.sequence + each.textContent)"
    )
    assert len(notes) == len(set(notes))
    assert sum("Mind the cost." in each for each in notes) == 1
