"""MongoDB's wire protocol as far as our adapter uses it, answered from memory, for runs that the stand-in is too slow for.

A command takes 0.1 ms here, and 5 to 15 ms of the stand-in that knows all of MongoDB (`tests/contract/mongodb_server.py`), on which
every other test runs. The contract suites pass on this one too (`tests/contract/test_memory_mongodb.py`). What it does not
know, it refuses. It has no change streams, so that followers of logs poll.
"""

import asyncio
import struct
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

import bson

from tests.support.memory_collection import CommandError, Document, MemoryCollection
from tests.support.ports import free_ports

_ROOT: Final = Path(__file__).parents[2]
_HEADER: Final = struct.Struct("<iiii")
_QUERY: Final = 2004
_REPLY: Final = 1
_MESSAGE: Final = 2013
_NO_COMMAND: Final = 59
_NO_CHANGE_STREAMS: Final = 40324
_HELLO: Final = {
    "helloOk": True,
    "isWritablePrimary": True,
    "ismaster": True,
    "maxBsonObjectSize": 16 * 2**20,
    "maxMessageSizeBytes": 48_000_000,
    "maxWriteBatchSize": 100_000,
    "minWireVersion": 0,
    "maxWireVersion": 21,
    "readOnly": False,
}


@contextmanager
def run_memory_mongodb() -> Iterator[str]:
    """Serve from a process of its own while the block lasts; yield the server's URL."""
    port = next(free_ports())
    command = [sys.executable, "-m", "tests.support.memory_mongodb", str(port)]
    with subprocess.Popen(command, cwd=_ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            assert process.stdout.readline(), "the server in memory does not listen"
            yield f"mongodb://127.0.0.1:{port}/"
        finally:
            process.stdin.close()


class _Server:
    """Answers one command at a time, each whole."""

    def __init__(self) -> None:
        self._databases: defaultdict[str, defaultdict[str, MemoryCollection]] = defaultdict(
            lambda: defaultdict(MemoryCollection)
        )
        self._commands: dict[str, Callable[[Document], Document]] = {
            "find": self._find,
            "insert": self._insert,
            "update": self._update,
            "delete": self._delete,
            "createIndexes": self._create_indexes,
            "dropIndexes": self._drop_indexes,
            "drop": self._drop,
            "dropDatabase": self._drop_database,
            "aggregate": self._aggregate,
            "hello": lambda _: dict(_HELLO),
            "ismaster": lambda _: dict(_HELLO),
            "ping": lambda _: {},
            "endSessions": lambda _: {},
        }

    async def converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer all that one connection asks."""
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                size, request, _, kind = _HEADER.unpack(await reader.readexactly(_HEADER.size))
                body = await reader.readexactly(size - _HEADER.size)
                if kind == _QUERY:  # how drivers begin
                    answer = self._answer(_read_query(body))
                    body, kind = struct.pack("<iqii", 8, 0, 0, 1) + bson.encode(answer), _REPLY
                else:
                    body, kind = b"\0\0\0\0\0" + bson.encode(self._answer(_read_command(body))), _MESSAGE
                writer.write(_HEADER.pack(_HEADER.size + len(body), request + 1, request, kind) + body)
                await writer.drain()
        writer.close()

    def _answer(self, command: Document) -> Document:
        name = next(iter(command))
        if name not in self._commands:
            return _describe_failure(CommandError(_NO_COMMAND, f"no such command: {name}"))
        try:
            return {**self._commands[name](command), "ok": 1.0}
        except CommandError as error:
            return _describe_failure(error)

    def _of(self, command: Document) -> MemoryCollection:
        return self._databases[command["$db"]][next(iter(command.values()))]

    def _find(self, command: Document) -> Document:
        found = self._of(command).find(
            command.get("filter", {}),
            command.get("sort", {}),
            command.get("limit", 0),
            command.get("projection", {}),
        )
        # All at once: a page of a log is well below what a message holds.
        name = f"{command['$db']}.{command['find']}"
        return {"cursor": {"id": bson.Int64(0), "ns": name, "firstBatch": found}}

    def _insert(self, command: Document) -> Document:
        def insert(one: Document) -> int:
            self._of(command).insert(one)
            return 1

        return self._written(command, "documents", insert)

    def _update(self, command: Document) -> Document:
        def update(one: Document) -> int:
            return self._of(command).update(one["q"], one["u"], upsert=one.get("upsert", False))

        answer = self._written(command, "updates", update)
        return {**answer, "nModified": answer["n"]}

    def _delete(self, command: Document) -> Document:
        return self._written(
            command, "deletes", lambda one: self._of(command).delete(one["q"], limit=one["limit"])
        )

    def _written(self, command: Document, what: str, write: Callable[[Document], int]) -> Document:
        count = 0
        for place, one in enumerate(command[what]):
            try:
                count += write(one)
            except CommandError as error:
                failed = {"index": place, "code": error.code, "errmsg": str(error)}
                return {"n": count, "writeErrors": [failed]}
        return {"n": count}

    def _create_indexes(self, command: Document) -> Document:
        for index in command["indexes"]:
            self._of(command).create_index(index)
        return {}

    def _drop_indexes(self, command: Document) -> Document:
        self._of(command).drop_index(command["index"])
        return {}

    def _drop(self, command: Document) -> Document:
        self._databases[command["$db"]].pop(command["drop"], None)
        return {}

    def _drop_database(self, command: Document) -> Document:
        self._databases.pop(command["$db"], None)
        return {}

    def _aggregate(self, command: Document) -> Document:
        match command["pipeline"]:
            case [{"$match": where}, {"$group": {"_id": 1, "n": {"$sum": 1}}}]:  # a driver's way to count
                found = len(self._of(command).find(where, {}, 0, {}))
                name = f"{command['$db']}.{command['aggregate']}"
                counted = [{"_id": 1, "n": found}] if found else []
                return {"cursor": {"id": bson.Int64(0), "ns": name, "firstBatch": counted}}
        raise CommandError(_NO_CHANGE_STREAMS, "no stage but those of a replica set: there is none here")


def _describe_failure(error: CommandError) -> Document:
    return {"ok": 0.0, "errmsg": str(error), "code": error.code}


def _read_query(body: bytes) -> Document:
    """Return the command of a message of the oldest kind: flags, a name, two numbers, and the command."""
    start = body.index(b"\0", 4) + 9
    return {**bson.decode(body[start:]), "$db": "admin"}


def _read_command(body: bytes) -> Document:
    """Return the command of a message: its document, and with it the documents that came beside."""
    place, command, beside = 4, Document(), Document()
    while place < len(body):
        kind, size = body[place], int.from_bytes(body[place + 1 : place + 5], "little")
        part = body[place + 1 : place + 1 + size]
        place += 1 + size
        if kind == 0:
            command = bson.decode(part)
        else:
            name, _, documents = part[4:].partition(b"\0")
            beside[name.decode()] = bson.decode_all(documents)
    return command | beside


async def _main(port: int) -> None:
    async with await asyncio.start_server(_Server().converse, "127.0.0.1", port):
        sys.stdout.write(f"{port}\n")
        sys.stdout.flush()
        await asyncio.to_thread(sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_main(int(sys.argv[1])))
