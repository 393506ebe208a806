"""Finds a MongoDB server for the contract suites, or starts one."""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from urllib.parse import urlsplit

from pymongo import MongoClient
from pymongo.errors import OperationFailure

from tests.contract.server_process import NoServerError, ServerProcess, install, version_of
from tests.support.memory_folder import memory_folder
from tests.support.memory_mongodb import run_memory_mongodb
from tests.support.ports import free_ports

SETTING = "PARLEY_TEST_MONGODB_URI"

_IMAGE = "mongo:8"
_OLDEST = (3, 13)


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


def add_options(url: str, options: str) -> str:
    """Return the URL with more options."""
    parts = urlsplit(url)
    return parts._replace(query="&".join(filter(None, (parts.query, options)))).geturl()


@contextmanager
def run_server(*, in_memory: bool = False) -> Iterator[Server]:
    """Yield the server named by PARLEY_TEST_MONGODB_URI, one in a container, or a stand-in.

    The stand-in is made of mongoeco, or is the one `in_memory`, which needs a tenth of the CPU but cannot be restarted.

    Raises:
        NoServerError: there is none of these.
    """
    with ExitStack() as stack:
        if url := os.environ.get(SETTING):
            yield Server(url, f"the server of {SETTING}")
        elif _container_engine_answers():
            yield stack.enter_context(_container())
        elif in_memory:
            yield Server(stack.enter_context(run_memory_mongodb()), "in memory")
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
    python = install("mongoeco", _find_newer_python())
    with TemporaryDirectory(dir=memory_folder()) as folder:
        port = next(free_ports())
        program = Path(__file__).with_name("mongoeco_server.py")
        process = ServerProcess(python, program, f"{folder}/mongo.db", str(port))
        if not process.start():
            raise NoServerError(
                f"{version_of('mongoeco')} did not start; remove .venv-mongoeco and try again"
            )
        try:
            yield Server(f"mongodb://127.0.0.1:{port}/", version_of("mongoeco"), process.restart)
        finally:
            process.end()


def _find_newer_python() -> Path:
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
