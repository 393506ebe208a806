"""The whole command `parley debate`, cold and beside a server, and the start of services: seconds of CPU, which a busy machine spoils less."""

import asyncio
import os
import resource
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median

from parley.runtime.loopback import loopback
from tests.bench.bare_script import LEVELS
from tests.bench.environment import MODEL, use_environment
from tests.bench.figures import main, show_middle, table
from tests.support.model_server import Ledger, ModelServer, Record
from tests.support.ports import free_ports
from tests.support.process_status import cpu_seconds_of

_CALL_SECONDS = 0.2
_WAIT_SECONDS = 60.0
_DEBATE = ("-m", "parley.cli", "debate", "-a", "architect,performance,security", "-r", "1")
_SERVICES = ("gateway", "orchestrator", "convergence", "memory", "ratings")


@dataclass(frozen=True, slots=True)
class _Run:
    """What one command took, in seconds: until its first request and its first call for text came in, in all, and while no request was open."""

    request: float

    first: float
    first_cpu: float
    whole: float
    cpu: float
    alone: float
    calls: int


async def run(quick: bool) -> None:
    """Run the commands by turns."""
    runs: dict[str, list[_Run]] = {"bare script": [], "parley debate, cold": [], "parley debate, warm": []}
    services: dict[str, list[float]] = {name: [] for name in _SERVICES}
    modules = {}
    with tempfile.TemporaryDirectory() as folder:
        async with ModelServer(latency=_CALL_SECONDS, states_positions=True) as models:
            use_environment(Path(folder, "warm"), models.base_url)
            async with _running_system():
                await _measure(models, *_DEBATE, "Which queue first?")
                bare = ("-m", "tests.bench.bare_script", models.base_url, MODEL)
                for number in range(3 if quick else 9):
                    runs["bare script"].append(await _measure(models, *bare, f"Which bare queue, {number}?"))
                    warm = await _measure(models, *_DEBATE, f"Which warm queue, {number}?")
                    runs["parley debate, warm"].append(warm)
                    with _use_store(Path(folder, f"cold-{number}")):
                        cold = await _measure(models, *_DEBATE, f"Which cold queue, {number}?")
                        runs["parley debate, cold"].append(cold)
                        for name in _SERVICES:
                            services[name].append(await _measure_service(name))
                modules["bare script"] = await _count_modules(models, *bare, "Which?")
                modules["parley debate, warm"] = await _count_modules(models, *_DEBATE, "Which one counts?")
                with _use_store(Path(folder, "counted")):
                    modules["parley debate, cold"] = await _count_modules(models, *_DEBATE, "Which counts?")
    _print(runs, modules, services)


def _print(runs: dict[str, list[_Run]], modules: dict[str, int], services: dict[str, list[float]]) -> None:
    path = len(LEVELS) * _CALL_SECONDS
    table(
        [
            f"command, calls of {1000 * _CALL_SECONDS:.0f} ms",
            "CPU to the first call",
            "s to it",
            "s to the first request",
            "modules till then",
            "CPU in all",
            "s in all",
            f"beyond a path of {path:.1f} s",
            "s while none is open",
            "calls",
        ],
        [
            [
                name,
                show_middle([each.first_cpu for each in those], 2),
                show_middle([each.first for each in those], 2),
                show_middle([each.request for each in those], 2),
                str(modules[name]),
                show_middle([each.cpu for each in those], 2),
                show_middle([each.whole for each in those], 2),
                f"{median(each.whole for each in those) - path:.2f}",
                show_middle([each.alone for each in those], 2),
                str(those[-1].calls),
            ]
            for name, those in runs.items()
        ],
    )
    print()
    table(
        ["service", "CPU until it listens"],
        [[f"parley serve {name}", show_middle(those, 2)] for name, those in services.items()],
    )


@contextmanager
def _use_store(folder: Path) -> Iterator[None]:
    """Let commands that are started in the block keep their data there."""
    before, os.environ["PARLEY_STORE"] = os.environ["PARLEY_STORE"], f"sqlite:///{folder}"
    try:
        yield
    finally:
        os.environ["PARLEY_STORE"] = before


@asynccontextmanager
async def _running_system() -> AsyncIterator[None]:
    """Run `parley up` in the block."""
    process = await _start(
        "-m", "parley.cli", "up", "--port", str(next(free_ports())), out=asyncio.subprocess.PIPE
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(_WAIT_SECONDS):
            while not (line := await process.stdout.readline()).startswith(b"console"):
                assert line, "parley up did not start"
        yield
    finally:
        process.terminate()
        await process.communicate()


async def _measure(models: ModelServer, *arguments: str) -> _Run:
    """Run a command to its end."""
    models.reset()
    before, began = resource.getrusage(resource.RUSAGE_CHILDREN), time.monotonic()
    process = await _start(*arguments)
    await _first_call(models, arguments[-1])
    first, first_cpu = time.monotonic() - began, cpu_seconds_of(process.pid)
    assert await process.wait() == 0, arguments
    whole, after = time.monotonic() - began, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    calls = models.ledger.calls
    request = min(each.started for each in calls) - began
    return _Run(request, first, first_cpu, whole, cpu, whole - _sum_open_seconds(calls), len(calls))


def _sum_open_seconds(calls: Iterable[Record]) -> float:
    """Return for how long at least one was open: the list of models and what checks the answer are requests too."""
    seconds = until = 0.0
    for each in sorted(calls, key=lambda each: each.started):
        seconds += max(each.ended - max(each.started, until), 0.0)
        until = max(until, each.ended)
    return seconds


async def _first_call(models: ModelServer, question: str) -> None:
    """Wait for the first call about a question: a system may still make calls that follow the answer to another."""

    def has_call(ledger: Ledger) -> bool:
        prompts = [each.prompt for each in ledger.open_calls] + [each.prompt for each in ledger.calls]
        return any(question in each for each in prompts)

    await models.ledger.wait_for(has_call, _WAIT_SECONDS)


async def _count_modules(models: ModelServer, *arguments: str) -> int:
    """Return how many modules a command has imported when its first call comes in."""
    models.reset()
    process = await _start("-X", "importtime", *arguments, err=asyncio.subprocess.PIPE)
    count = 0

    async def read() -> None:
        nonlocal count
        assert process.stderr is not None
        async for line in process.stderr:
            count += line.startswith(b"import time:")

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(read())
        await _first_call(models, arguments[-1])
        till_then = count
    await process.wait()
    return till_then


async def _measure_service(name: str) -> float:
    """Return the CPU that a service takes until it listens."""
    port = next(free_ports())
    process = await _start("-m", "parley.cli", "serve", name, PARLEY_PORT=str(port), PARLEY_AUTH="none")
    try:
        async with asyncio.timeout(_WAIT_SECONDS):
            while not await _listens(port):
                assert process.returncode is None, name
                await asyncio.sleep(0.01)
        return cpu_seconds_of(process.pid)
    finally:
        process.terminate()
        await process.wait()


async def _listens(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection(loopback(), port)
    except OSError:
        return False
    writer.close()
    return True


async def _start(
    *arguments: str, out: int = asyncio.subprocess.DEVNULL, err: int = asyncio.subprocess.DEVNULL, **more: str
) -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        sys.executable,
        *arguments,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=out,
        stderr=err,
        env=os.environ | more,
        limit=2**20,
    )


if __name__ == "__main__":
    main(__doc__, run)
