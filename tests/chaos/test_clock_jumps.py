"""A clock that is set forward under a debate, whose owner is killed then: its limits count what its owners measured."""

import asyncio
from collections.abc import Iterator
from pathlib import Path

import pytest
from google.protobuf.duration_pb2 import Duration

from parley.client import ParleyClient
from parley.v1.debate_pb2 import DebateLimits
from parley.v1.event_pb2 import Event
from tests.chaos.driver import Clients, spec
from tests.chaos.harness import ORCHESTRATORS, System
from tests.chaos.test_owners import wait_for_events
from tests.support.orchestration import kind_of

_MONTH = 30 * 24 * 3600


@pytest.fixture
def clock(system: System, tmp_path: Path) -> Iterator[Path]:
    """The file that says how far the clocks of all orchestrators are ahead."""
    file = tmp_path / "clock"
    system.make_ready()
    for name in ORCHESTRATORS:
        system.restart(name, variables={"PARLEY_CHAOS_CLOCK": str(file)})
    yield file
    for name in ORCHESTRATORS:
        system.kill(name)


async def test_a_month_that_the_clock_jumps_before_a_takeover_uses_up_no_limit(
    system: System, clients: Clients, clock: Path
) -> None:
    mark = "case-clock-jumps."
    limits = DebateLimits(total=Duration(seconds=600))
    slow = {"match": {"prompt": f"of {mark}"}, "latency": {"median": 2.0}}
    with system.rules(slow):
        debate = await clients.create(spec(mark, limits=limits), mark, at="orchestrator-1")
        await wait_for_events(system, "orchestrator-1", debate, "step_started", 2)
        clock.write_text(str(_MONTH))  # noqa: ASYNC240 - a few bytes
        await wait_for_events(system, "orchestrator-1", debate, "step_succeeded", 2)
        system.kill("orchestrator-1")
        async with asyncio.timeout(60), ParleyClient(system.target("orchestrator-2")) as client:
            kinds = [kind_of(event) async for event in client.watch(debate) if isinstance(event, Event)]
    assert kinds[-1] == "closed"
    assert kinds.count("claimed") >= 2
    assert not {"limit_reached", "debate_failed"}.intersection(kinds)
