"""A process that appends to logs for ever and says what was acknowledged. Run by the durability test, and killed."""

import asyncio
import sys

from parley.storage.opening import open_store
from parley.storage.ports import Log, Record


async def write(to: Log, log: str) -> None:
    position = 1
    while True:
        entries = tuple(f"{log} {position + offset}".encode() for offset in range(position % 3 + 1))
        await to.append(log, Record(position, f"{log}-{position}", entries))
        position += len(entries)
        sys.stdout.write(f"{log} {position - 1}\n")
        sys.stdout.flush()


async def main(url: str, logs: int) -> None:
    async with open_store(url, "durability") as store, asyncio.TaskGroup() as group:
        for number in range(logs):
            group.create_task(write(store.log, f"log{number}"))


asyncio.run(main(sys.argv[1], int(sys.argv[2])))
