"""What a debate came to, in the page."""

import json
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from parley.client import ParleyClient
from parley.receipts.keys import create_ring
from parley.receipts.verification import verify_receipt
from tests.integration.edge.conftest import Edge
from tests.support.browser import find_serious_faults
from tests.support.receipts import OLD, pem_of, sign_debate
from tests.support.scripted_answers import judgement
from tests.support.scripted_gateway import ScriptedGateway


@pytest.fixture
def orchestrator_settings(tmp_path: Path) -> dict[str, Any]:
    (tmp_path / "key.pem").write_text(pem_of(OLD))
    return {"receipt_keys": str(tmp_path / "key.pem")}


async def test_the_answer_comes_first_then_how_sure_it_is_and_all_that_was_said(
    page: Page, edge: Edge
) -> None:
    debate = await edge.run_debate()
    await page.goto(f"/debates/{debate}/result")
    await expect(page.get_by_role("region", name="The answer")).to_contain_text("The answer.")
    decided = page.get_by_role("region", name="What was decided")
    await expect(decided).to_contain_text(
        "How sure: 0 of 3 first drafts are for it; the judge says 80 of 100"
    )
    await expect(decided).to_contain_text("33 % of the first drafts")
    await expect(page.get_by_role("img", name="Issues: ")).to_be_visible()
    await page.get_by_text("Round 1 of 1").click()
    await expect(page.get_by_role("article", name="Ada: refinement")).to_contain_text("ada answers")
    assert await find_serious_faults(page) == []


async def test_a_link_to_a_contribution_opens_its_round_and_an_unknown_vote_is_no_share_of_nothing(
    page: Page, edge: Edge, gateway: ScriptedGateway
) -> None:
    gateway.judge = lambda schema: judgement(schema, positions=None)
    debate = await edge.run_debate()
    await page.goto(f"/debates/{debate}/result#step-round-1-refine-bo")
    await expect(page.get_by_role("article", name="Bo: refinement")).to_be_in_viewport()
    decided = page.get_by_role("region", name="What was decided")
    await expect(decided).to_contain_text("How sure: who takes which position cannot be told")
    await expect(decided).to_contain_text(
        "Who takes which position, at first and in the end, cannot be told: who wrote the answer did not"
    )
    await expect(decided).not_to_contain_text("%")


async def test_a_link_within_the_page_leaves_what_is_open_as_it_is(page: Page, edge: Edge) -> None:
    debate = await edge.run_debate()
    await page.goto(f"/debates/{debate}/result")
    await page.get_by_text("Round 1 of 1").click()
    await page.get_by_role("link", name="Link to Ada: refinement").click()
    await page.wait_for_url("**/result#step-round-1-refine-ada")
    await page.evaluate("new Promise(requestAnimationFrame)")
    await expect(page.get_by_role("article", name="Ada: refinement")).to_be_visible()
    asked = "performance.getEntriesByType('resource').filter(each => each.name.includes('GetAnswer')).length"
    assert await page.evaluate(asked) == 1


async def test_report_receipt_and_debate_are_downloaded(page: Page, edge: Edge, tmp_path: Path) -> None:
    debate = await edge.run_debate()
    await page.goto(f"/debates/{debate}/result")
    found = {}
    for name in ("Report (Markdown)", "Debate (JSON)", "Receipt (signed)"):
        async with page.expect_download() as download:
            await page.get_by_role("button", name=name).click()
        path = tmp_path / (await download.value).suggested_filename
        await (await download.value).save_as(path)
        found[path.name] = path.read_text()
    async with page.expect_download() as download:
        await page.get_by_role("link", name="Report (one HTML file)").click()
    page_of_report = tmp_path / (await download.value).suggested_filename
    await (await download.value).save_as(page_of_report)
    assert "Is water wet?" in found[f"{debate}.md"]
    assert "<title>Is water wet?" in page_of_report.read_text()
    assert json.loads(found[f"{debate}.json"])["id"] == debate
    assert verify_receipt(found[f"{debate}.receipt.json"], create_ring([OLD]).keys).debate_id == debate


async def test_a_debate_of_another_system_says_so(page: Page, edge: Edge) -> None:
    foreign = sign_debate()
    async with ParleyClient(edge.orchestrator.server.address) as parley:
        kept = await parley.import_debate(foreign.receipt, create_ring([OLD]).keys, foreign.log_file)
    await page.goto("/")
    await expect(page.get_by_role("row").filter(has_text="imported")).to_be_visible()
    await page.goto(f"/debates/{kept.debate_id}/result")
    await expect(page.get_by_text("Imported from another system on 20")).to_be_visible()


async def test_a_debate_without_an_answer_leads_to_its_watch(
    page: Page, edge: Edge, gateway: ScriptedGateway
) -> None:
    gateway.hold("round/1/propose/*")
    debate = await edge.create()
    await page.goto(f"/debates/{debate}/result")
    await page.get_by_role("link", name="Watch the debate").click()
    await expect(page.get_by_role("heading", name="Round 1 of 1")).to_be_visible()
