"""Finds a MongoDB server for the contract suites, or starts one."""

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from pymongo import MongoClient
from pymongo.errors import OperationFailure

from tests.support.memory_folder import memory_folder
from tests.support.ports import free_ports

SETTING = "PARLEY_TEST_MONGODB_URI"

_ROOT = Path(__file__).parents[2]
_LOCK = _ROOT / "requirements" / "mongoeco.txt"
_ENVIRONMENT = _ROOT / ".venv-mongoeco"
_IMAGE = "mongo:8"
_OLDEST = (3, 13)


class NoServerError(Exception):
    """No MongoDB server can be had here, and why."""


@dataclass(frozen=True, slots=True)
class Server:
    """A server that answers. `restart` kills it and starts it again after so many seconds; None: it is not ours."""

    url: str
    kind: str
    restart: Callable[[float], None] | None = None

    def database_url(self, prefix: str) -> str:
        """Return the URL under which a store's databases begin with the prefix."""
        parts = urlsplit(self.url)
        query = parts.query
        if parts.username and "authsource=" not in query.lower():  # the path would say it otherwise
            query = f"{query}&authSource={parts.path.strip('/') or 'admin'}".strip("&")
        return parts._replace(path=f"/{prefix}", query=query).geturl()


@contextmanager
def running_server() -> Iterator[Server]:
    """Yield the server named by PARLEY_TEST_MONGODB_URI, one in a container, or one made of mongoeco.

    Raises:
        NoServerError: there is none of these.
    """
    with ExitStack() as stack:
        if url := os.environ.get(SETTING):
            yield Server(url, f"the server of {SETTING}")
        elif _container_engine_answers():
            yield stack.enter_context(_container())
        else:
            yield stack.enter_context(_mongoeco())


def _container_engine_answers() -> bool:
    if not shutil.which("docker"):
        return False
    try:
        return subprocess.run(["docker", "info"], capture_output=True, timeout=5, check=False).returncode == 0
    except subprocess.TimeoutExpired:
        return False


@contextmanager
def _container() -> Iterator[Server]:
    from testcontainers.core.container import DockerContainer

    with (
        DockerContainer(_IMAGE)
        .with_command("--replSet rs0 --bind_ip_all")
        .with_exposed_ports(27017) as container
    ):
        address = f"{container.get_container_host_ip()}:{container.get_exposed_port(27017)}"
        url = f"mongodb://{address}/?directConnection=true"
        with MongoClient[dict[str, object]](url) as client:
            members = {"_id": "rs0", "members": [{"_id": 0, "host": "localhost:27017"}]}
            try:
                client.admin.command("replSetInitiate", members)
            except OperationFailure as error:
                raise NoServerError(f"the container's replica set did not start: {error}") from error
        yield Server(url, f"{_IMAGE} in a container")


@contextmanager
def _mongoeco() -> Iterator[Server]:
    python = _installed(_newer_python())
    version = next(line for line in _LOCK.read_text().splitlines() if line.startswith("mongoeco==")).split()[
        0
    ]
    with TemporaryDirectory(dir=memory_folder()) as folder:
        stand_in = _StandIn(python, f"{folder}/mongo.db")
        if not stand_in.start():
            raise NoServerError(f"{version} did not start; remove {_ENVIRONMENT} and try again")
        try:
            yield Server(f"mongodb://127.0.0.1:{stand_in.port}/", version, stand_in.restart)
        finally:
            stand_in.end()


class _StandIn:
    """The process that stands in for MongoDB; it keeps its port."""

    def __init__(self, python: Path, path: str) -> None:
        self.port = next(free_ports())
        program = Path(__file__).with_name("mongoeco_server.py")
        self._command = [str(python), str(program), path, str(self.port)]

    def start(self) -> bool:
        """Start it; tell whether it listens."""
        environment = {
            name: value for name, value in os.environ.items() if not name.startswith(("PYTHON", "COV"))
        }
        self._process = subprocess.Popen(
            self._command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment,
        )
        assert self._process.stdout is not None
        return bool(self._process.stdout.readline())

    def restart(self, seconds: float) -> None:
        """Kill it, and start it again after so many seconds."""
        self._process.kill()
        self._closed()
        time.sleep(seconds)
        assert self.start(), "the stand-in for MongoDB did not start again"

    def end(self) -> None:
        """Let it end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
        self._closed()

    def _closed(self) -> None:
        with self._process:  # its pipes, and itself
            pass


def _newer_python() -> Path:
    """Return a Python that mongoeco runs on, on PATH or among pyenv's versions."""
    oldest, newest = _OLDEST[1], _OLDEST[1] + 5
    names = [shutil.which(f"python3.{minor}") for minor in range(newest, oldest - 1, -1)]
    versions = Path(os.environ.get("PYENV_ROOT", "~/.pyenv")).expanduser() / "versions"
    found = [Path(name) for name in [sys.executable, *names] if name] + sorted(
        versions.glob("3.*/bin/python")
    )
    for python in found:
        if _is_new_enough(python):
            return python
    raise NoServerError(
        f"no {SETTING} is set, no container engine answers, and no Python 3.{oldest} or newer is on PATH or in pyenv"
    )


def _is_new_enough(python: Path) -> bool:
    program = f"import sys, venv; sys.exit(sys.version_info < {_OLDEST})"
    try:  # a pyenv shim on PATH may have no version behind it
        return (
            subprocess.run([python, "-c", program], capture_output=True, timeout=20, check=False).returncode
            == 0
        )
    except (OSError, subprocess.TimeoutExpired):
        return False


def _installed(python: Path) -> Path:
    """Install mongoeco once for each version of its lock file; return its interpreter."""
    wanted = hashlib.sha256(_LOCK.read_bytes()).hexdigest()
    done = _ENVIRONMENT / "installed"
    interpreter = _ENVIRONMENT / "bin" / "python"
    _ENVIRONMENT.mkdir(exist_ok=True)
    with (_ENVIRONMENT / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)  # parallel test processes share the environment
        if not done.exists() or done.read_text() != wanted:
            _run([python, "-m", "venv", _ENVIRONMENT])
            _run([interpreter, "-m", "pip", "install", "--quiet", "--require-hashes", "-r", _LOCK])
            done.write_text(wanted)
    return interpreter


def _run(command: list[str | Path]) -> None:
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        last = (result.stderr.strip().splitlines() or ["no message"])[-1]
        raise NoServerError(f"mongoeco could not be installed: {last}")
