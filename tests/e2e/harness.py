"""All five services as processes that find each other over loopback, each startable and killable alone."""

import os
import signal
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus
from pathlib import Path
from urllib.request import urlopen

import grpc
from grpc_health.v1 import health_pb2, health_pb2_grpc

from tests.support.ports import free_ports
from tests.support.warm_process import Job
from tests.support.warm_start import MODEL_SERVER, WarmStart

ROOT = Path(__file__).parent.parent.parent
SERVICES = ("convergence", "ratings", "memory", "gateway", "orchestrator")
EDGE = "edge"
"""Started by those tests alone that need it; the orchestrator's address is given to it."""
_START_SECONDS = 300.0
_STOP_SECONDS = 120.0


@contextmanager
def model_server(*arguments: str) -> Iterator[str]:
    """A model server as a process; gives its base URL."""
    ours, theirs = os.pipe()
    job = Job(MODEL_SERVER, [*arguments], dict(os.environ), str(ROOT))
    with open(ours) as said, open(os.devnull) as nothing:  # noqa: PTH123 (a descriptor)
        try:
            process = WarmStart(job, [nothing.fileno(), theirs, 2])
        finally:
            os.close(theirs)
        try:
            yield said.readline().strip()
        finally:
            process.send_signal(signal.SIGTERM)
            process.wait(_STOP_SECONDS)


@dataclass
class System:
    """The five services: addresses by name, and the processes that run now."""

    folder: Path
    variables: Mapping[str, str]
    addresses: Mapping[str, str]
    _running: dict[str, WarmStart] = field(default_factory=dict)

    def start(
        self, name: str, command: Sequence[str] = (), variables: Mapping[str, str] | None = None
    ) -> None:
        """Start a service, by its own module unless a command says otherwise; `variables` are its alone."""
        kept = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("PARLEY_", "OPENAI_", "OPENROUTER_", "OTEL_"))
        }
        own = {"PARLEY_PORT": self.addresses[name].rpartition(":")[2]}
        others = {
            f"PARLEY_{each.upper()}": self.addresses[each]
            for each in SERVICES
            if each != "orchestrator" or name == EDGE
        }
        module, *arguments = command or (f"parley.{name}",)
        given = {**kept, **others, **self.variables, **own, **(variables or {})}
        with (self.folder / f"{name}.log").open("ab") as log, open(os.devnull) as nothing:  # noqa: PTH123
            job = Job(module, arguments, given, str(self.folder))
            self._running[name] = WarmStart(job, [nothing.fileno(), log.fileno(), log.fileno()])

    def pid(self, name: str) -> int:
        """Return the id of the process of a service that runs."""
        return self._running[name].pid

    def wait(self, *names: str) -> None:
        """Wait until services say that they serve."""
        ends = time.monotonic() + _START_SECONDS
        for name in names:
            while not _serves(self.addresses[name], self.variables.get("PARLEY_CA")):
                code = self._running[name].poll()
                assert code is None, f"{name} ended with {code}: {self.log(name)}"
                assert time.monotonic() < ends, f"{name} does not serve: {self.log(name)}"
                time.sleep(0.1)

    def wait_for_edge(self) -> None:
        """Wait until the edge says that the orchestrator serves."""
        ends = time.monotonic() + _START_SECONDS
        while not _is_ready(f"http://{self.addresses[EDGE]}/readyz"):
            assert time.monotonic() < ends, f"the edge is not ready: {self.log(EDGE)}"
            time.sleep(0.1)

    def stop(self, name: str, number: signal.Signals = signal.SIGTERM) -> int:
        """Stop a service and return its exit code."""
        process = self._running.pop(name)
        process.send_signal(number)
        try:
            return process.wait(_STOP_SECONDS)
        finally:
            process.kill()
            process.wait()

    def stop_all(self) -> None:
        """Stop what runs, callers before those they call."""
        for name in (EDGE, *reversed(SERVICES)):
            if name in self._running:
                self.stop(name)

    def log(self, name: str) -> str:
        """What a service said at its end."""
        return (self.folder / f"{name}.log").read_text(errors="replace")[-3000:]


@contextmanager
def system(folder: Path, models: str, variables: Mapping[str, str] | None = None) -> Iterator[System]:
    """The five, not started yet; what runs at the end of the block is stopped."""
    given = {
        "PARLEY_STORE": f"sqlite:///{folder / 'data'}",
        "PARLEY_VECTORS": f"edge:{folder / 'data' / 'vectors'}",
        "PARLEY_GRACE_SECONDS": "2",
        "OPENAI_BASE_URL": models,
        "PARLEY_MODEL": "test-model",
        **(variables or {}),
    }
    addresses = {
        name: f"127.0.0.1:{port}" for name, port in zip((*SERVICES, EDGE), free_ports(), strict=False)
    }
    running = System(folder, given, addresses)
    try:
        yield running
    finally:
        running.stop_all()


def _is_ready(url: str) -> bool:
    try:
        with urlopen(url, timeout=5) as answer:
            return bool(answer.status == HTTPStatus.OK)
    except OSError:
        return False


def _serves(address: str, ca: str | None) -> bool:
    # A new channel each time: an old one would wait longer and longer before it connects again.
    credentials = grpc.ssl_channel_credentials(Path(ca).read_bytes()) if ca else None
    opened = grpc.secure_channel(address, credentials) if credentials else grpc.insecure_channel(address)
    with opened as channel:
        health = health_pb2_grpc.HealthStub(channel)
        try:
            answer = health.Check(health_pb2.HealthCheckRequest(), timeout=2.0)  # type: ignore[attr-defined]
        except grpc.RpcError:
            return False
    return bool(answer.status == health_pb2.HealthCheckResponse.SERVING)
