"""A panel with a person at both ends of it, as a format for tests alone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace

import pytest

from parley.orchestrator import formats
from parley.orchestrator.debate import Debate
from parley.orchestrator.events import Solution
from parley.orchestrator.formats.panel import panel
from parley.orchestrator.recorded import Recorded
from parley.runtime.errors import ParleyError
from tests.support.orchestration import Backstage, Replica

__all__ = ["AFTER", "BEFORE", "CHECKED", "person", "register"]

CHECKED = "checked@1"
BEFORE, AFTER = "checkpoint/before", "checkpoint/after"


async def checked(debate: Debate) -> Solution:
    """Ask whether to begin, hold a panel, and have its answer approved; what was said is in the answer."""
    before = await debate.checkpoint(BEFORE, "Shall we begin?")
    solution = await panel(debate)
    after = await debate.checkpoint(AFTER, solution.description)
    said = (f"{before.wish}: {before.text}", f"{after.wish}: {after.text} {after.approved}")
    return replace(solution, recommendations=said)


def register(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let orchestrators of this test know the format."""
    monkeypatch.setattr(formats, "_FORMATS", {**formats._FORMATS, CHECKED: checked})


@asynccontextmanager
async def person(stage: Backstage, replica: Replica) -> AsyncIterator[None]:
    """Somebody who approves whatever any debate asks while the block runs, and says it once."""
    asking = asyncio.create_task(_approve_all(stage, replica))
    try:
        yield
    finally:
        asking.cancel()
        await asyncio.gather(asking, return_exceptions=True)


async def _approve_all(stage: Backstage, replica: Replica) -> None:
    said: set[tuple[str, str]] = set()
    async with asyncio.TaskGroup() as tasks:
        while True:
            for row in (await replica.shop.rows.open()).owned:
                for key in Recorded.of(await stage.events(row.debate)).open_checkpoints:
                    if (row.debate, key) not in said:
                        said.add((row.debate, key))
                        tasks.create_task(_approve(replica, row.debate, key))
            await asyncio.sleep(0.01)


async def _approve(replica: Replica, debate: str, key: str) -> None:
    with suppress(ParleyError, TimeoutError):  # it was taken up by another, and the debate has ended
        await replica.wish(
            debate, "approve", key.replace("/", "-"), text="fine", approved=True, checkpoint=key
        )
