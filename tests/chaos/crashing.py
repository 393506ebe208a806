"""What tests of crash points share: a debate of a name, two owners that die at a point, and a history that is whole."""

import asyncio
import re
import uuid
from collections.abc import Awaitable, Callable
from typing import Any

from tests.chaos.checker import check
from tests.chaos.driver import Clients, spec
from tests.chaos.harness import ORCHESTRATORS, System

_TRIES = 3


async def create_debate(clients: Clients, name: str, *, at: str | None = None, **fields: Any) -> str:
    """Ask for a debate that has the name in its prompts, at one replica first if it is named; return its id."""
    mark = f"case-{re.sub('[^a-z0-9]', '-', name)}-{uuid.uuid4().hex[:6]}."
    return await clients.create(spec(mark, **fields), mark, at=at)


async def kill_each(
    system: System, points: tuple[str, str], debate: Callable[[str, str], Awaitable[None]]
) -> None:
    """Let two owners die, each at a crash point in a debate of its own; the third replica is the heir.

    Where a busy machine had a lease run out before the owner came to the point, it gets another debate.
    """
    owners = dict(zip(ORCHESTRATORS, points, strict=False))
    system.make_ready()
    for name, point in owners.items():
        system.restart(name, crash=point)

    async def debate_until_dead(name: str, point: str) -> None:
        for _ in range(_TRIES):
            await debate(name, point)
            if not system.alive(name):
                break
        await asyncio.to_thread(system.died, name, 1.0)

    async with asyncio.TaskGroup() as tasks:
        for name, point in owners.items():
            tasks.create_task(debate_until_dead(name, point))


def name_both_points(point: str) -> tuple[str, str]:
    """Return the crash points before and after a write or call."""
    return f"before:{point}", f"after:{point}"


async def check_all(clients: Clients, *may_fail: str) -> None:
    """Check all that happened. `may_fail` are reasons that agents' steps may fail for."""
    report = check(await clients.history(), may_fail=may_fail)
    assert not report.violations, "\n".join(map(str, report.violations))
    assert report.events > 5
