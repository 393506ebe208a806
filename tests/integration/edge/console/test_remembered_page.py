"""The page with all that is remembered of a debate, and forgetting it there."""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Dialog, Page, expect

from parley.runtime.identity.identity import Role
from parley.storage.opening import open_store
from parley.v1 import memory_pb2 as pb
from parley.v1.access_pb2 import ACCESS_ROLE_ADMIN, ACCESS_ROLE_DEBATE, ACCESS_ROLE_STEER
from parley.v1.critique_pb2 import ISSUE_STATUS_TAKEN_UP, Issue
from parley.v1.effect_pb2 import DECISION_RELATION_REVERSES
from tests.integration.edge.console.conftest import on_one_loop
from tests.integration.edge.console.test_hostile_debate import ATTACK
from tests.support.access import key_for
from tests.support.browser import find_serious_faults
from tests.support.orchestration import Orchestrator
from tests.support.real_services import free_address
from tests.support.scripted_memory import KAFKA, LATER, ScriptedMemory, make_past_debate, make_time

FORGET = "Forget this debate"


@pytest.fixture
def memory_address() -> str:
    return free_address()


@pytest.fixture
def orchestrator_settings(memory_address: str) -> dict[str, Any]:
    return {"memory": memory_address, "auth": "key"}


@on_one_loop
async def memory(memory_address: str) -> AsyncIterator[ScriptedMemory]:
    scripted = ScriptedMemory()
    scripted.debates = [make_past_debate()]
    scripted.records = {KAFKA: _record(make_past_debate())}
    async with scripted.served_at(memory_address):
        yield scripted


@on_one_loop
async def admin(page: Page, orchestrator: Orchestrator, tmp_path: Path) -> Page:
    """The pages of somebody who may forget."""
    await _sign_in(page, tmp_path, ACCESS_ROLE_ADMIN)
    return page


def _record(debate: pb.PastDebate, text: str = "Use Kafka.") -> pb.GetRecordResponse:
    found = pb.GetRecordResponse(debate=debate)
    found.debate.domain = "data"
    found.debate.evidence.add(text="Kafka keeps the order in a partition.", source="docs/kafka.md")
    found.debate.related.add(
        debate_id=LATER,
        decided_at=make_time(3),
        decision="Use RabbitMQ.",
        relation=DECISION_RELATION_REVERSES,
        reason="The load fell.",
    )
    found.stands.add(
        agent_id="ada",
        agent_name="Ada",
        text=text,
        for_decision=True,
        first_text="Use RabbitMQ first.",
        first_for_decision=False,
    )
    found.issues.add(
        critic_agent_id="bo",
        target_agent_id="ada",
        issue=Issue(number=1, text="No figures.", severity=7, suggestion="Measure it."),
        status=ISSUE_STATUS_TAKEN_UP,
        reason="Figures were added.",
    )
    return found


async def _sign_in(page: Page, folder: Path, *roles: Role) -> None:
    async with open_store(f"sqlite:///{folder}", "orchestrator") as store:
        ((_, bearer),) = await key_for(store.documents, "acme", roles)
    await page.goto("/login")
    await page.get_by_label("API key or token").fill(bearer.removeprefix("Bearer "))
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_text("There is no debate yet.")).to_be_visible()


def _answer(page: Page, *, accept: bool) -> list[str]:
    """Answer every question of the page; return what was asked."""
    asked: list[str] = []

    async def answer(dialog: Dialog) -> None:
        asked.append(dialog.message)
        await (dialog.accept() if accept else dialog.dismiss())

    page.on("dialog", answer)
    return asked


async def test_all_that_is_remembered_is_shown_from_a_search_on(admin: Page, memory: ScriptedMemory) -> None:
    await admin.goto("/memory?about=one+broker")
    await admin.get_by_role("link", name="All that is remembered of it").click()
    assert memory.records
    await expect(admin.get_by_role("heading", level=1)).to_have_text("Kafka or RabbitMQ for orders?")
    facts = "2026-03-01, moderate agreement, 84 % sure, 2 of 3 votes, data, The debate"
    await expect(admin.get_by_text(facts)).to_be_visible()
    debate = admin.get_by_role("link", name="The debate")
    await expect(debate).to_have_attribute("href", f"/debates/{KAFKA}")
    decided = admin.get_by_role("region", name="What was decided")
    await expect(decided.locator("strong")).to_have_text("Kafka")
    for name, text in (
        ("Earlier decisions", "Reverses the decision of 2026-03-03: Use RabbitMQ. Why: The load fell."),
        ("Against the decision", "cy: It is hard to run."),
        ("What it rests on", "Source: docs/kafka.md"),
        ("Where agents stood", "Ada (for the decision): Use Kafka."),
        ("Where agents stood", "At first (against it): Use RabbitMQ first."),
        ("Issues", "bo to ada, severity 7: No figures."),
        ("Issues", "To change: Measure it."),
        ("Issues", "Taken up: Figures were added."),
    ):
        await expect(admin.get_by_role("region", name=name)).to_contain_text(text)
    assert await find_serious_faults(admin) == []


async def test_who_may_forget_is_asked_once_and_the_lists_have_it_no_more(
    admin: Page, memory: ScriptedMemory
) -> None:
    asked = _answer(admin, accept=True)
    await admin.goto(f"/memory/{KAFKA}")
    await admin.get_by_role("button", name=FORGET).press("Enter")
    await expect(admin.get_by_role("heading", name="Memory")).to_be_visible()
    await expect(admin.get_by_text("The debate is forgotten.")).to_be_visible()
    (question,) = asked
    assert "Lost:" in question
    assert "Kept: the debate itself" in question
    assert memory.records == {}
    await admin.goto("/memory?about=one+broker")
    await expect(admin.get_by_text("Nothing like it is remembered")).to_be_visible()
    await admin.goto(f"/memory/{KAFKA}")
    await expect(admin.get_by_role("heading", name="Nothing is remembered of this debate")).to_be_visible()
    await expect(admin.get_by_role("link", name="The debate itself")).to_be_visible()


async def test_who_does_not_confirm_forgets_nothing(admin: Page, memory: ScriptedMemory) -> None:
    asked = _answer(admin, accept=False)
    await admin.goto(f"/memory/{KAFKA}")
    forget = admin.get_by_role("button", name=FORGET)
    await forget.click()
    await expect(forget).to_be_enabled()
    assert len(asked) == 1
    assert KAFKA in memory.records


async def test_a_refusal_to_forget_is_shown_and_it_can_be_tried_again(
    admin: Page, memory: ScriptedMemory
) -> None:
    _answer(admin, accept=True)
    memory.is_forgetful = False
    await admin.goto(f"/memory/{KAFKA}")
    forget = admin.get_by_role("button", name=FORGET)
    await forget.press("Enter")
    await expect(admin.get_by_role("alert")).to_contain_text("the memory service is away; try again")
    await expect(forget).to_be_focused()
    assert KAFKA in memory.records
    memory.is_forgetful = True
    await forget.press("Enter")
    await expect(admin.get_by_role("heading", name="Memory")).to_be_visible()


@pytest.mark.usefixtures("memory")
async def test_who_may_not_forget_is_not_offered_it(
    page: Page, orchestrator: Orchestrator, tmp_path: Path
) -> None:
    assert orchestrator.server.address
    await _sign_in(page, tmp_path, ACCESS_ROLE_DEBATE, ACCESS_ROLE_STEER)
    await page.goto(f"/memory/{KAFKA}")
    await expect(page.get_by_role("region", name="Issues")).to_be_visible()
    await expect(page.get_by_role("button", name=FORGET)).to_have_count(0)


async def test_hostile_text_stays_text_there_too(admin: Page, memory: ScriptedMemory) -> None:
    debate = make_past_debate(question=ATTACK, conclusion=ATTACK)
    debate.dissents.add(agent_id=ATTACK, text=ATTACK)
    debate.evidence.add(text=ATTACK, source="javascript:window.attacked=1")
    memory.records = {KAFKA: _record(debate, ATTACK)}
    memory.records[KAFKA].issues.add(
        critic_agent_id=ATTACK, target_agent_id=ATTACK, issue=Issue(text=ATTACK), reason=ATTACK
    )
    await admin.set_viewport_size({"width": 320, "height": 800})
    await admin.goto(f"/memory/{KAFKA}")
    await admin.locator(".text").scroll_into_view_if_needed()
    await expect(admin.locator(".text:not(.streams)")).to_be_visible()
    assert await admin.evaluate("window.attacked") is None
    assert await admin.locator("main iframe, main script, main style, main img, main form").count() == 0
    assert await admin.locator("main a[href^='javascript']").count() == 0
    assert "\u202e" not in await admin.locator("main").inner_text()
    assert await admin.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_who_is_not_signed_in_comes_back_to_what_the_address_asks(
    page: Page, memory: ScriptedMemory, orchestrator: Orchestrator, tmp_path: Path
) -> None:
    assert orchestrator.server.address
    async with open_store(f"sqlite:///{tmp_path}", "orchestrator") as store:
        ((_, bearer),) = await key_for(store.documents, "acme", {ACCESS_ROLE_ADMIN})
    await page.goto("/memory?about=one+broker&agent=ada")
    await page.get_by_label("API key or token").fill(bearer.removeprefix("Bearer "))
    await page.get_by_role("button", name="Sign in").click()
    await expect(page.get_by_role("list", name="Past debates")).to_be_visible()
    assert page.url.endswith("/memory?about=one+broker&agent=ada")
    assert pb.ListPositionsRequest(agent_id="ada", page_size=20) in memory.asked
