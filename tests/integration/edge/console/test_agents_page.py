"""The page about agents, with what ratings know of them."""

from pathlib import Path
from typing import Any

import grpc
import pytest
from playwright.async_api import Page, expect

from parley.v1 import ratings_pb2, ratings_pb2_grpc
from tests.support.browser import find_serious_faults
from tests.support.orchestration import WITHIN
from tests.support.real_services import free_address, ratings_at

MATCH = ratings_pb2.RecordMatchRequest(
    debate_id="deb-20260301-101112-aaaaaaaa",
    results=[ratings_pb2.MatchResult(agent_id=each, score=score) for each, score in (("ada", 8), ("bo", 5))],
    encounters=[ratings_pb2.Encounter(agent_id="ada", other_agent_id="bo", agreements=3, disagreements=2)],
)


@pytest.fixture
def ratings_address() -> str:
    return free_address()


@pytest.fixture
def orchestrator_settings(ratings_address: str) -> dict[str, Any]:
    return {"ratings": ratings_address}


async def test_how_a_rated_agent_gets_along_with_others_is_shown_when_it_is_opened(
    page: Page, ratings_address: str, tmp_path: Path
) -> None:
    async with ratings_at(ratings_address, tmp_path / "ratings"):
        async with grpc.aio.insecure_channel(ratings_address) as channel:
            await ratings_pb2_grpc.RatingsServiceStub(channel).RecordMatch(MATCH, timeout=WITHIN)
        await page.goto("/agents")
        await page.get_by_text("ada and others").click()
        row = page.get_by_role("region", name="ada and others").get_by_role("row").nth(1)
        await expect(row.get_by_role("cell")).to_have_text(["bo", "1", "1, 0, 0", "3", "2"])
        assert await find_serious_faults(page) == []
