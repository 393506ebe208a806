"""A thousand watchers of one debate: how late an event reaches them, and what a watcher costs."""

import asyncio
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from statistics import median, quantiles

import grpc

from parley.runtime.channel import channel
from parley.v1 import gateway_pb2, orchestrator_pb2_grpc
from parley.v1 import orchestrator_pb2 as pb
from tests.bench.figures import main, table
from tests.support.orchestration import orchestrating
from tests.support.scripted_gateway import ScriptedGateway

_ROUNDS = 2
_CONNECTIONS = 4
_PIECES = 20
_PIECE_SECONDS = 0.02


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
            "server CPU a message, us",
        ],
        rows,
    )


async def _measured(count: int, *, text: bool, debates: int) -> list[str]:
    delays: list[float] = []
    memory: list[float] = []
    reads = events = messages = 0
    cpu = 0.0
    async with _server() as server, AsyncExitStack() as stack:
        stubs = [
            orchestrator_pb2_grpc.OrchestratorServiceStub(
                await stack.enter_async_context(channel(server.address))
            )
            for _ in range(_CONNECTIONS)
        ]
        for _ in range(debates):
            debate = await server.ask("create")
            before = int(await server.ask("memory"))
            request = pb.WatchDebateRequest(debate_id=debate, text_deltas=text)
            watchers = [
                _Watcher(stubs[number % _CONNECTIONS].WatchDebate(request)) for number in range(count)
            ]
            tasks = [asyncio.create_task(each.follow()) for each in watchers]
            await asyncio.gather(*(each.caught_up.wait() for each in watchers))
            memory.append((int(await server.ask("memory")) - before) / count / 1024)
            reads_before, cpu_before = int(await server.ask("reads")), float(await server.ask("cpu"))
            await server.ask("release")
            await asyncio.gather(*tasks)
            reads = int(await server.ask("reads")) - reads_before
            cpu += float(await server.ask("cpu")) - cpu_before
            for each in watchers:
                delays += each.delays
                messages += each.messages
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
        f"{cpu / messages * 1e6:.0f}",
    ]


class _Watcher:
    """One stream, and how late each event came after the moment it carries."""

    def __init__(
        self, stream: "grpc.aio.UnaryStreamCall[pb.WatchDebateRequest, pb.WatchDebateResponse]"
    ) -> None:
        self._stream = stream
        self.caught_up = asyncio.Event()
        self.delays: list[float] = []
        self.events = self.messages = 0

    async def follow(self) -> None:
        async for message in self._stream:
            now = time.time()
            self.messages += 1
            if not message.HasField("event"):
                continue
            self.events += 1
            if self.caught_up.is_set():
                self.delays.append(now - message.event.time.ToNanoseconds() / 1e9)
            if message.event.HasField("step_started") and message.event.key.endswith("/cy"):
                self.caught_up.set()  # the last of the proposals, all of which hang


class _Server:
    """The orchestrator in its own process; it does what a line says and answers with a line."""

    def __init__(self, process: asyncio.subprocess.Process, address: str) -> None:
        self._process = process
        self.address = address

    async def ask(self, what: str) -> str:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{what}\n".encode())
        return (await self._process.stdout.readline()).decode().strip()


@asynccontextmanager
async def _server() -> AsyncIterator[_Server]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        __spec__.name,
        "--serve",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        yield _Server(process, (await process.stdout.readline()).decode().strip())
    finally:
        process.kill()
        await process.wait()


class _Paced(ScriptedGateway):
    """Writes its answers as a model does, piece by piece."""

    async def Generate(  # noqa: N802
        self,
        request: gateway_pb2.GenerateRequest,
        context: "grpc.aio.ServicerContext[gateway_pb2.GenerateRequest, AsyncIterator[gateway_pb2.GenerateResponse]]",
    ) -> AsyncIterator[gateway_pb2.GenerateResponse]:
        async for message in super().Generate(request, context):
            if message.HasField("delta"):
                await asyncio.sleep(_PIECE_SECONDS)
            yield message


async def _serve() -> None:
    """The other side of `_Server`: an orchestrator before a scripted gateway."""
    gateway = _Paced()
    gateway.deltas = _PIECES
    gateway.text = lambda step, agent: f"{agent} on {step}: {'so many words ' * 120}\nPosition: yes"
    reads = _count_reads()
    hold = gateway.hold("round/1/propose/*")
    loop = asyncio.get_running_loop()
    with tempfile.TemporaryDirectory() as folder:
        async with gateway.served() as served, orchestrating(Path(folder), served) as orchestrator:
            _say(orchestrator.server.address)
            while line := (await loop.run_in_executor(None, sys.stdin.readline)).strip():
                match line:
                    case "create":
                        hold.released.clear()
                        asked = len(gateway.steps("round/1/propose/*"))
                        _say(await orchestrator.create(rounds=_ROUNDS))
                        await gateway.wait_for("round/1/propose/*", asked + 3)
                    case "release":
                        hold.release()
                        _say("released")
                    case "memory":
                        _say(str(_memory()))
                    case "reads":
                        _say(str(reads[0]))
                    case "cpu":
                        _say(str(time.process_time()))


def _count_reads() -> list[int]:
    from parley.storage.sqlite.log import SqliteLog

    count, read = [0], SqliteLog.read

    async def counted(self: SqliteLog, log: str, after: int = 0, limit: int = 1000) -> object:
        count[0] += 1
        return await read(self, log, after, limit)

    SqliteLog.read = counted  # type: ignore[assignment]
    return count


def _memory() -> int:
    """Bytes this process holds."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE")


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    if "--serve" in sys.argv:
        asyncio.run(_serve())
    else:
        main(__doc__, run)
