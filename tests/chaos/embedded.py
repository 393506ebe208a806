"""The embedded system as a process that may be killed: `python -m tests.chaos.embedded [ID]` holds a debate, or goes on with that one, to its end."""

import asyncio
import sys

from parley.client import ParleyClient
from parley.local import LocalOptions, local_system
from tests.bench.graph import Shape
from tests.bench.system import spec


async def main(debate: str) -> None:
    async with local_system(LocalOptions(adopt=True)) as system:
        assert system.channel is not None
        client = ParleyClient.over(system.channel, ())
        debate = debate or await client.create_debate(spec(Shape(3, 1), "Tabs or spaces?"))
        sys.stdout.write(f"{debate}\n")
        sys.stdout.flush()
        async for _ in client.watch(debate):
            pass


if __name__ == "__main__":
    asyncio.run(main(*sys.argv[1:] or [""]))
