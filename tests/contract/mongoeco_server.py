"""Serves MongoDB's wire protocol from an SQLite file at a port until stdin ends. Runs on an interpreter of its own."""

import asyncio
import sys
from typing import Any

from mongoeco.engines import SQLiteEngine  # type: ignore[import-not-found,unused-ignore]
from mongoeco.wire import AsyncMongoEcoProxyServer  # type: ignore[import-not-found,unused-ignore]


class _OneByOne(AsyncMongoEcoProxyServer):  # type: ignore[misc,unused-ignore]
    """Executes one command at a time.

    Two writers at once can stand in each other's way here: one waits for SQLite's lock on the event loop that the other
    needs to let go of it, and nothing moves until SQLite's patience ends.
    """

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self._turn = asyncio.Lock()

    async def _dispatch_wire_request(self, *request: Any, **named: Any) -> bytes | None:
        async with self._turn:
            answer: bytes | None = await super()._dispatch_wire_request(*request, **named)
            return answer


class _Engine(SQLiteEngine):  # type: ignore[misc,unused-ignore]
    """Does not read the whole collection at each insert and each search.

    It would look for a number equal to the new `_id` but stored otherwise; an `_id` that is text has one form. And it would
    look for decimal and undefined values; the store has none.
    """

    def _validate_document_against_unique_indexes(
        self, database: str, collection: str, document: dict[str, Any], **named: Any
    ) -> None:
        if isinstance(document.get("_id"), str):
            named["scan_payload_id"] = False
        super()._validate_document_against_unique_indexes(database, collection, document, **named)

    def _field_contains_tagged_value_type_in_collection(
        self, database: str, collection: str, field: str, value_type: str
    ) -> bool:
        if value_type != "bytes":
            return False
        found: bool = super()._field_contains_tagged_value_type_in_collection(
            database, collection, field, value_type
        )
        return found


async def main(path: str, port: int) -> None:
    async with _OneByOne(engine=_Engine(path), host="127.0.0.1", port=port) as server:
        sys.stdout.write(f"{server.address.port}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[1], int(sys.argv[2])))
