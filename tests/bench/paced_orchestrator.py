"""An orchestrator in a process of its own, before a gateway that writes as models do; for what watches it."""

import asyncio
import os
import random
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from fnmatch import fnmatchcase
from pathlib import Path

import grpc

from parley.runtime.entry import tune_gc_and_threads
from parley.v1 import gateway_pb2
from tests.support.orchestration import orchestrating
from tests.support.process_status import resident_bytes
from tests.support.scripted_gateway import ScriptedGateway

_ROUNDS = 2
_PIECES = 20
PIECE_SECONDS = 0.02


class PacedOrchestrator:
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
async def paced_orchestrator(
    piece_seconds: float = PIECE_SECONDS, spread: float = 0.0
) -> AsyncIterator[PacedOrchestrator]:
    """Run it while the block runs; a model writes a piece of its 20 in so many seconds, by that part more or less."""
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        __spec__.name,
        str(piece_seconds),
        str(spread),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        yield PacedOrchestrator(process, (await process.stdout.readline()).decode().strip())
    finally:
        process.kill()
        await process.wait()


class PacedGateway(ScriptedGateway):
    """Writes its answers as a model does, piece by piece: those of steps that match `paced`.

    A call may take more or less than usual, by the part `spread`.
    """

    paced = "*"
    piece_seconds = PIECE_SECONDS
    spread = 0.0

    async def Generate(  # noqa: N802
        self,
        request: gateway_pb2.GenerateRequest,
        context: "grpc.aio.ServicerContext[gateway_pb2.GenerateRequest, AsyncIterator[gateway_pb2.GenerateResponse]]",
    ) -> AsyncIterator[gateway_pb2.GenerateResponse]:
        seconds = self.piece_seconds * random.uniform(1 - self.spread, 1 + self.spread)
        async for message in super().Generate(request, context):
            if message.HasField("delta") and fnmatchcase(request.call_id.step, self.paced):
                await asyncio.sleep(seconds)
            yield message


async def _serve(piece_seconds: float, spread: float) -> None:
    """The other side of `PacedOrchestrator`: an orchestrator before a scripted gateway."""
    tune_gc_and_threads()
    gateway = PacedGateway()
    gateway.deltas, gateway.piece_seconds, gateway.spread = _PIECES, piece_seconds, spread
    gateway.text = lambda step, agent: f"{agent} on {step}: {'so many words ' * 120}\nPosition: yes"
    reads = _count_reads()
    hold = gateway.hold("round/1/propose/*")
    loop = asyncio.get_running_loop()
    with tempfile.TemporaryDirectory() as folder:
        async with (
            gateway.served() as served,
            orchestrating(Path(folder), served, over_sockets=True) as orchestrator,
        ):
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
                        _say(str(resident_bytes(os.getpid())))
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


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    asyncio.run(_serve(float(sys.argv[1]), float(sys.argv[2])))
