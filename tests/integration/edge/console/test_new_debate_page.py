"""A debate started in the page."""

from pathlib import Path

from playwright.async_api import Page, expect

from tests.integration.edge.conftest import Edge
from tests.support.browser import find_serious_faults


async def test_a_debate_starts_with_what_the_form_says(page: Page, edge: Edge, tmp_path: Path) -> None:
    (tmp_path / "load.md").write_text("Ten logins a second.")
    await page.goto("/new")
    await page.get_by_label("Question").fill("Where do sessions live?")
    await page.get_by_label("Documents that the agents may read").set_input_files(tmp_path / "load.md")
    await page.get_by_role("radio", name="panel").check()
    await page.get_by_role("checkbox", name="Cy").uncheck()
    await page.get_by_text("Options of panel").click()
    await page.get_by_label("Rounds", exact=True).fill("2")
    await page.get_by_label("Synthesis method").select_option("merge")
    await page.get_by_text("Limits and memory").click()
    await page.get_by_label("History limit").fill("0")
    await expect(page.get_by_text("Expected: ")).to_be_visible()
    await page.get_by_role("button", name="Start the debate").click()
    await expect(page.get_by_role("heading", name="Where do sessions live?")).to_be_visible()
    spec = (await edge.orchestrator.get(page.url.rpartition("/")[2])).spec
    assert [each.agent.id for each in spec.agents] == ["ada", "bo"]
    assert [(each.path, each.text) for each in spec.context] == [("load.md", "Ten logins a second.")]
    assert (spec.panel.rounds, spec.history_limit) == (2, 0)
    assert spec.panel.synthesis_method == 3


async def test_what_is_refused_says_why_and_the_form_stays(page: Page, edge: Edge) -> None:
    await page.goto("/new")
    await page.get_by_label("Question").fill("Where do sessions live?")
    for each in ("Ada", "Bo"):
        await page.get_by_role("checkbox", name=each).uncheck()
    await page.get_by_text("Options of panel").click()
    await page.get_by_label("Synthesis method").select_option("voting")
    await page.get_by_role("button", name="Start the debate").click()
    await expect(page.get_by_role("alert")).to_contain_text("two agents")
    await expect(page.get_by_label("Question")).to_have_value("Where do sessions live?")


async def test_no_serious_fault_of_access_is_found(page: Page, edge: Edge) -> None:
    await page.goto("/new")
    await page.get_by_text("Options of panel").click()
    await expect(page.get_by_label("Termination: threshold (percent)")).to_be_visible()
    wide = "all => all.filter(each => each.scrollWidth > each.clientWidth).map(each => each.innerText)"
    assert await page.locator(".option").evaluate_all(wide) == [], "no field lies on the next one"
    assert await find_serious_faults(page) == []
    await page.goto("/agents")
    await expect(page.get_by_role("region", name="Agents").get_by_role("cell", name="Ada")).to_be_visible()
    assert await find_serious_faults(page) == []
