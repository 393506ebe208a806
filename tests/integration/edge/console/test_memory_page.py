"""The page about memory, before a memory that answers what a test sets."""

import re
from collections.abc import AsyncIterator
from typing import Any
from urllib.parse import urlencode

import pytest
from playwright.async_api import Page, expect

from parley.v1 import memory_pb2 as pb
from tests.integration.edge.console.conftest import on_one_loop
from tests.integration.edge.console.test_hostile_debate import ATTACK
from tests.support.browser import find_serious_faults
from tests.support.real_services import free_address
from tests.support.scripted_memory import KAFKA, LATER, RABBITMQ, ScriptedMemory, make_past_debate, make_time


@pytest.fixture
def memory_address() -> str:
    return free_address()


@pytest.fixture
def orchestrator_settings(memory_address: str) -> dict[str, Any]:
    return {"memory": memory_address}


@on_one_loop
async def memory(memory_address: str) -> AsyncIterator[ScriptedMemory]:
    scripted = ScriptedMemory()
    async with scripted.served_at(memory_address):
        yield scripted


def _flip() -> pb.LedgerPosition:
    settled = pb.FlipSettlement(debate_id=LATER, concluded_at=make_time(3), took_later_side=True)
    change = pb.StandChange(
        earlier_debate_id=KAFKA,
        earlier_concluded_at=make_time(1),
        earlier_stand="Use Kafka.",
        outcome=pb.FLIP_OUTCOME_FLIP,
        settlement=settled,
    )
    return _position(RABBITMQ, "Use RabbitMQ.", changes=[change])


def _position(debate_id: str, stand: str, **fields: Any) -> pb.LedgerPosition:
    return pb.LedgerPosition(
        agent_id="ada",
        agent_name="Ada",
        debate_id=debate_id,
        question="Kafka or RabbitMQ?",
        domain="data",
        concluded_at=make_time(2),
        stand=stand,
        for_decision=True,
        **fields,
    )


async def _search(page: Page) -> None:
    await page.get_by_label("Past debates about").fill("one broker")
    await page.get_by_role("button", name="Search").click()


async def test_a_search_shows_what_was_decided_and_links_to_the_debate(
    page: Page, memory: ScriptedMemory
) -> None:
    memory.debates = [make_past_debate()]
    await page.goto("/")
    await page.get_by_role("link", name="Memory").click()
    await _search(page)
    found = page.get_by_role("list", name="Past debates").get_by_role("listitem")
    await expect(found).to_contain_text(
        "2026-03-01, moderate agreement, 84 % sure, 2 of 3 votes, 49 % alike", use_inner_text=True
    )
    await expect(found.locator("strong")).to_have_text("Kafka")
    await expect(found).to_contain_text("Against it: cy: It is hard to run.")
    link = found.get_by_role("link", name="Kafka or RabbitMQ for orders?")
    await expect(link).to_have_attribute("href", f"/debates/{KAFKA}")
    whole = found.get_by_role("link", name="All that is remembered of it")
    await expect(whole).to_have_attribute("href", f"/memory/{KAFKA}")
    assert await find_serious_faults(page) == []


async def test_positions_are_listed_page_by_page_with_what_settled_a_flip(
    page: Page, memory: ScriptedMemory
) -> None:
    memory.positions = [_flip(), _position(KAFKA, "Use Kafka.")]
    await page.goto("/memory")
    positions = page.get_by_role("list", name="Positions").get_by_role("listitem")
    await expect(positions).to_have_count(1)
    await expect(positions).to_contain_text("Ada (for the decision): Use RabbitMQ.")
    await expect(positions).to_contain_text("2026-03-02, data, Kafka or RabbitMQ?")
    await expect(positions).to_contain_text("Flip from 2026-03-01: Use Kafka.")
    await expect(positions).to_contain_text("Settled on 2026-03-03, for the later side")
    more = page.get_by_role("button", name="More positions")
    await more.click()
    await expect(positions).to_have_count(2)
    await expect(more).to_be_hidden()


async def test_kinds_of_issue_and_moments_are_listed(page: Page, memory: ScriptedMemory) -> None:
    pattern = pb.CritiquePattern(
        examples=["No figures.", "No way back."], debates=2, raised=3, taken_up=1, domain="data"
    )
    pattern.latest_at.CopyFrom(make_time(2))
    pattern.critics.add(agent_id="bo", raised=3)
    memory.patterns = [pattern]
    moment = pb.Moment(
        kind=pb.MOMENT_KIND_REVERSAL, debate_id=RABBITMQ, concluded_at=make_time(2), text="The load fell."
    )
    moment.earlier_debate_id = KAFKA
    memory.moments = [moment]
    await page.goto("/memory")
    patterns = page.get_by_role("list", name="Critique patterns").get_by_role("listitem")
    await expect(patterns).to_contain_text("raised 3 times in 2 debates, taken up once, by bo (3), data")
    await expect(patterns).to_contain_text("Also: No way back.")
    moments = page.get_by_role("list", name="Moments").get_by_role("listitem")
    await expect(moments).to_contain_text("2026-03-02 reversal")
    earlier = moments.get_by_role("link", name="The decision that it reverses")
    await expect(earlier).to_have_attribute("href", f"/debates/{KAFKA}")


async def test_what_is_asked_is_in_the_address_and_an_address_asks_it(
    page: Page, memory: ScriptedMemory
) -> None:
    memory.debates = [make_past_debate()]
    memory.positions = [_position(KAFKA, "Use Kafka.")]
    await page.goto("/memory")
    await page.get_by_role("search").get_by_label("Domain").fill("data")
    await page.get_by_label("At most").fill("3")
    await _search(page)
    positions = page.get_by_role("form", name="Filter positions")
    await positions.get_by_label("Agent").fill("ada")
    await positions.get_by_label("Only flips").check()
    await positions.get_by_role("button", name="Filter").press("Enter")
    patterns = page.get_by_role("form", name="Filter critique patterns")
    await patterns.get_by_label("Like").fill("no way back & more")
    await patterns.get_by_label("Only those on its matter").check()
    await patterns.get_by_label("Only those taken up").check()
    await patterns.get_by_label("Domain").fill("data")
    await patterns.get_by_role("button", name="Filter").click()
    moments = page.get_by_role("form", name="Filter moments")
    await moments.get_by_label("Kind").select_option("unanimous flip")
    await moments.get_by_role("button", name="Filter").click()
    wanted = [
        pb.RecallRequest(text="one broker", domain="data", limit=3),
        pb.ListPositionsRequest(agent_id="ada", only_flips=True, page_size=20),
        pb.ListPatternsRequest(
            text="no way back & more", only_related=True, only_successful=True, domain="data", page_size=20
        ),
        pb.ListMomentsRequest(kind=pb.MOMENT_KIND_UNANIMOUS_FLIP, page_size=20),
    ]
    await memory.until_asked(*wanted)
    memory.asked.clear()
    await page.goto("about:blank")
    await page.go_back()
    await memory.until_asked(*wanted)
    assert len(memory.asked) == len(wanted)
    await expect(page.get_by_role("list", name="Past debates").get_by_role("listitem")).to_have_count(1)
    await expect(moments.get_by_label("Kind")).to_have_value("unanimous-flip")
    await expect(positions.get_by_label("Only flips")).to_be_checked()


async def test_a_filter_replaces_the_list_and_is_kept_for_its_next_pages(
    page: Page, memory: ScriptedMemory
) -> None:
    memory.positions = [_position(KAFKA, "Use Kafka."), _position(RABBITMQ, "Use RabbitMQ.")]
    await page.goto("/memory?agent=ada&kind=nonsense")
    await page.get_by_role("button", name="More positions").click()
    positions = page.get_by_role("list", name="Positions").get_by_role("listitem")
    await expect(positions).to_have_count(2)
    await expect(page.get_by_text("2 shown")).to_be_visible()
    of_ada = pb.ListPositionsRequest(agent_id="ada", page_size=20)
    of_ada.page_token = "1"
    assert of_ada in memory.asked
    assert pb.ListMomentsRequest(page_size=20) in memory.asked
    memory.positions = []
    form = page.get_by_role("form", name="Filter positions")
    await form.get_by_label("Agent").fill("bo")
    await form.get_by_label("Agent").press("Enter")
    await expect(page.get_by_text("Nothing fits this filter.").first).to_be_visible()
    await expect(positions).to_have_count(0)
    await form.get_by_label("Agent").fill("")
    await form.get_by_label("Agent").press("Enter")
    await expect(page.get_by_text("No agent's position is known yet.")).to_be_visible()
    assert page.url.endswith("/memory?kind=nonsense")


async def test_a_filter_that_is_refused_says_so_above_its_list_alone(
    page: Page, memory: ScriptedMemory
) -> None:
    memory.positions = [_position(KAFKA, "Use Kafka.")]
    memory.refusal = "only_related: needs a text"
    await page.goto("/memory?related=yes")
    await expect(page.get_by_role("alert")).to_have_text(re.compile("needs a text"))
    await expect(page.get_by_role("list", name="Positions").get_by_role("listitem")).to_have_count(1)


async def test_hostile_text_stays_text(page: Page, memory: ScriptedMemory) -> None:
    memory.debates = [make_past_debate(question=ATTACK, conclusion=ATTACK)]
    memory.positions = [_position(KAFKA, ATTACK[:2000])]
    memory.patterns = [
        pb.CritiquePattern(examples=[ATTACK[:500]], debates=1, raised=1, latest_at=make_time(1))
    ]
    memory.moments = [pb.Moment(debate_id=KAFKA, concluded_at=make_time(1), text=ATTACK[:1000])]
    await page.set_viewport_size({"width": 320, "height": 800})
    await page.goto(f"/memory?{urlencode({'agent': ATTACK[:100]})}")
    await _search(page)
    for name in ("Past debates", "Positions", "Critique patterns", "Moments"):
        await expect(page.get_by_role("list", name=name)).to_contain_text("window.attacked")
    await page.locator(".text").scroll_into_view_if_needed()
    await expect(page.locator(".text:not(.streams)")).to_be_visible()
    assert await page.evaluate("window.attacked") is None
    assert (
        await page.locator(
            "main iframe, main script, main style, main img, main form input[name=key]"
        ).count()
        == 0
    )
    assert "\u202e" not in await page.locator("main").inner_text()
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


async def test_an_empty_memory_is_a_sentence(page: Page, memory: ScriptedMemory) -> None:
    await page.goto("/memory")
    await expect(page.get_by_text("No agent's position is known yet.")).to_be_visible()
    await _search(page)
    await expect(page.get_by_text("Nothing like it is remembered; use other words.")).to_be_visible()
    assert memory.debates == []


async def test_a_memory_that_is_away_is_a_sentence(page: Page) -> None:
    await page.goto("/memory")
    await expect(page.get_by_role("alert")).to_contain_text("memory")
    await _search(page)
    await expect(page.get_by_role("alert")).to_have_count(2)
    await expect(page.get_by_role("alert").first).to_contain_text("memory")
