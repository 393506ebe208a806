"""The pictures of the console in its guide: `python -m tests.support.console_pictures` takes them anew.

They show the example debate, whose texts people wrote: while it runs, and its result.
"""

import asyncio
import tempfile
from pathlib import Path
from typing import Final

from playwright.async_api import Browser, Page, ViewportSize, expect

from parley.edge.__main__ import run_edge
from parley.edge.settings import EdgeSettings
from parley.v1.debate_pb2 import DEBATE_STATUS_COMPLETED, DebateSpec, Participant
from parley.v1.orchestrator_pb2 import CreateDebateRequest
from parley.v1.panel_pb2 import PanelSettings
from tests.support.browser import launch_browser
from tests.support.example_debate import ExampleGateway, source
from tests.support.orchestration import agent, orchestrating

FOLDER: Final = Path(__file__).parents[2] / "docs" / "guides"
PICTURES: Final = ("console-debate.png", "console-result.png")
_SIZE: Final = ViewportSize(width=1100, height=900)


async def _take() -> None:
    told = source()
    with tempfile.TemporaryDirectory() as folder:
        async with (
            ExampleGateway(told).served() as gateway,
            orchestrating(Path(folder), gateway) as orchestrator,
            run_edge(
                EdgeSettings(port=0, orchestrator=orchestrator.server.address, grace_seconds=1)
            ) as address,
            launch_browser() as browser,
        ):
            page = await _open(browser, f"http://{address}")
            spec = DebateSpec(
                question=told.question,
                agents=[Participant(agent=agent(name, name)) for name in told.agents],
                judge=Participant(agent=agent("judge", "judge")),
                panel=PanelSettings(rounds=1),
                history_limit=0,
                analysis=False,
            )
            request = CreateDebateRequest(request_id="example", spec=spec)
            debate = (await orchestrator.stub.CreateDebate(request)).debate_id
            await page.goto(f"/debates/{debate}")
            await expect(page.get_by_role("article", name="critique").nth(2)).to_contain_text("severity")
            await page.get_by_role("heading", name="Round 1 of 1").evaluate("each => each.scrollIntoView()")
            await page.screenshot(path=FOLDER / PICTURES[0])
            await orchestrator.status(debate, DEBATE_STATUS_COMPLETED)
            await page.goto(f"/debates/{debate}/result")
            await expect(page.get_by_role("region", name="What was decided")).to_be_visible()
            await page.screenshot(path=FOLDER / PICTURES[1])


async def _open(browser: Browser, url: str) -> Page:
    context = await browser.new_context(base_url=url, viewport=_SIZE, color_scheme="light")
    return await context.new_page()


if __name__ == "__main__":
    asyncio.run(_take())
