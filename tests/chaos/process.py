"""Runs services as processes of the chaos suite: `python -m tests.chaos.process`, the nursery.

It imports all services once, and what they import when it is first used. Then each line on stdin says how a process is to run (see `Start`): the nursery forks it,
which takes a tenth of a start of its own, and answers with its process id. Everything here dies with whoever started it.

`PARLEY_CHAOS_CRASH` names a crash point (see `points.py`); `PARLEY_CHAOS_FENCE=off` takes the lock out of the log; the file
`PARLEY_CHAOS_CLOCK` says by how many seconds the clock is ahead. They are known here alone: no service reads them.
"""

import ctypes
import gc
import importlib
import json
import os
import runpy
import signal
import sys
import traceback
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import asdict, dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any, Final, NoReturn

from msgspec.structs import replace

from parley.storage.ports import Vectors
from tests.chaos.points import (
    CrashingDocuments,
    CrashingLog,
    CrashingVectors,
    CrashPoint,
    UnfencedLog,
    wrap_call,
)
from tests.support.warm_process import IMPORTED_ON_USE, import_whole

_MODULES = (
    "parley.orchestrator",
    "parley.gateway",
    "parley.convergence",
    "parley.ratings",
    "parley.memory",
    "parley.cli",
    "tests.support.model_server",
)
ADDED_FORMAT: Final = "added@1"
"""A panel under a name that only the newer version knows."""
CHANGED_FORMAT: Final = "changed@1"
"""A panel that the newer version asks in other words, under the same name."""
_PR_SET_PDEATHSIG = 1
_NOWHERE = CrashPoint("after", "nothing", 1)


@dataclass(frozen=True, slots=True)
class Start:
    """How a process is to run: its module, its arguments, all its variables, and the file that takes what it writes."""

    module: str
    arguments: tuple[str, ...]
    variables: dict[str, str]
    output: str

    def to_line(self) -> bytes:
        """Return the line that says so."""
        return json.dumps(asdict(self)).encode() + b"\n"


def _die_with(parent: int) -> None:
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:  # it was gone before we asked
        sys.exit(1)


def _hook_store(point: CrashPoint, *, fenced: bool) -> None:
    from parley.storage import opening

    opened_before = opening.open_store

    @asynccontextmanager
    async def open_store(url: str, database: str, **options: Any) -> AsyncGenerator[opening.Store, None]:
        async with opened_before(url, database, **options) as store:
            documents = CrashingDocuments(store.documents, point)
            kind = CrashingLog if fenced else UnfencedLog
            yield opening.Store(documents, kind(store.log, documents, point), store.exclusive)

    opening.open_store = open_store
    vectors_before = opening.open_vectors

    @asynccontextmanager
    async def open_vectors(url: str, **options: Any) -> AsyncGenerator[Vectors, None]:
        async with vectors_before(url, **options) as vectors:
            yield CrashingVectors(vectors, point)

    opening.open_vectors = open_vectors


def _hook_clock(file: Path) -> None:
    """Set the wall time ahead by what the file says; what measures time is left alone."""
    from parley.runtime.clock import SystemClock

    now_before = SystemClock.now

    def read_moved_clock(clock: SystemClock) -> datetime:
        ahead = float(file.read_text()) if file.exists() else 0.0
        return now_before(clock) + timedelta(seconds=ahead)

    setattr(SystemClock, "now", read_moved_clock)  # noqa: B010 - a method is replaced


def _hook_calls(point: CrashPoint, module: str) -> None:
    """Make points of the calls a service makes, each under the name of what is called."""
    if module == "parley.orchestrator":
        from parley.orchestrator.delivery.sender import Sender
        from parley.orchestrator.peers.agents import Agents
        from parley.orchestrator.peers.services import Convergence, Memory, Ratings

        _wrap(point, Agents, "generate", "call.generate")
        _wrap(point, Agents, "cancel", "call.cancel")
        _wrap(point, Agents, "forget", "call.forget")
        _wrap(point, Convergence, "assess", "call.assess")
        _wrap(point, Convergence, "group_positions", "call.group")
        _wrap(point, Memory, "recall", "call.recall")
        _wrap(point, Memory, "record_debate", "call.memory")
        _wrap(point, Memory, "rate_debate", "call.rate")
        _wrap(point, Ratings, "record_match", "call.ratings")
        _wrap(point, Ratings, "record_feedback", "call.feedback")
        _wrap(point, Sender, "send", "call.send")
    elif module == "parley.gateway":
        from parley.gateway.wire.openai_endpoint import OpenAIEndpoint

        _wrap(point, OpenAIEndpoint, "complete", "call.model")


def _hook_formats() -> None:
    """Let orchestrators know more formats, wait for providers half a second at first, and leave soon who waits.

    They are the newer version if PARLEY_CHAOS_NEWER is set.
    """
    from parley.orchestrator.engine import budget, checkpoints
    from parley.orchestrator.engine.debate import Debate
    from parley.orchestrator.engine.format import Formats
    from parley.orchestrator.formats import panel, shipped
    from parley.v1.debate_pb2 import Outcome
    from tests.support.checked_format import CHECKED_FORMATS

    async def run_in_other_words(debate: Debate) -> Outcome:
        debate.briefing = "These are the words of the newer version."
        return await panel.V1.run(debate)

    changed = replace(panel.V1, name=CHANGED_FORMAT.partition("@")[0])
    more = [changed]
    if os.environ.get("PARLEY_CHAOS_NEWER"):
        added = replace(panel.V1, name=ADDED_FORMAT.partition("@")[0])
        more = [replace(changed, run=run_in_other_words), added]
    shipped.all_formats = lambda: Formats([*CHECKED_FORMATS.all(), *more])
    budget._FIRST_WAIT_SECONDS = 0.5
    checkpoints.OWNED_WAIT_SECONDS = 0.2  # type: ignore[misc]


def _wrap(point: CrashPoint, owner: type, method: str, name: str) -> None:
    setattr(owner, method, wrap_call(point, name, getattr(owner, method)))


def _run(start: Start, nursery: int) -> NoReturn:
    """Become the process: put the hooks in, then run the module as `python -m` would."""
    _die_with(nursery)
    os.setsid()
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    output = os.open(start.output, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    nothing = os.open(os.devnull, os.O_RDONLY)
    for stream, instead in ((0, nothing), (1, output), (2, output)):
        os.dup2(instead, stream)
    os.environ.clear()
    os.environ.update(start.variables)
    if start.module.startswith("parley."):
        text = os.environ.get("PARLEY_CHAOS_CRASH")
        point = CrashPoint.parse(text) if text else _NOWHERE
        _hook_store(point, fenced=os.environ.get("PARLEY_CHAOS_FENCE") != "off")
        _hook_calls(point, start.module)
        if clock := os.environ.get("PARLEY_CHAOS_CLOCK"):
            _hook_clock(Path(clock))
        if start.module == "parley.orchestrator":
            _hook_formats()
    sys.argv = [start.module, *start.arguments]
    del sys.modules[f"{start.module}.__main__"]  # it is run anew, as the main module
    code: object = 1
    try:
        runpy.run_module(start.module, run_name="__main__", alter_sys=True)
    except SystemExit as done:
        code = done.code or 0
    except BaseException:  # noqa: BLE001 - told, and then left the way it would have been
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        # Libraries that started threads in the nursery would wait for them here, and abort.
        os._exit(code if isinstance(code, int) else 1)


def main() -> None:
    """Import everything, then fork a process for each line, until stdin ends."""
    _die_with(int(sys.argv[1]))
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nothing dead stays behind
    for module in _MODULES:
        importlib.import_module(f"{module}.__main__")
    for module in (
        *IMPORTED_ON_USE,
        "parley.cli.commands.serve",
        "parley.local",
        "tests.support.checked_format",
    ):
        import_whole(module)
    gc.freeze()  # a fork that looked through what is imported would copy its pages
    nursery = os.getpid()
    for line in sys.stdin:
        child = os.fork()
        if child == 0:
            _run(Start(**json.loads(line)), nursery)
        sys.stdout.write(f"{child}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
