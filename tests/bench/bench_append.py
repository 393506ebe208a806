"""What an append costs at the end of a long log over what it costs at the end of a short one, on each store."""

import asyncio
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Protocol

from pymongo import MongoClient

from parley.orchestrator.log.envelope import create_event
from parley.orchestrator.log.journal import Journal
from parley.runtime.clock import SystemClock
from parley.storage.opening import open_store
from parley.storage.ports import Log, Record
from parley.v1.event_pb2 import RoundStarted
from tests.bench.figures import aim, main, show_middle, table
from tests.contract.mongodb_server import run_server
from tests.contract.server_process import NoServerError

_DATABASE = "bench"
_SHORT, _LONG = 10, 10_000
_RECORD = 10
"""Events in a record while a log is grown; what is timed is a record of one."""
_ENTRY = b"x" * 600
"""About what an event of a debate takes, the answers of agents left out."""
_MAX_RATIO = 1.2


async def run(quick: bool) -> None:
    """Append to long and short logs by turns, through the port and through the engine's journal."""
    repeats = 20 if quick else 200
    rows = []
    with _stores() as stores:
        for store, url in stores.items():
            for layer, opened in (("port", _port), ("journal", _journal)):
                short, long = await _measure(url, opened, repeats)
                ratio = median(long) / median(short)
                rows.append(
                    [
                        f"{store}, {layer}",
                        show_middle(short, 2),
                        show_middle(long, 2),
                        f"{ratio:.2f}",
                        aim(ratio, _MAX_RATIO),
                    ]
                )
    table(
        [
            "an append of one event",
            f"at {_SHORT} events (ms)",
            f"at {_LONG:,} events (ms)",
            "long / short",
            "aim",
        ],
        rows,
    )


class _Writer(Protocol):
    """Appends to a log of its own."""

    async def append(self, events: int) -> None:
        """Append one record."""


Open = Callable[[Log, AsyncExitStack, str], _Writer]


@dataclass(slots=True)
class _PortWriter:
    log: Log
    name: str
    last: int = 0

    async def append(self, events: int) -> None:
        await self.log.append(self.name, Record(self.last + 1, uuid.uuid4().hex, (_ENTRY,) * events))
        self.last += events


@dataclass(slots=True)
class _JournalWriter:
    journal: Journal
    last: int = 0

    async def append(self, events: int) -> None:
        numbers = range(self.last + 1, self.last + events + 1)
        await self.journal.append(
            *(create_event(f"round/{number}", RoundStarted(number=number, total=_LONG)) for number in numbers)
        )
        self.last += events


def _port(log: Log, _: AsyncExitStack, name: str) -> _Writer:
    return _PortWriter(log, name)


def _journal(log: Log, stack: AsyncExitStack, name: str) -> _Writer:
    journal = Journal(log, SystemClock(), "bench", name)
    writing = asyncio.create_task(journal.run_writer())
    stack.callback(writing.cancel)
    return _JournalWriter(journal)


async def _measure(url: str, opened: Open, repeats: int) -> tuple[list[float], list[float]]:
    """Return milliseconds of appends to short logs, each to one of its own, and to one long log."""
    short, long = [], []
    async with open_store(url, _DATABASE) as store, AsyncExitStack() as stack:
        longest = await _grow(opened(store.log, stack, uuid.uuid4().hex), _LONG)
        for writer in [
            await _grow(opened(store.log, stack, uuid.uuid4().hex), _SHORT) for _ in range(repeats)
        ]:
            short.append(await _milliseconds(writer))
            long.append(await _milliseconds(longest))
    return short, long


async def _grow(writer: _Writer, events: int) -> _Writer:
    for _ in range(events // _RECORD):
        await writer.append(_RECORD)
    return writer


async def _milliseconds(writer: _Writer) -> float:
    began = time.perf_counter()
    await writer.append(1)
    return (time.perf_counter() - began) * 1000


@contextmanager
def _stores() -> Iterator[dict[str, str]]:
    """Yield the stores there are, by name."""
    with ExitStack() as stack:
        stores = {"SQLite": f"sqlite:///{stack.enter_context(tempfile.TemporaryDirectory())}"}
        try:
            server = stack.enter_context(run_server())
        except NoServerError as error:
            print(f"MongoDB left out: {error}\n")
        else:
            prefix = f"parley_bench_{uuid.uuid4().hex[:12]}"
            stores[server.kind] = server.database_url(prefix)
            stack.callback(_drop, server.url, f"{prefix}_{_DATABASE}")
        yield stores


def _drop(url: str, database: str) -> None:
    with MongoClient[dict[str, object]](url) as client:
        client.drop_database(database)


if __name__ == "__main__":
    main(__doc__, run)
