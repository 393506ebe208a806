"""The guide on installing, walked command by command: over rendered objects, and over pods that run as processes.

The shell of the walk runs the guide's own lines. It has `kubectl`, `helm` and `docker` of ours (`guide_commands.py`);
everything else, `parley` too, is real. A model and a MongoDB stand outside the cluster, by the names that the guide uses.
"""

import asyncio
import json
import os
import re
import socketserver
import ssl
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any, Final

import pytest

from tests.contract.replica_set import run_replica_set
from tests.contract.server_process import NoServerError
from tests.deploy.chart import ROOT
from tests.deploy.cluster import Cluster
from tests.deploy.guide_commands import PROGRAM, answer
from tests.deploy.pods import HOST, Network, NoNamespacesError, network
from tests.e2e.harness import model_server
from tests.support.certificates import Authority
from tests.support.encryption import write_key
from tests.support.guides import find_blocks
from tests.support.receipts import NEW, pem_of

PAGE: Final = "docs/guides/install.md"
MODELS: Final = "api.openai.com"
STORE: Final = "mongodb.databases.svc"
SCRIPTS: Final = [block for block in find_blocks(PAGE) if block.language == "sh"]
TRY_OUT, VECTORS, KEYS, DEBATE, HTTP = (
    next(block for block in SCRIPTS if part in block.text)
    for part in ("examples/dev", "parley-vectors", "--dry-run=client", "parley debate", "parley-http")
)
WALK_SECONDS: Final = 300
PLATFORM: Final[dict[str, Any]] = {
    "podUser": None,
    "store": {"existingSecret": "parley-store", "ca": {"existingSecret": "parley-mongodb"}},
    "receipts": {"existingSecret": "parley-receipts", "keys": ["2026-11.pem"]},
    "encryption": {"existingSecret": "parley-encryption", "keys": ["2026-11", "2026-05"]},
    "hookFiles": {"emptyDirSize": "64Mi"},
    "listen": "::",
}
"""What a platform team has besides: OpenShift, a MongoDB with an authority of its own, keys, and files of hooks."""
STORING: Final = ("orchestrator", "gateway", "ratings", "memory")


class Desk:
    """The machine of whoever installs: a folder, programs, and a network of its own if there is one."""

    def __init__(self, folder: Path, cluster: Cluster, namespace: str = "") -> None:
        self.folder = folder
        self._enter = ["ip", "netns", "exec", namespace] if namespace else []
        self._cluster = cluster
        self._programs = folder / "programs"
        self._programs.mkdir(parents=True)
        self._forwards: list[subprocess.Popen[bytes]] = []
        (folder / "charts").symlink_to(ROOT / "charts")
        for name in ("kubectl", "helm", "docker", "make"):
            program = self._programs / name
            program.write_text(PROGRAM.format(socket=str(folder / "socket"), name=name))
            program.chmod(0o755)

    def run(self, script: str) -> str:
        """Run a script that has to go well; return what it prints."""
        path = os.pathsep.join([str(self._programs), str(Path(sys.executable).parent), os.environ["PATH"]])
        # A folder of its own for what passes: no `parley up` of this machine runs at this desk.
        variables = {
            "PATH": path,
            "HOME": str(self.folder),
            "TMPDIR": str(self.folder),
            "LANG": "C.UTF-8",
        }
        done = subprocess.run(
            [*self._enter, "sh", "-euc", _fill_in(script, "store" in self._cluster.changes)],
            cwd=self.folder,
            env=variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=WALK_SECONDS,
            check=False,
        )
        assert done.returncode == 0, f"{script}\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}\n{self._logs()}"
        return done.stdout

    def forward(self, port: int, address: str, to: int) -> None:
        """Lead a port of this machine to a pod, as long as the desk is there."""
        command = [*self._enter, sys.executable, "-c", _FORWARDER, str(port), address, str(to)]
        process = subprocess.Popen(command, stdout=subprocess.PIPE)
        self._forwards.append(process)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"

    @contextmanager
    def answering(self) -> Iterator[None]:
        """Answer the programs while the block runs."""
        reply = partial(answer, self._cluster, self.folder, self.forward)

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                name, arguments, read = json.loads(self.rfile.readline())
                self.wfile.write(json.dumps(reply(name, arguments, read)).encode() + b"\n")

        with socketserver.ThreadingUnixStreamServer(str(self.folder / "socket"), Handler) as server:
            server.daemon_threads = True
            thread = threading.Thread(target=server.serve_forever, daemon=True)
            thread.start()
            try:
                yield
            finally:
                server.shutdown()
                for each in self._forwards:
                    each.kill()
                    each.wait()

    def _logs(self) -> str:
        return "\n".join(
            f"== {name}\n{pod.log.read_text()[-1500:]}" for name, pod in self._cluster.pods.items()
        )


_FORWARDER: Final = """
import asyncio, sys
async def copy(reader, writer):
    try:
        while chunk := await reader.read(65536):
            writer.write(chunk)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()
async def serve(reader, writer):
    there, back = await asyncio.open_connection(sys.argv[2], int(sys.argv[3]))
    await asyncio.gather(copy(reader, back), copy(there, writer))
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", int(sys.argv[1]))
    print("ready", flush=True)
    await server.serve_forever()
asyncio.run(main())
"""


def _fill_in(script: str, has_tls: bool) -> str:
    """Return a script with what a reader has of their own: a MongoDB with one member, and a key."""
    tls = "&tls=true&tlsCAFile=/etc/parley/store/ca.crt" if has_tls else ""
    return (
        script.replace("/?replicaSet=rs0", f"/?directConnection=true{tls}")
        .replace("sk-…", "sk-test")
        .replace("=…", "=x")
    )


@contextmanager
def _stand_outside(cluster: Cluster) -> Iterator[None]:
    """Let MongoDB and the provider of models answer by their names, as long as the block runs."""
    with ExitStack() as stack:
        models = stack.enter_context(model_server())
        store = stack.enter_context(run_replica_set(*_secure_store(cluster)))
        certificate, key = cluster.authority.sign(MODELS, hosts=[MODELS])
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(certificate, key)
        stack.enter_context(_lead(443, _port(models), context))
        stack.enter_context(_lead(27017, _port(store.url), None))
        yield


def _secure_store(cluster: Cluster) -> list[str]:
    """Return the arguments with which MongoDB speaks TLS, if the values say so; make the Secrets that they name."""
    if "store" not in cluster.changes:
        return []
    authority = Authority(cluster.folder, "mongodb-ca")
    certificate, key = authority.sign(STORE, hosts=[STORE])
    cluster.secrets["parley-mongodb"] = {"ca.crt": authority.file.read_bytes()}
    cluster.secrets["parley-receipts"] = {"2026-11.pem": pem_of(NEW).encode()}
    cluster.secrets["parley-encryption"] = {
        name: write_key(cluster.folder / name).read_bytes() for name in ("2026-11", "2026-05")
    }
    return ["--tls-cert-file", str(certificate), "--tls-key-file", str(key)]


def _port(url: str) -> int:
    found = re.search(r":(\d+)", url.partition("//")[2])
    assert found is not None
    return int(found[1])


@contextmanager
def _lead(port: int, to: int, context: ssl.SSLContext | None) -> Iterator[None]:
    """Lead a port of the network's host to one of this machine, and end TLS there if there is a context."""

    async def copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            while chunk := await reader.read(65536):
                writer.write(chunk)
                await writer.drain()
        writer.close()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, back = await asyncio.open_connection("127.0.0.1", to)
        await asyncio.gather(copy(reader, back), copy(there, writer))

    async def run() -> None:
        stopped = asyncio.Event()
        async with await asyncio.start_server(serve, HOST, port, ssl=context):
            started.set_result(partial(asyncio.get_running_loop().call_soon_threadsafe, stopped.set))
            await stopped.wait()

    started: Future[Callable[[], object]] = Future()
    thread = threading.Thread(target=lambda: asyncio.run(run()), daemon=True)
    thread.start()
    stop = started.result(30)
    try:
        yield
    finally:
        stop()
        thread.join(30)


def test_the_way_to_try_it_out_installs_what_can_be_tested(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path)
    desk = Desk(tmp_path / "desk", cluster)
    with desk.answering():
        assert "Succeeded" in desk.run(TRY_OUT.text)
    assert cluster.namespaces == {"default", "debates"}


def test_secrets_of_other_ways_are_made(tmp_path: Path) -> None:
    cluster = Cluster(tmp_path, namespaces={"debates"})
    desk = Desk(tmp_path / "desk", cluster)
    (desk.folder / "qdrant-ca.crt").write_text("an authority")
    with desk.answering():
        desk.run(VECTORS.text)
        assert desk.run(KEYS.text) == "secret/parley-keys configured\n"
    assert cluster.secrets["parley-vectors"] == {"api-key": b"x", "ca.crt": b"an authority"}


@pytest.mark.parametrize(
    "changes", [{}, pytest.param(PLATFORM, marks=pytest.mark.long, id="as a platform team has it")]
)
def test_whoever_follows_the_guide_comes_from_an_empty_cluster_to_a_debate(
    tmp_path: Path, changes: dict[str, Any]
) -> None:
    with ExitStack() as stack:
        try:
            pods: Network = stack.enter_context(network(tmp_path))
            cluster = Cluster(tmp_path, pods, changes, elsewhere=[MODELS, STORE])
            stack.enter_context(_stand_outside(cluster))
        except (NoNamespacesError, NoServerError) as error:
            pytest.skip(str(error))
        desk = Desk(tmp_path / "desk", cluster, pods.join()[0])
        stack.enter_context(desk.answering())
        printed = {block: desk.run(block.text) for block in SCRIPTS if block not in (TRY_OUT, VECTORS, KEYS)}
        (held,) = json.loads(printed[HTTP].partition("\n")[2])["debates"]
        if changes:
            _use_keys(desk, held["id"])
    assert "**Confidence:**" in printed[DEBATE]
    assert re.search(r"^parley_[\w-]+$", printed[DEBATE], re.MULTILINE), "the key of a person"
    assert held["status"] == "DEBATE_STATUS_COMPLETED"


def _use_keys(desk: Desk, debate_id: str) -> None:
    """Wrap the keys of all services anew, and get a receipt."""
    for each in STORING:
        command = f"python3 -P -m parley.storage.rewrap {each}"
        printed = desk.run(f"kubectl --namespace debates exec deployment/parley-{each} -- {command}")
        assert printed == f"{each}: 0 keys wrapped anew\n"
    caller = 'PARLEY_CA=parley-ca.crt PARLEY_TOKEN="$(cat parley-key)"'
    receipt = json.loads(desk.run(f"{caller} parley receipt {debate_id} --server localhost:7401"))
    assert len(receipt["signatures"]) == 1
