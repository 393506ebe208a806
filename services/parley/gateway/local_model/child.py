"""The process that the model runs in."""

import asyncio
import os
from collections.abc import Sequence
from contextlib import suppress

__all__ = ["Child", "LocalModelError"]

_STOP_SECONDS = 3.0
_KEPT_BYTES = 4096  # of what the child complains about; the last lines of it are shown
_SHOWN_LINES = 3
_SHOWN_CHARACTERS = 300  # of a line


class LocalModelError(Exception):
    """The local model cannot run here, or did not start. The message is one line for a person."""


class Child:
    """The child process and the last lines of what it complained about."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._complaints = b""
        self._listening = asyncio.create_task(self._listen(), name="local-model-log")

    @classmethod
    async def start(cls, command: Sequence[str]) -> "Child":
        """Start the command as a child that ends when this process does."""
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.PIPE,  # its end tells the child that we are gone
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the parent, which then stops the child in its own order
            env={
                **os.environ,
                "OMP_WAIT_POLICY": "PASSIVE",
            },  # threads that spin starve everything beside them
        )
        return cls(process)

    async def base_url(self, seconds: float) -> str:
        """Return the URL the child reports, within the seconds given."""
        assert self.process.stdout is not None
        try:
            async with asyncio.timeout(seconds):
                line = await self.process.stdout.readline()
                if line.endswith(b"\n"):
                    return line.decode().strip()
                await self.process.wait()
                await asyncio.wait([self._listening])
        except TimeoutError:
            raise LocalModelError(
                f"the local model did not answer within {seconds:g} s{self._said()}: "
                "set a key or a base URL to use another model"
            ) from None
        raise LocalModelError(
            f"the local model did not start ({self.ending()}): set a key or a base URL to use another model"
        )

    def ending(self) -> str:
        """Return how the child ended and what it said last."""
        code = self.process.returncode
        how = f"signal {-code}" if code is not None and code < 0 else f"exit {code}"
        return f"{how}{self._said()}"

    async def stop(self) -> None:
        """End the child, by force after a moment, and reap it."""
        try:
            with suppress(ProcessLookupError):
                self.process.terminate()
            with suppress(TimeoutError):
                async with asyncio.timeout(_STOP_SECONDS):
                    await self.process.wait()
        finally:
            # Reached with the child alive if it ignored the request, or if we were cancelled meanwhile.
            with suppress(ProcessLookupError):
                self.process.kill()
            await self.process.wait()
            self._listening.cancel()
            await asyncio.wait([self._listening])

    def _said(self) -> str:
        lines = [line.strip() for line in self._complaints.decode(errors="replace").splitlines()]
        last = [line[:_SHOWN_CHARACTERS] for line in lines if line][-_SHOWN_LINES:]
        return f"; it said: {' | '.join(last)}" if last else ""

    async def _listen(self) -> None:
        assert self.process.stderr is not None
        while chunk := await self.process.stderr.read(_KEPT_BYTES):
            self._complaints = (self._complaints + chunk)[-_KEPT_BYTES:]
