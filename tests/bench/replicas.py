"""Services as processes of their own, and how much of a core each process started from here takes."""

import asyncio
import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path

from tests.support.process_status import cpu_seconds_of, parent_of, peak_bytes, resident_bytes

_STARTS_WITHIN = 60.0
_STOPS_WITHIN = 30.0
_FOREIGN = ("PARLEY_", "OPENAI_", "OPENROUTER_", "OTEL_")


@asynccontextmanager
async def service(name: str, label: str = "", **settings: str) -> AsyncIterator[str]:
    """Run a service of Parley for as long as the block lasts; yield its address.

    Settings are named without their `PARLEY_`; those of OpenAI are named in full. The label is how `cpu_seconds` calls
    the process; without one, as the service.
    """
    environment = {key: value for key, value in os.environ.items() if not key.startswith(_FOREIGN)}
    if (
        name == "orchestrator"
    ):  # one tenant asks for more than any does: what is measured is the system, not its limits
        settings = {f"tenant_{each}": "0" for each in ("debates", "requests", "watches")} | settings
    for key, value in {"port": "0", "grace_seconds": "5", **settings}.items():
        environment[key if key.startswith("OPENAI_") else f"PARLEY_{key.upper()}"] = value
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", f"parley.{name}", env=environment, stderr=asyncio.subprocess.PIPE
    )
    _labels[process.pid] = label or name
    reading = None
    try:
        address = await _address(name, process)
        reading = asyncio.create_task(_read_on(process))
        yield address
    finally:
        try:
            await _stop(process)
        finally:
            if reading is not None:
                await reading
            del _labels[process.pid]


def cpu_seconds() -> dict[str, float]:
    """Return the CPU that this process and each that it started has used so far (Linux only).

    Services are called by their labels, any other process by the last word of its command that names a file or module;
    those of one name are added up.
    """
    return _measure_each(cpu_seconds_of)


def memory_bytes() -> dict[str, float]:
    """Return the memory that is resident for each process that `cpu_seconds` knows, in bytes (Linux only)."""
    return _measure_each(resident_bytes)


def peak_memory_bytes() -> dict[str, float]:
    """Return the most memory that was ever resident for each process that `cpu_seconds` knows, in bytes (Linux only)."""
    return _measure_each(peak_bytes)


def _measure_each(measure: Callable[[int], float]) -> dict[str, float]:
    found = {"this process": measure(os.getpid())}
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):  # it may end meanwhile
            pid = int(folder.name)
            if parent_of(pid) == os.getpid():
                name = _labels.get(pid) or _command(folder)
                found[name] = found.get(name, 0.0) + measure(pid)
    return found


_labels: dict[int, str] = {}


async def _address(name: str, process: asyncio.subprocess.Process) -> str:
    assert process.stderr is not None
    said = []
    async with asyncio.timeout(_STARTS_WITHIN):
        while line := await process.stderr.readline():
            said.append(line.decode(errors="replace"))
            with suppress(ValueError):
                event = json.loads(line)
                if event.get("event") == "serving":
                    return str(event["address"])
    raise RuntimeError(f"the {name} did not start:\n{''.join(said)}")


async def _stop(process: asyncio.subprocess.Process) -> None:
    """Let a service stop in its own way, and kill it where that takes too long."""
    if process.returncode is None:
        process.terminate()
    try:
        async with asyncio.timeout(_STOPS_WITHIN):
            await process.wait()
    except TimeoutError:
        process.kill()
        raise RuntimeError(f"the {_labels[process.pid]} did not stop within {_STOPS_WITHIN:g} s") from None


async def _read_on(process: asyncio.subprocess.Process) -> None:
    """Read what a service writes, so that it never waits for a reader."""
    assert process.stderr is not None
    while await process.stderr.readline():
        pass


def _command(folder: Path) -> str:
    words = (folder / "cmdline").read_text().split("\0")
    named = [word for word in words if word.startswith("tests.") or word.endswith(".py")]
    return Path(named[-1]).name if named else Path(words[0]).name
