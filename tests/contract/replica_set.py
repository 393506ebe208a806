"""A MongoDB replica set that others wrote: SecantusDB, with WiredTiger, change streams, transactions and SCRAM.

It has one member, which steps down for so many seconds if asked. It is GPL-2: it runs as a process of its own, and
nothing of it is imported or shipped.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from pymongo import MongoClient

from tests.contract.mongodb_server import Server
from tests.contract.server_process import NoServerError, ServerProcess, install, version_of
from tests.support.memory_folder import memory_folder
from tests.support.ports import free_ports

_NAME: Final = "secantusdb"


@contextmanager
def run_replica_set(*arguments: str, folder: Path | None = None) -> Iterator[Server]:
    """Run a replica set of one in the folder, with more arguments for its command, while the block lasts.

    Raises:
        NoServerError: it cannot be installed here, or does not start.
    """
    python = install(_NAME, Path(sys.executable))
    with TemporaryDirectory(dir=memory_folder()) as own:
        port = next(free_ports())
        program = Path(__file__).with_name("secantus_server.py")
        # `--sync-on-commit`: a write with `j: true` outlasts a kill, as MongoDB promises.
        durable = ["--storage-path", str(folder or own), "--sync-on-commit"]
        options = ["--cache-size", "64M", "--log-level", "ERROR", "--enable-test-commands"]
        process = ServerProcess(python, program, str(port), *durable, *options, *arguments)
        if not process.start():
            raise NoServerError(f"{version_of(_NAME)} did not start")
        try:
            yield Server(
                f"mongodb://127.0.0.1:{port}/?replicaSet=secantus", version_of(_NAME), process.restart
            )
        finally:
            process.end()


def step_down(url: str, seconds: int) -> None:
    """Let the primary be a secondary for so many seconds."""
    with MongoClient[dict[str, object]](url) as client:
        client.admin.command("replSetStepDown", seconds, force=True)
