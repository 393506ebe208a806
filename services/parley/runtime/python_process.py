"""Python processes that this one starts. None looks for modules in the current folder, which a stranger may have written."""

import asyncio
import os
import signal
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Final

from parley.runtime.own_variables import list_inherited

_END_SECONDS: Final = 5.0


def python_command(*arguments: str) -> list[str]:
    """Return the command that runs Python with these arguments and keeps the current folder off its module path.

    PYTHONPATH and packages of the user stay on it: Parley may be installed there.
    """
    return [sys.executable, "-P", *arguments]


def safe_environment() -> dict[str, str]:
    """Return the variables for such a process: what it starts keeps the current folder off its path too."""
    return {**list_inherited(), "PYTHONSAFEPATH": "1"}


async def run_filter(command: Sequence[str], given: bytes, seconds: float) -> bytes:
    """Return what a command writes to stdout, given these bytes on stdin and no variable of this process; its stderr is dropped.

    It runs in `/`: a library that it uses may look for its parts in the current folder first, as Z3's does.
    When this ends, a command that still runs gets SIGTERM, and is killed if it runs on for 5 s; what it started is killed if it is still in its
    process group. A command whose children may leave that ends them by itself.

    Raises:
        TimeoutError: it did not end within so many seconds.
    """
    child = await asyncio.create_subprocess_exec(
        *command,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={},
        cwd="/",
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(seconds):
            output, _ = await child.communicate(given)
    finally:
        await _end(child)
    return output


async def _end(child: asyncio.subprocess.Process) -> None:
    try:
        with suppress(ProcessLookupError, TimeoutError):
            child.terminate()
            async with asyncio.timeout(_END_SECONDS):
                await child.wait()
    finally:
        with suppress(ProcessLookupError):
            os.killpg(child.pid, signal.SIGKILL)
        await child.wait()
