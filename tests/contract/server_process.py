"""What the servers of others have in common: an environment of their own, and a process that keeps its port."""

import fcntl
import hashlib
import os
import subprocess
import sys
import time
from collections.abc import Sequence
from itertools import takewhile
from pathlib import Path

_ROOT = Path(__file__).parents[2]


class NoServerError(Exception):
    """No MongoDB server can be had here, and why."""


class ServerProcess:
    """A process that writes a line when it listens, and that ends with its stdin."""

    def __init__(self, *command: str | Path) -> None:
        self._command = [str(part) for part in command]

    def start(self) -> bool:
        """Start it; return whether it listens."""
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV"))
        }
        self._process = subprocess.Popen(
            self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
        )
        assert self._process.stdout is not None
        return bool(self._process.stdout.readline())

    def restart(self, seconds: float) -> None:
        """Kill it with SIGKILL, and start it again after so many seconds."""
        self._process.kill()
        self._close()
        time.sleep(seconds)
        assert self.start(), f"{self._command} did not start again"

    def end(self) -> None:
        """Let it end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._close()

    def _close(self) -> None:
        with self._process:  # its pipes, and itself
            pass


def version_of(name: str) -> str:
    """Return the package with its version, as its lock has it."""
    lines = _lock(name).read_text().splitlines()
    return next(line for line in lines if line.startswith(f"{name}==")).split()[0]


def install(name: str, python: Path) -> Path:
    """Install a package once for each version of its lock in an environment of its own; return its interpreter.

    Raises:
        NoServerError: it cannot be installed here.
    """
    environment = _ROOT / f".venv-{name}"
    wanted = hashlib.sha256(_lock(name).read_bytes()).hexdigest()
    done = environment / "installed"
    interpreter = environment / "bin" / "python"
    environment.mkdir(exist_ok=True)
    with (environment / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # parallel test processes share the environment
        if not done.exists() or done.read_text() != wanted:
            _run(name, [str(python), "-m", "venv", "--without-pip", str(environment)])
            _run(name, *_list_installs(interpreter, _lock(name)))
            done.write_text(wanted)
    return interpreter


def _lock(name: str) -> Path:
    return _ROOT / "requirements" / f"{name}.txt"


def _list_installs(python: Path, lock: Path) -> list[list[str]]:
    """Return what installs a lock: uv, in a fifth of pip's time; and pip, whose configuration may name the only index that answers."""
    into = ["--python", str(python)]
    uv = [str(Path(sys.executable).with_name("uv")), "pip", "install", *into, "--no-config", "--system-certs"]
    pip = [sys.executable, "-m", "pip", *into, "install", "--no-compile"]
    return [[*each, "--quiet", "--require-hashes", "-r", str(lock)] for each in (uv, pip)]


def _run(name: str, *commands: Sequence[str]) -> None:
    """Run the first of the commands that does not fail."""
    # Tests are shown no authority that this machine trusts: without one, uv asks nobody.
    environment = {name: value for name, value in os.environ.items() if name != "SSL_CERT_DIR"}
    results = (
        subprocess.run(each, capture_output=True, text=True, check=False, env=environment)
        for each in commands
    )
    failed = list(takewhile(lambda each: each.returncode, results))
    if len(failed) == len(commands):
        last = (failed[-1].stderr.strip().splitlines() or ["no message"])[-1]
        raise NoServerError(f"{name} could not be installed: {last}")
