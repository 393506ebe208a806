"""Records 60 debates on one question by four agents that change sides each time: how long a record takes, and stops memory's event loop.

The longest step of the loop is in milliseconds of its thread's processor time, so that other work of the machine is not in it.
"""

import gc
import tempfile
import time
from pathlib import Path
from statistics import median
from typing import Final

from parley.memory.__main__ import build
from parley.runtime.channel import channel
from parley.runtime.server import start_server
from parley.runtime.tasks import background_task
from parley.v1 import memory_pb2 as pb
from parley.v1.critique_pb2 import ISSUE_STATUS_TAKEN_UP, Issue
from parley.v1.memory_pb2_grpc import MemoryServiceStub
from tests.bench.bench_recall import WHEN, convergence, lateness, note_pauses, note_steps, settings
from tests.bench.figures import main, table

DEBATES: Final = 60
AGENTS: Final = 4
ISSUES: Final = 10
DAY: Final = 86_400
QUESTION: Final = (
    "Kafka or RabbitMQ for orders? " + "The shop takes forty orders a minute, and few people run it. " * 3
)


def make_past(number: int) -> pb.RecordDebateRequest:
    """A debate in which every agent stands where it did not the day before."""
    debate = pb.PastDebate(
        debate_id=f"deb-{number}", question=QUESTION, conclusion="Use this. " * 20, domain="general"
    )
    debate.concluded_at.FromSeconds(WHEN.seconds + number * DAY)
    record = pb.RecordDebateRequest(debate=debate)
    for agent in range(AGENTS):
        side = (number + agent) % 2
        word = ("Kafka", "RabbitMQ")[side]
        record.stands.add(agent_id=f"agent-{agent}", text=f"Use {word}. " * 50, for_decision=side == 0)
    for issue in range(ISSUES):
        said = Issue(number=issue + 1, text=f"No figures for part {issue} of {number % 7}.", severity=7)
        record.issues.add(
            critic_agent_id="agent-0", target_agent_id="agent-1", issue=said, status=ISSUE_STATUS_TAKEN_UP
        )
    return record


async def run(quick: bool) -> None:
    """Print the table."""
    debates = 10 if quick else DEBATES
    last = debates // 6 or 1
    taken, pauses, steps = list[float](), list[float](), list[float]()
    with tempfile.TemporaryDirectory() as folder:
        async with (
            convergence("kafka", "rabbitmq") as address,
            build(settings(Path(folder), address)) as service,
            start_server([service]) as server,
            channel(server.address) as opened,
        ):
            stub = MemoryServiceStub(opened)
            for number in range(debates - last):
                await stub.RecordDebate(make_past(number))
            gc.freeze()  # as a service does when it has started
            with note_steps(steps):
                async with background_task("noting pauses", note_pauses(pauses)):
                    for number in range(debates - last, debates):
                        began = time.perf_counter()
                        await stub.RecordDebate(make_past(number))
                        taken.append((time.perf_counter() - began) * 1000)
            flips = await stub.ListPositions(pb.ListPositionsRequest(only_flips=True, page_size=1))
            if not flips.positions:
                raise RuntimeError("no flip was found")
    table(
        [
            "debates",
            "the last",
            "a record ms",
            "loop late p99, p99.9, most ms",
            "longest step of the loop, ms of CPU",
        ],
        [[str(debates), str(last), f"{median(taken):.0f}", lateness(pauses), f"{max(steps):.1f}"]],
    )


if __name__ == "__main__":
    main(__doc__, run)
