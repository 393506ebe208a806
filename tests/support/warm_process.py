"""A process that has imported programs and forks itself to run one: `python -m tests.support.warm_process SOCKET MODULE...`.

Each job comes over the socket: as a line of JSON the module, its arguments, variables and folder, and with it the standard streams and a
pipe for the process id and the exit code. No event loop and no gRPC object is made here, so that each fork begins as a start would.
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
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from typing import Final, NoReturn

__all__ = ["Job"]

_STREAMS: Final = 3
_PIECE: Final = 1 << 16
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
    """

    module: str
    arguments: list[str]
    variables: dict[str, str]
    folder: str
    on_terminal: bool = False
    without_stdin: bool = False
    umask: int = field(default_factory=_read_umask)

    def to_line(self) -> bytes:
        """Return the line that says so."""
        return json.dumps(asdict(self)).encode() + b"\n"


def main() -> None:
    """Import modules and all below them, then run jobs until the socket is closed; kill what still runs then."""
    jobs = socket.socket(fileno=int(sys.argv[1]))
    gc.disable()
    for name in sys.argv[2:]:
        _import(name)
    gc.freeze()  # a fork that looked through what is imported would copy its pages
    woken, wake = socket.socketpair()
    for each in (woken, wake):
        each.setblocking(False)
    signal.set_wakeup_fd(wake.fileno())
    signal.signal(signal.SIGCHLD, lambda *_: None)
    running: dict[int, int] = {}
    with selectors.DefaultSelector() as selector:
        selector.register(jobs, selectors.EVENT_READ)
        selector.register(woken, selectors.EVENT_READ)
        while True:
            ready = {key.fileobj for key, _ in selector.select()}
            if woken in ready:
                woken.recv(_PIECE)
                _reap(running)
            if jobs in ready:
                line, streams, *_ = socket.recv_fds(jobs, _PIECE, _STREAMS + 1)
                if not line:
                    break
                while not line.endswith(b"\n"):
                    line += jobs.recv(_PIECE)
                _start(Job(**json.loads(line)), streams, running)
    for pid in running:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def _import(name: str) -> None:
    module = importlib.import_module(name)
    for each in pkgutil.walk_packages(getattr(module, "__path__", ()), f"{name}."):
        if not each.name.endswith(".__main__"):
            importlib.import_module(each.name)


def _start(job: Job, streams: list[int], running: dict[int, int]) -> None:
    *standard, status = streams
    pid = os.fork()
    if pid == 0:
        _run(job, standard)
    for each in standard:
        os.close(each)
    running[pid] = status
    _write(status, pid)


def _reap(running: dict[int, int]) -> None:
    with suppress(ChildProcessError):
        while True:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                return
            pipe = running.pop(pid)
            _write(pipe, os.waitstatus_to_exitcode(status))
            os.close(pipe)


def _write(pipe: int, number: int) -> None:
    with suppress(BrokenPipeError):
        os.write(pipe, f"{number}\n".encode())


def _run(job: Job, standard: list[int]) -> NoReturn:
    """Become the program, as `python -m` would start it."""
    code: object = 0
    try:
        _set_up(job, standard)
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
