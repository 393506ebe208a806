"""The list of debates."""

import re

from playwright.async_api import Page, expect

from tests.integration.edge.conftest import Edge
from tests.support.browser import find_serious_faults


async def test_debates_are_listed_with_state_question_and_format(page: Page, edge: Edge) -> None:
    await edge.create()
    await page.goto("/")
    row = page.get_by_role("row").filter(has_text="Is water wet?")
    await expect(row).to_contain_text("panel@1")
    await expect(row).to_contain_text("completed")


async def test_a_debate_shows_what_it_cost(page: Page, edge: Edge) -> None:
    debate = await edge.create()
    await edge.orchestrator.watch(debate)
    cost = (await edge.orchestrator.get(debate)).usage.cost_micros
    assert cost
    await page.goto("/")
    await expect(page.get_by_role("row").filter(has_text="Is water wet?")).to_contain_text(
        f"${cost / 1e6:.4f}"
    )


async def test_a_long_question_ends_in_dots(page: Page, edge: Edge) -> None:
    spec = {"question": "Is water wet? " * 20, "panel": {"rounds": 1}}
    status, _ = await edge.post("CreateDebate", {"spec": spec}, Idempotency_Key="long")
    assert status == 200
    await page.goto("/")
    await expect(page.get_by_role("link", name="Is water wet?")).to_have_text(re.compile("wet.*…$"))


async def test_what_costs_nothing_costs_no_fraction_of_a_cent(page: Page) -> None:
    await page.goto("/")
    script = "import('/console/text.js').then(({dollars}) => [dollars(0), dollars(21300)])"
    assert await page.evaluate(script) == ["$0", "$0.0213"]


async def test_a_new_debate_shows_without_a_reload(page: Page, edge: Edge) -> None:
    await page.goto("/")
    await expect(page.get_by_text("There is no debate yet.")).to_be_visible()
    await edge.create()
    await expect(page.get_by_role("link", name="Is water wet?")).to_be_visible()


async def test_a_search_narrows_the_list(page: Page, edge: Edge) -> None:
    await edge.create()
    await page.goto("/")
    await expect(page.get_by_role("link", name="Is water wet?")).to_be_visible()
    await page.get_by_label("Search").fill("fire")
    await expect(page.get_by_text("No debate here has these words.")).to_be_visible()
    await page.get_by_label("Search").fill("WATER")
    await expect(page.get_by_role("link", name="Is water wet?")).to_be_visible()


async def test_no_serious_fault_of_access_is_found(page: Page, edge: Edge) -> None:
    await edge.create()
    await page.goto("/")
    await expect(page.get_by_role("link", name="Is water wet?")).to_be_visible()
    assert await find_serious_faults(page) == []
