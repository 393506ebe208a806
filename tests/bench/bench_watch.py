"""A thousand watchers of one debate: how late an event reaches them, and what a watcher costs."""

import asyncio
import math
import time
from contextlib import AsyncExitStack
from statistics import median, quantiles

import grpc

from parley.runtime.channel import channel
from parley.v1 import orchestrator_pb2 as pb
from parley.v1 import orchestrator_pb2_grpc
from parley.v1.event_pb2 import Event
from tests.bench.figures import main, table
from tests.bench.paced_orchestrator import paced_orchestrator

_CONNECTIONS = 4


async def run(quick: bool) -> None:
    """Hold a debate in a process of its own and watch it from this one, by more and more watchers."""
    rows = [
        await _measured(count, text=text, debates=2 if quick else 3)
        for count in (1, 100, 1000)
        for text in (False, True)
    ]
    table(
        [
            "watchers",
            "text",
            "events",
            "delay p50, ms",
            "p99, ms",
            "most, ms",
            "server memory a watcher, KiB",
            "log reads while watched",
            "server CPU an event or piece, us",
            "of these in a message",
        ],
        rows,
    )


async def _measured(count: int, *, text: bool, debates: int) -> list[str]:
    delays: list[float] = []
    memory: list[float] = []
    reads = events = messages = items = 0
    cpu = 0.0
    async with paced_orchestrator() as server, AsyncExitStack() as stack:
        stubs = [
            orchestrator_pb2_grpc.OrchestratorServiceStub(
                await stack.enter_async_context(channel(server.address))
            )
            for _ in range(_CONNECTIONS)
        ]
        for _ in range(debates):
            debate = await server.ask("create")
            before = int(await server.ask("memory"))
            request = pb.WatchDebateRequest(debate_id=debate, text_deltas=text, batches=True)
            watchers = [
                _Watcher(stubs[number % _CONNECTIONS].WatchDebate(request)) for number in range(count)
            ]
            tasks = [asyncio.create_task(each.follow()) for each in watchers]
            await asyncio.gather(*(each.caught_up.wait() for each in watchers))
            memory.append((int(await server.ask("memory")) - before) / count / 1024)
            reads_before, cpu_before = int(await server.ask("reads")), float(await server.ask("cpu"))
            for each in watchers:
                each.counts_from = time.time()
            await server.ask("release")
            await asyncio.gather(*tasks)
            reads = int(await server.ask("reads")) - reads_before
            cpu += float(await server.ask("cpu")) - cpu_before
            for each in watchers:
                delays += each.delays
                messages += each.messages
                items += each.items
            events = watchers[0].events
    return [
        str(count),
        "yes" if text else "no",
        str(events),
        f"{median(delays) * 1000:.1f}",
        f"{quantiles(delays, n=100)[98] * 1000:.1f}",
        f"{max(delays) * 1000:.1f}",
        f"{median(memory):.0f}",
        str(reads),
        f"{cpu / items * 1e6:.0f}",
        f"{items / messages:.2f}",
    ]


class _Watcher:
    """One stream, and how late each event came after the moment it carries."""

    def __init__(
        self, stream: "grpc.aio.UnaryStreamCall[pb.WatchDebateRequest, pb.WatchDebateResponse]"
    ) -> None:
        self._stream = stream
        self.caught_up = asyncio.Event()
        self.counts_from = math.inf  # what was recorded while streams were opened waited for that
        self.delays: list[float] = []
        self.events = self.messages = self.items = 0

    async def follow(self) -> None:
        async for message in self._stream:
            now = time.time()
            self.messages += 1
            batch = message.events
            events = [message.event] if message.HasField("event") else batch.events
            self.items += len(events) + (len(batch.deltas) or message.HasField("delta"))
            for event in events:
                self._hear(event, now)

    def _hear(self, event: Event, now: float) -> None:
        self.events += 1
        recorded = event.time.ToNanoseconds() / 1e9
        if recorded >= self.counts_from:
            self.delays.append(now - recorded)
        if event.HasField("step_started") and event.key.endswith("/cy"):
            self.caught_up.set()  # the last of the proposals, all of which hang


if __name__ == "__main__":
    main(__doc__, run)
