"""Programs of others, run to their end."""

import asyncio
from collections.abc import Mapping, Sequence
from pathlib import Path


async def run_program(
    command: Sequence[str | Path], folder: Path, seconds: float, variables: Mapping[str, str]
) -> tuple[int, str, str]:
    """Run a command with these variables alone; return its exit code, stdout and stderr."""
    process = await asyncio.create_subprocess_exec(
        *command,
        cwd=folder,
        env=variables,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    try:
        async with asyncio.timeout(seconds):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
    assert process.returncode is not None
    return process.returncode, out.decode(), err.decode()
