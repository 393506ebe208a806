"""A debate in the page: text as it streams, critiques beside what they criticize, checkpoints, and what a person does."""

from typing import Any

import pytest
from playwright.async_api import Page, expect

from tests.integration.edge.conftest import Edge
from tests.support.browser import find_serious_faults
from tests.support.moderated_debates import ModeratedScript
from tests.support.scripted_answers import criticism
from tests.support.scripted_gateway import ScriptedGateway

MODERATED: dict[str, Any] = {
    "question": "Where do sessions live?",
    "moderated": {"maxRounds": 2, "checkpoints": True},
    "historyLimit": 0,
}


async def create(edge: Edge, spec: dict[str, Any], key: str = "one") -> str:
    status, answer = await edge.post("CreateDebate", {"requestId": key, "spec": spec})
    assert status == 200, answer
    return str(answer["debateId"])


class TestOfAPanel:
    async def test_text_shows_while_an_agent_writes_and_then_its_answer(
        self, page: Page, edge: Edge, gateway: ScriptedGateway
    ) -> None:
        hold = gateway.hold("round/1/refine/ada")
        debate = await edge.create()
        await page.goto(f"/debates/{debate}")
        await expect(page.get_by_role("heading", name="Is water wet?")).to_be_visible()
        card = page.get_by_role("article", name="Ada: refinement")
        await expect(card).to_have_attribute("data-state", "writing")
        hold.release()
        await expect(card).to_have_attribute("data-state", "done")
        await expect(card).to_contain_text("ada answers round/1/refine/ada")
        await expect(page.get_by_role("region", name="The answer")).to_contain_text("The answer.")

    async def test_issues_show_their_severity_and_what_became_of_them(
        self, page: Page, edge: Edge, gateway: ScriptedGateway
    ) -> None:
        gateway.critic = lambda _step, _agent: criticism("As agent A said in A.1, it forgets ice.")
        debate = await edge.create()
        await page.goto(f"/debates/{debate}")
        card = page.get_by_role("article", name="Bo: critique of Ada")
        await expect(card).to_contain_text("As Ada said in issue 1 of Ada, it forgets ice.")
        await expect(card).to_contain_text("severity 5")
        await expect(card).to_contain_text("not answered")

    async def test_an_agent_that_fails_says_why(
        self, page: Page, edge: Edge, gateway: ScriptedGateway
    ) -> None:
        gateway.fail("round/1/propose/bo")
        debate = await edge.create()
        await page.goto(f"/debates/{debate}")
        await expect(page.get_by_role("article", name="Bo: proposal")).to_contain_text("BAD_REQUEST")


class TestOfCheckpoints:
    @pytest.fixture
    def gateway(self) -> ScriptedGateway:
        return ModeratedScript(
            debaters=2, questions=("How many users?",), decisions=("clarify", "go_on")
        ).gateway()

    async def test_a_person_answers_guides_and_approves_and_another_sees_it_at_once(
        self, page: Page, edge: Edge
    ) -> None:
        debate = await create(edge, MODERATED)
        await page.goto(f"/debates/{debate}")
        other = await page.context.new_page()
        await other.goto(f"/debates/{debate}")
        for each in (page, other):
            await expect(each.get_by_role("heading", name="The debate waits for you")).to_be_visible()
        await page.get_by_label("How many users?").fill("some thousand")
        await page.get_by_role("button", name="Answer", exact=True).click()
        await expect(other.get_by_text("A person: answered: some thousand")).to_be_visible()
        await expect(other.get_by_label("Guidance for the agents")).to_be_visible()
        await other.get_by_label("Guidance for the agents").fill("Mind the cost.")
        await other.get_by_role("button", name="Guide", exact=True).click()
        await expect(page.get_by_text("A person: guided: Mind the cost.")).to_be_visible()
        await page.get_by_role("button", name="Continue").click()
        await page.get_by_role("button", name="Approve").click()
        for each in (page, other):
            await expect(each.get_by_role("region", name="The answer")).to_be_visible()

    async def test_no_serious_fault_of_access_is_found_while_it_waits(self, page: Page, edge: Edge) -> None:
        debate = await create(edge, MODERATED)
        await page.goto(f"/debates/{debate}")
        await expect(page.get_by_role("heading", name="The debate waits for you")).to_be_visible()
        assert await find_serious_faults(page) == []


class TestOfSteering:
    async def test_a_debate_is_paused_resumed_and_cancelled(
        self, page: Page, edge: Edge, gateway: ScriptedGateway
    ) -> None:
        gateway.hold("round/1/propose/*")
        debate = await edge.create()
        page.on("dialog", lambda dialog: dialog.accept())
        await page.goto(f"/debates/{debate}")
        await page.get_by_role("button", name="Pause").click()
        await expect(page.get_by_text("A person: paused the debate")).to_be_visible()
        gateway.release("round/1/propose/*")
        await page.get_by_role("button", name="Resume").click()
        await expect(page.get_by_role("region", name="The answer")).to_be_visible()

    async def test_a_debate_that_is_not_there_is_said_to_be_missing(self, page: Page) -> None:
        await page.goto("/debates/deb-20200101-000000-aaaaaaaa")
        await expect(page.get_by_role("alert").first).to_contain_text("not found")
