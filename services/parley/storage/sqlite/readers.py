"""Threads that read one SQLite file for the event loop.

Most reads are shorter than what a `ThreadPoolExecutor` takes to hand one over: it makes two futures of each, and wakes the loop twice.
"""

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from queue import SimpleQueue
from sqlite3 import Connection
from typing import Any, Final, TypeVar

T = TypeVar("T")

MOST: Final = 4
"""Threads of one file."""

_Read = tuple[Callable[[Connection], Any], asyncio.Future[Any]]


class Readers:
    """Threads with a connection each; another one is started if a read would wait, up to four."""

    def __init__(
        self, name: str, connect: Callable[[], Connection], to_caller_error: Callable[[Exception], Exception]
    ) -> None:
        """Start no thread yet. `name` is that of the threads, `connect` opens a connection that only reads, and `to_caller_error` returns what a caller gets for an error."""
        self._name = name
        self._connect = connect
        self._to_caller_error = to_caller_error
        self._loop = asyncio.get_running_loop()
        self._queue: SimpleQueue[_Read | None] = SimpleQueue()
        self._threads: list[threading.Thread] = []
        self._unanswered = 0

    async def read(self, work: Callable[[Connection], T]) -> T:
        """Return the result of the work, or raise what a caller gets for its error."""
        future: asyncio.Future[T] = self._loop.create_future()
        if len(self._threads) < min(self._unanswered + 1, MOST):
            thread = threading.Thread(target=self._run, name=self._name, daemon=True)
            thread.start()
            self._threads.append(thread)
        self._unanswered += 1
        self._queue.put((work, future))
        return await future

    def finish(self) -> None:
        """Finish the reads that wait, and close the connections. Call it in a thread, after the last read was asked for."""
        for _ in self._threads:
            self._queue.put(None)
        for thread in self._threads:
            thread.join()

    def _run(self) -> None:
        connection: Connection | None = None
        while (read := self._queue.get()) is not None:
            work, future = read
            result: Any = None
            failed: Exception | None = None
            try:
                if not future.cancelled():
                    connection = connection or self._connect()
                    result = work(connection)
            except Exception as error:  # noqa: BLE001 - whatever it was, the caller must get it
                failed = self._to_caller_error(error)
            with suppress(RuntimeError):  # the loop is closed, and with it all callers
                self._loop.call_soon_threadsafe(self._answer, future, result, failed)
            del read, work, future, result, failed  # they would be kept until the next read
        if connection is not None:
            connection.close()

    def _answer(self, future: asyncio.Future[Any], result: Any, failed: Exception | None) -> None:
        self._unanswered -= 1
        if future.done():  # cancelled meanwhile
            return
        if failed is None:
            future.set_result(result)
        else:
            future.set_exception(failed)
