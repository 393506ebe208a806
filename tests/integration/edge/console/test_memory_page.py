"""The page about memory, before a memory that answers what a test sets."""

from collections.abc import AsyncIterator
from typing import Any, TypeVar

import grpc
import pytest
from google.protobuf.timestamp_pb2 import Timestamp
from playwright.async_api import Page, expect

from parley.v1 import memory_pb2 as pb
from parley.v1 import memory_pb2_grpc
from parley.v1.effect_pb2 import DecisionConfidence
from parley.v1.voting_pb2 import VOTE_STRENGTH_MODERATE
from tests.integration.edge.console.conftest import on_one_loop
from tests.integration.edge.console.test_hostile_debate import ATTACK
from tests.support.browser import find_serious_faults
from tests.support.real_services import free_address

KAFKA = "deb-20260301-101112-aaaaaaaa"
RABBITMQ = "deb-20260302-101112-bbbbbbbb"
LATER = "deb-20260303-101112-cccccccc"
Item = TypeVar("Item")


class ScriptedMemory:
    """What is remembered, each list a page for each item."""

    def __init__(self) -> None:
        self.debates: list[pb.PastDebate] = []
        self.positions: list[pb.LedgerPosition] = []
        self.patterns: list[pb.CritiquePattern] = []
        self.moments: list[pb.Moment] = []

    async def Recall(  # noqa: N802
        self, _request: pb.RecallRequest, _context: Any
    ) -> AsyncIterator[pb.RecallResponse]:
        for each in self.debates:
            yield pb.RecallResponse(debate=each)

    async def ListPositions(  # noqa: N802
        self, request: pb.ListPositionsRequest, _context: Any
    ) -> pb.ListPositionsResponse:
        found, token = _page(self.positions, request.page_token)
        return pb.ListPositionsResponse(positions=found, next_page_token=token)

    async def ListPatterns(  # noqa: N802
        self, request: pb.ListPatternsRequest, _context: Any
    ) -> pb.ListPatternsResponse:
        found, token = _page(self.patterns, request.page_token)
        return pb.ListPatternsResponse(patterns=found, next_page_token=token)

    async def ListMoments(  # noqa: N802
        self, request: pb.ListMomentsRequest, _context: Any
    ) -> pb.ListMomentsResponse:
        found, token = _page(self.moments, request.page_token)
        return pb.ListMomentsResponse(moments=found, next_page_token=token)

    def __getattr__(self, name: str) -> Any:
        """Return None for what is not served."""
        return None


def _page(items: list[Item], token: str) -> tuple[list[Item], str]:
    start = int(token or 0)
    return items[start : start + 1], str(start + 1) if len(items) > start + 1 else ""


@pytest.fixture
def memory_address() -> str:
    return free_address()


@pytest.fixture
def orchestrator_settings(memory_address: str) -> dict[str, Any]:
    return {"memory": memory_address}


@on_one_loop
async def memory(memory_address: str) -> AsyncIterator[ScriptedMemory]:
    scripted, server = ScriptedMemory(), grpc.aio.server()
    servicer: Any = scripted
    memory_pb2_grpc.add_MemoryServiceServicer_to_server(servicer, server)
    server.add_insecure_port(memory_address)
    await server.start()
    yield scripted
    await server.stop(None)


def _on(day: int) -> Timestamp:
    return Timestamp(seconds=1_772_359_200 + (day - 1) * 86_400)


def _past_debate(**fields: Any) -> pb.PastDebate:
    debate = pb.PastDebate(
        debate_id=KAFKA,
        question="Kafka or RabbitMQ for orders?",
        conclusion="Use **Kafka** for orders.",
        concluded_at=_on(1),
        strength=VOTE_STRENGTH_MODERATE,
        confidence=DecisionConfidence(percent=83.5, votes=2, votes_cast=3),
        relevance=pb.Relevance(similarity_percent=49.2),
    )
    debate.dissents.add(agent_id="cy", text="It is hard to run.")
    debate.MergeFrom(pb.PastDebate(**fields))
    return debate


def _flip() -> pb.LedgerPosition:
    settled = pb.FlipSettlement(debate_id=LATER, concluded_at=_on(3), took_later_side=True)
    change = pb.StandChange(
        earlier_debate_id=KAFKA,
        earlier_concluded_at=_on(1),
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
        concluded_at=_on(2),
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
    memory.debates = [_past_debate()]
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
    pattern.latest_at.CopyFrom(_on(2))
    pattern.critics.add(agent_id="bo", raised=3)
    memory.patterns = [pattern]
    moment = pb.Moment(
        kind=pb.MOMENT_KIND_REVERSAL, debate_id=RABBITMQ, concluded_at=_on(2), text="The load fell."
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


async def test_hostile_text_stays_text(page: Page, memory: ScriptedMemory) -> None:
    memory.debates = [_past_debate(question=ATTACK, conclusion=ATTACK)]
    memory.positions = [_position(KAFKA, ATTACK[:2000])]
    memory.patterns = [pb.CritiquePattern(examples=[ATTACK[:500]], debates=1, raised=1, latest_at=_on(1))]
    memory.moments = [pb.Moment(debate_id=KAFKA, concluded_at=_on(1), text=ATTACK[:1000])]
    await page.goto("/memory")
    await _search(page)
    for name in ("Past debates", "Positions", "Critique patterns", "Moments"):
        await expect(page.get_by_role("list", name=name)).to_contain_text("window.attacked")
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
