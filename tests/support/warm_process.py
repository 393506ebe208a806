"""A process that has imported programs and forks itself to run one: `python -m tests.support.warm_process SOCKET PATH MODULE...`.

It listens on the socket, which is bound to the path. Each job comes over a connection: as a line of JSON the module, its arguments,
variables and folder, and with it the standard streams and a pipe for the process id and the exit code. What a connection started ends with
it, and this process with the last one that is no relay's. No event loop and no gRPC object is made here, so that each fork begins as a start
would.
"""

import atexit
import fcntl
import gc
import importlib
import json
import os
import pkgutil
import runpy
import selectors
import signal
import socket
import sys
import termios
import threading
import traceback
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Final, NoReturn

IMPORTED_ON_USE: Final = (
    "parley.config",
    "parley.convergence",
    "parley.edge",
    "parley.gateway",
    "parley.orchestrator",
    "parley.receipts",
    "parley.runtime",
    "parley.storage.mongodb",
    "parley.storage.qdrant.edge",
    "parley.storage.sqlite",
    *(f"opentelemetry.exporter.otlp.proto.grpc.{each}_exporter" for each in ("trace", "metric", "_log")),
    "anyio._backends._asyncio",
    "cloudevents.core.formats.json",
    "cloudevents.core.v1.event",
    "encodings.ascii",
    "encodings.idna",
    "encodings.utf_8_sig",
    "_strptime",
    "httpcore2._async.http2",
    "httpcore2._backends.anyio",
    "openai.resources.embeddings",
    "tenacity.asyncio.retry",
    "truststore._api",
    "uvicorn.protocols.http.h11_impl",
    "zstandard",
)
"""What services import when it is first used, a third of their start: each fork of a process that has imported it finds it there."""

_STREAMS: Final = 3
_PIECE: Final = 1 << 16
_OWN_SOCKETS: Final = 2
"""What is looked at besides connections."""
_DESCRIPTORS: Final = 4096
"""More than are ever open here."""


def _read_umask() -> int:
    umask = os.umask(0o077)
    os.umask(umask)
    return umask


@dataclass(frozen=True, slots=True)
class Job:
    """How a program is to run.

    Attributes:
        on_terminal: Whether it leads a session whose terminal is its stdin.
        without_stdin: Whether its stdin is closed.
        umask: The one of whoever makes the job.
        is_relayed: Whether a relay asks for it, which no process of tests waits for.
    """

    module: str
    arguments: list[str]
    variables: dict[str, str]
    folder: str
    on_terminal: bool = False
    without_stdin: bool = False
    umask: int = field(default_factory=_read_umask)
    is_relayed: bool = False

    def to_line(self) -> bytes:
        """Return the line that says so."""
        return json.dumps(asdict(self)).encode() + b"\n"


@contextmanager
def hold_turn(folder: Path) -> Iterator[None]:
    """Be the only process that starts or ends one of the processes that listen in a folder."""
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


@dataclass(slots=True)
class _Running:
    """Programs that run: each by its process id with the pipe that its code is written to, and the connection that started it; and relays."""

    pipes: dict[int, int] = field(default_factory=dict)
    starters: dict[int, socket.socket] = field(default_factory=dict)
    relays: set[socket.socket] = field(default_factory=set)

    def reap(self) -> None:
        """Write the codes of those that have ended."""
        with suppress(ChildProcessError):
            while True:
                pid, status = os.waitpid(-1, os.WNOHANG)
                if pid == 0:
                    return
                self.starters.pop(pid)
                pipe = self.pipes.pop(pid)
                _write(pipe, os.waitstatus_to_exitcode(status))
                os.close(pipe)

    def kill(self, starter: socket.socket | None = None) -> None:
        """Kill what a connection started and still runs, or all."""
        for pid in [each for each, its in self.starters.items() if starter in {its, None}]:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def main() -> None:
    """Import modules and all below them, then run jobs until nobody is connected."""
    listener, path = socket.socket(fileno=int(sys.argv[1])), Path(sys.argv[2])
    listener.setblocking(False)
    gc.disable()
    for name in sys.argv[3:]:
        import_whole(name)
    gc.freeze()  # a fork that looked through what is imported would copy its pages
    woken, wake = socket.socketpair()
    for each in (woken, wake):
        each.setblocking(False)
    signal.set_wakeup_fd(wake.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running = _Running()
    with selectors.DefaultSelector() as selector:
        selector.register(listener, selectors.EVENT_READ)
        selector.register(woken, selectors.EVENT_READ)
        has_ended = False
        while not has_ended:
            ready = [key.fileobj for key, _ in selector.select()]
            if woken in ready:
                woken.recv(_PIECE)
                running.reap()
            if listener in ready:
                _accept(listener, selector)
            for jobs in ready:
                if not isinstance(jobs, socket.socket) or jobs in {listener, woken} or _serve(jobs, running):
                    continue
                running.kill(jobs)
                running.relays.discard(jobs)
                selector.unregister(jobs)
                jobs.close()
                connected = len(selector.get_map()) - _OWN_SOCKETS
                has_ended = connected == len(running.relays) and _end(listener, path, selector)
    running.kill()


def _accept(listener: socket.socket, selector: selectors.BaseSelector) -> bool:
    """Return whether somebody has connected."""
    try:
        connection, _ = listener.accept()
    except BlockingIOError:
        return False
    connection.setblocking(True)
    selector.register(connection, selectors.EVENT_READ)
    return True


def _end(listener: socket.socket, path: Path, selector: selectors.BaseSelector) -> bool:
    """Stop to listen unless somebody has connected meanwhile; return whether it did."""
    with hold_turn(path.parent):
        if _accept(listener, selector):
            return False
        path.unlink(missing_ok=True)
        listener.close()
    return True


def _serve(jobs: socket.socket, running: _Running) -> bool:
    """Start the next job of a connection; return False if it is closed."""
    try:
        line, streams, *_ = socket.recv_fds(jobs, _PIECE, _STREAMS + 1)
        if not line:
            return False
        while not line.endswith(b"\n"):
            line += jobs.recv(_PIECE)
    except ConnectionError:
        return False
    job = Job(**json.loads(line))
    if job.is_relayed:
        running.relays.add(jobs)
    _start(job, streams, jobs, running)
    return True


def import_whole(name: str) -> None:
    """Import a module and all below it, but programs."""
    module = importlib.import_module(name)
    for each in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{name}."):
        if not each.name.endswith(".__main__"):
            importlib.import_module(each.name)


def _start(job: Job, streams: list[int], starter: socket.socket, running: _Running) -> None:
    *standard, status = streams
    pid = os.fork()
    if pid == 0:
        _run(job, standard)
    for each in standard:
        os.close(each)
    running.pipes[pid], running.starters[pid] = status, starter
    _write(status, pid)


def _write(pipe: int, number: int) -> None:
    with suppress(BrokenPipeError):
        os.write(pipe, f"{number}\n".encode())


def _run(job: Job, standard: list[int]) -> NoReturn:
    """Become the program, as `python -m` would start it."""
    code: object = 0
    try:
        _set_up(job, standard)
        if not hasattr(sys.modules.get(job.module), "__path__"):
            sys.modules.pop(job.module, None)  # Python warns of a program that is imported before it runs
        runpy.run_module(job.module, run_name="__main__", alter_sys=True)
    except SystemExit as ended:
        code = ended.code
        if isinstance(code, str):
            sys.stderr.write(f"{code}\n")
    except BaseException:  # noqa: BLE001 (Python would say it, too)
        traceback.print_exc()
        code = 1
    threading._shutdown()  # type: ignore[attr-defined]
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        with suppress(OSError, ValueError):
            stream.flush()
    os._exit(code if isinstance(code, int) else int(code is not None))


def _set_up(job: Job, standard: list[int]) -> None:
    gc.enable()
    signal.set_wakeup_fd(-1)
    signal.signal(signal.SIGCHLD, signal.SIG_DFL)
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, stream in enumerate(standard):
        os.dup2(stream, number)
    os.closerange(_STREAMS, _DESCRIPTORS)
    if job.without_stdin:
        os.close(0)
    if job.on_terminal:
        os.setsid()
        fcntl.ioctl(0, termios.TIOCSCTTY, 0)
    os.chdir(job.folder)
    os.umask(job.umask)
    os.environ.clear()
    os.environ.update(job.variables)
    sys.stdin = None if job.without_stdin else open(0, closefd=False)  # noqa: SIM115
    sys.stdout = open(1, "w", closefd=False)  # noqa: SIM115
    sys.stderr = open(2, "w", buffering=1, errors="backslashreplace", closefd=False)  # noqa: SIM115
    sys.argv = [job.module, *job.arguments]
    sys.modules.pop(f"{job.module}.__main__", None)  # it is run anew, as the main module


if __name__ == "__main__":
    main()
