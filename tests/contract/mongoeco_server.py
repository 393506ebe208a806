"""Serves MongoDB's wire protocol from an SQLite file until stdin ends. Runs on an interpreter of its own."""

import asyncio
import sys

from mongoeco.engines import SQLiteEngine  # type: ignore[import-not-found,unused-ignore]
from mongoeco.wire import AsyncMongoEcoProxyServer  # type: ignore[import-not-found,unused-ignore]


async def main(path: str) -> None:
    async with AsyncMongoEcoProxyServer(engine=SQLiteEngine(path), host="127.0.0.1", port=0) as server:
        sys.stdout.write(f"{server.address.port}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1]))
