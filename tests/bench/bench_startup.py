"""Start of the embedded system without a model: seconds until it answers, and memory at rest."""

import asyncio
import sys
import time
from dataclasses import dataclass

from tests.bench.figures import main, show_middle, table
from tests.support.process_status import resident_bytes

_SETTLES_SECONDS = 2


@dataclass(frozen=True, slots=True)
class _Start:
    """Seconds until the system answered, of the clock and of CPU, and its memory at rest in MiB."""

    seconds: float
    cpu: float
    memory: float


async def run(quick: bool) -> None:
    """Start processes one after the other."""
    python, helped, starts = [], [], []
    for _ in range(3 if quick else 9):
        python.append(await _measure_end("-c", "pass"))
        helped.append(await _measure_end("-m", "parley.cli", "--help"))
        starts.append(await _start())
    table(
        ["start", "seconds (lowest-highest)"],
        [
            ["python -c pass", show_middle(python, 2)],
            ["parley --help", show_middle(helped, 2)],
            [
                "embedded system, until the orchestrator answers",
                show_middle([each.seconds for each in starts], 2),
            ],
            ["the same, CPU of its process", show_middle([each.cpu for each in starts], 2)],
        ],
    )
    print()
    memory = show_middle([each.memory for each in starts], 0)
    table(["memory at rest", "MiB (lowest-highest)"], [["embedded system", memory]])


async def _measure_end(*arguments: str) -> float:
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        sys.executable, *arguments, stdout=asyncio.subprocess.DEVNULL
    )
    assert await process.wait() == 0, arguments
    return time.monotonic() - began


async def _start() -> _Start:
    began = time.monotonic()
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.bench.idle_system",
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    assert process.stdin is not None
    line = await process.stdout.readline()
    seconds = time.monotonic() - began
    assert line, "the system did not start"
    await asyncio.sleep(_SETTLES_SECONDS)
    memory = resident_bytes(process.pid)
    process.stdin.close()
    assert await process.wait() == 0
    return _Start(seconds, float(line), memory / 2**20)


if __name__ == "__main__":
    main(__doc__, run)
