"""Asks a tool of an MCP server. Runs by its path, in a process of its own, which starts the server and ends it.

It is two processes: one asks, and one adopts whatever the server starts, also what leaves its session, and ends all of it when the first
one ends or SIGTERM comes. Only Linux lets a process adopt; elsewhere what leaves the session stays.

Arguments: the folder of the libraries, and the processor time in seconds and the memory in bytes that it may take; the server has no such
limits. On stdin, JSON (`command`, `environment`, `tool`, `arguments`, `characters`, `seconds`); on stdout, JSON with `text`, or with `error`.
"""

import asyncio
import ctypes
import json
import os
import resource
import signal
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

_MAX_BYTES = 1 << 20
"""Of a line, and of all lines, that the server writes."""
_SET_CHILD_SUBREAPER = 36
"""Of Linux's prctl: the children of a process that ends become those of the nearest one above it that has this set."""


class Server:
    """A server that runs, with what it did wrong."""

    def __init__(self, process: Process) -> None:
        """Talk to a process over its stdin and stdout."""
        self.trouble = ""
        self._process = process

    @asynccontextmanager
    async def connect(self) -> AsyncIterator[Any]:
        """Yield the streams of messages from the server and to it, and kill it at the end."""
        import anyio

        arriving, received = anyio.create_memory_object_stream[Any](0)
        sent, leaving = anyio.create_memory_object_stream[Any](0)
        try:
            async with asyncio.TaskGroup() as tasks:
                talking = [tasks.create_task(self._read(arriving)), tasks.create_task(self._write(leaving))]
                try:
                    yield received, sent
                finally:
                    for each in talking:
                        each.cancel()
        finally:
            with suppress(ProcessLookupError):
                self._process.kill()

    async def _read(self, arriving: Any) -> None:
        """Pass on what the server says, until it says no more or too much."""
        from mcp.shared.message import SessionMessage
        from mcp.types import jsonrpc_message_adapter

        assert self._process.stdout is not None
        read = 0
        async with arriving:
            # A line that is longer than a stream may hold is a ValueError.
            with suppress(ValueError):
                while line := await self._process.stdout.readline():
                    read += len(line)
                    if read > _MAX_BYTES:
                        break
                    # A line that is no message is passed over: servers print some by mistake.
                    with suppress(ValueError):
                        await arriving.send(SessionMessage(jsonrpc_message_adapter.validate_json(line)))
                else:
                    self.trouble = "it ended before it answered"
                    return
            self.trouble = f"it wrote more than {_MAX_BYTES} bytes"

    async def _write(self, leaving: Any) -> None:
        assert self._process.stdin is not None
        # A server that reads no more says no more either: the reader sees that.
        with suppress(ConnectionError):
            async for each in leaving:
                said = each.message.model_dump_json(by_alias=True, exclude_unset=True)
                self._process.stdin.write(said.encode() + b"\n")
                await self._process.stdin.drain()


async def ask(given: dict[str, Any], limit: Any) -> dict[str, str]:
    """Return what a tool answers, or why it does not."""
    try:
        process = await asyncio.create_subprocess_exec(
            *given["command"],
            stdin=PIPE,
            stdout=PIPE,
            stderr=DEVNULL,
            env=given["environment"],
            cwd="/",
            limit=_MAX_BYTES,
        )
    except OSError as error:
        return {"error": f"it was not started: {error.strerror}"}
    limit()
    server = Server(process)
    try:
        # Who started this process ends it in time; if it was killed itself, this one must not wait for ever.
        async with asyncio.timeout(given["seconds"]):
            return await _call(server, given)
    except TimeoutError:
        return {"error": f"it did not answer within {given['seconds']:g} s"}
    except Exception as error:  # noqa: BLE001 - whatever the server made the SDK raise, it is the server's error
        return {"error": server.trouble or f"it failed: {_describe_first(error)}"}


async def _call(server: Server, given: dict[str, Any]) -> dict[str, str]:
    from mcp import Client

    async with Client(server.connect()) as client:
        found = await client.call_tool(given["tool"], given["arguments"])
    text = "\n\n".join(filter(None, map(_text_of, found.content)))
    if found.is_error:
        return {"error": f"the tool failed: {text[:500]}"}
    return {"text": text[: given["characters"]]}


def _text_of(block: Any) -> str:
    """Return the text of a part of an answer; empty for an image, a sound or a link."""
    return str(getattr(block, "text", "") or getattr(getattr(block, "resource", None), "text", ""))


def _describe_first(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}"[:500]


def main(library: str, seconds: int, memory: int) -> None:
    """Ask in a process of its own, then end that and all that it started."""
    if sys.platform != "linux":
        run(library, seconds, memory)
        return
    ctypes.CDLL(None).prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGTERM])
    asking = os.fork()
    if asking:
        signal.signal(signal.SIGTERM, lambda *_: os.kill(asking, signal.SIGKILL))
    signal.pthread_sigmask(signal.SIG_UNBLOCK, [signal.SIGTERM])
    if not asking:
        run(library, seconds, memory)
        return
    while os.wait()[0] != asking:
        pass  # an adopted process ended
    _end_children()


def _end_children() -> None:
    """Kill children until there are none; theirs become this process's own then."""
    with suppress(ChildProcessError):
        while True:
            for each in _list_children():
                os.kill(each, signal.SIGKILL)
            os.wait()


def _list_children() -> list[int]:
    found = []
    for each in Path("/proc").iterdir():
        # A process may end meanwhile.
        with suppress(OSError, ValueError):
            parent = int(each.joinpath("stat").read_text().rpartition(")")[2].split()[1])
            if parent == os.getpid():
                found.append(int(each.name))
    return found


def run(library: str, seconds: int, memory: int) -> None:
    """Read stdin and write stdout, within limits."""
    sys.path.append(library)

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))

    # JSON in ASCII: half of a surrogate pair would be no UTF-8.
    print(json.dumps(asyncio.run(ask(json.load(sys.stdin.buffer), limit))), flush=True)  # noqa: T201


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
