"""A process that appends to logs for ever and says what was acknowledged. Run by the durability test, and killed."""

import asyncio
import sys

from parley.storage.opening import Store, open_store
from parley.storage.ports import Collection, Record

EARLIER = Collection("earlier")


async def write(group: asyncio.TaskGroup, store: Store, log: str) -> None:
    position = 1
    while True:
        # Nobody waits for it: it is acknowledged by the append behind it.
        group.create_task(store.documents.insert(EARLIER, f"{log} {position}", {}))
        await asyncio.sleep(0)
        entries = tuple(f"{log} {position + offset}".encode() for offset in range(position % 3 + 1))
        await store.log.append(log, Record(position, f"{log}-{position}", entries))
        position += len(entries)
        sys.stdout.write(f"{log} {position - 1}\n")
        sys.stdout.flush()


async def main(url: str, logs: int) -> None:
    async with open_store(url, "durability") as store, asyncio.TaskGroup() as group:
        await store.documents.prepare(EARLIER)
        for number in range(logs):
            group.create_task(write(group, store, f"log{number}"))


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
