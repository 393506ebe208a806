"""The embedded system in a process that does nothing else: says once that it answers, and stops when stdin ends."""

import asyncio
import sys
import tempfile
import time
from pathlib import Path

from parley.client import ParleyClient
from parley.local import LocalOptions, local_system
from tests.bench.environment import use_environment

_SILENT = "http://127.0.0.1:9/v1"


async def _answer() -> None:
    with tempfile.TemporaryDirectory() as folder:
        use_environment(Path(folder), _SILENT)
        async with (
            local_system(LocalOptions()) as running,
            ParleyClient(running.orchestrator_address) as client,
        ):
            assert [debate async for debate in client.list()] == []
            print(time.process_time(), flush=True)
            await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_answer())
