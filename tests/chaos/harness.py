"""The whole system as real processes on loopback: started, killed, stopped, continued, cut off, and cleared away.

Whatever happens to the process that holds a `System`, nothing of it stays behind: every process asks the kernel to
die with its parent, and each is killed when the block is left. Signals go by pidfd: a process id that is used again by
somebody else is never hit.
"""

import json
import os
import signal
import socket
import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

from pymongo import MongoClient

from tests.chaos.history import Fault
from tests.chaos.nursery import ROOT, Process, end, environment, share_nursery, wait_for_end
from tests.chaos.points import CRASHED
from tests.chaos.process import Start
from tests.chaos.proxy import Proxies
from tests.contract.mongodb_server import Server, run_server
from tests.support.ports import free_ports

ORCHESTRATORS = ("orchestrator-1", "orchestrator-2", "orchestrator-3")
GATEWAYS = ("gateway-1", "gateway-2")
OTHERS = ("convergence", "ratings", "memory")
SERVICES = (*ORCHESTRATORS, *GATEWAYS, *OTHERS)

_MODEL_SERVER = "model-server"
_STARTED_WITHIN = 60.0
_TRACEBACK = "Traceback (most recent call last)"
_FORGOTTEN = {"orchestrator": ("debates", "inbox", "_log"), "gateway": ("calls", "stops")}


class EndedAtStartError(AssertionError):
    """A service ended before it listened."""


@dataclass(frozen=True, slots=True)
class Options:
    """How a system is set up. Times are in seconds; `latency` is the model's.

    A gateway that lives and is only slow must keep its calls, or they are paid twice; so its lease is the longer one.
    """

    lease: float = 0.6
    gateway_lease: float = 2.0
    poll: float = 0.15
    latency: float = 0.02
    max_debates: int = 64
    orchestrators: tuple[str, ...] = ORCHESTRATORS

    def lease_of(self, name: str) -> float:
        """Return the lease of a process."""
        return self.gateway_lease if name in GATEWAYS else self.lease


@dataclass
class System:
    """The running system.

    Attributes:
        store_url: The store, past every proxy; a service's database is PREFIX_SERVICE there.
        ledger: The model server's file.
        restart_store: Kills the store, and starts it again after so many seconds; None where it is not ours.
        faults: All that was done to it.
        known: Debates that some client was told of.
    """

    folder: Path
    options: Options
    store_url: str
    ledger: Path
    proxies: Proxies
    restart_store: Callable[[float], None] | None = None
    faults: list[Fault] = field(default_factory=list)
    known: set[str] = field(default_factory=set)
    _processes: dict[str, Process] = field(default_factory=dict)
    _fronts: dict[str, int] = field(default_factory=dict)

    @property
    def groups(self) -> tuple[tuple[str, ...], ...]:
        """All services; trouble of one group goes on beside that of the others."""
        return self.options.orchestrators, GATEWAYS, OTHERS

    def target(self, *names: str) -> str:
        """Return the gRPC target of some services, or of all orchestrators, through their proxies."""
        return "ipv4:" + ",".join(
            f"127.0.0.1:{self._fronts[name]}" for name in names or self.options.orchestrators
        )

    def pid(self, name: str) -> int:
        """Return the process id a service has or last had."""
        return self._processes[name].pid

    def alive(self, name: str) -> bool:
        """Tell whether a service's process runs, or is stopped."""
        return not wait_for_end(self._processes[name], 0)

    def kill(self, name: str) -> None:
        """Kill a service with SIGKILL, and wait until it is gone."""
        began = time.monotonic()
        end(self._processes[name])
        self.faults.append(Fault(name, "kill", began, time.monotonic()))

    def died(self, name: str, within: float = 120.0) -> None:
        """Wait until a service has killed itself at its crash point, if it has not long since."""
        assert wait_for_end(self._processes[name], within), f"{name} did not come to its crash point"
        assert CRASHED in self.tail(name, 1), f"{name} ended by itself\n{self.tail(name)}"
        wall = time.time() - time.monotonic()
        crashed = self._processes[name].output.stat().st_mtime - wall  # when it wrote its last line
        self.faults.append(Fault(name, "kill", crashed, time.monotonic()))

    def start(
        self,
        name: str,
        *,
        crash: str = "",
        fenced: bool = True,
        variables: Mapping[str, str] | None = None,
        code: Path = ROOT,
    ) -> None:
        """Start a service that does not run, and wait until it listens.

        `crash` names a crash point; without `fenced` its log has no lock; `variables` are its own;
        `code` is a folder with other code than this, which has a `tests/chaos/process.py` of its own.
        """
        process = self._processes[name]
        assert not self.alive(name), f"{name} runs"
        process.armed = bool(crash)
        more = {"PARLEY_CHAOS_CRASH": crash, "PARLEY_CHAOS_FENCE": "on" if fenced else "off"}
        self._spawn(process, {**more, **(variables or {})}, code)
        self._await(name)

    def restart(
        self, name: str, *, crash: str = "", fenced: bool = True, variables: Mapping[str, str] | None = None
    ) -> None:
        """Kill a service if it runs, and start it."""
        if self.alive(name):
            self.kill(name)
        self.start(name, crash=crash, fenced=fenced, variables=variables)

    def make_ready(self, name: str = "", *, crash: str = "") -> None:
        """Start whatever is dead; the service that is named starts anew, with a crash point if one is named."""
        for each in chain(*self.groups):
            if each == name:
                self.restart(each, crash=crash)
            elif not self.alive(each):
                self.start(each)

    def stop(self, name: str) -> None:
        """Stop a service with SIGSTOP."""
        process = self._processes[name]
        process.stopped = time.monotonic()
        signal.pidfd_send_signal(process.handle, signal.SIGSTOP)

    def go_on(self, name: str) -> None:
        """Continue a stopped service."""
        process = self._processes[name]
        signal.pidfd_send_signal(process.handle, signal.SIGCONT)
        if process.stopped is not None:
            self.faults.append(Fault(name, "stop", process.stopped, time.monotonic()))
            process.stopped = None

    def terminate(self, name: str) -> None:
        """Ask a service to drain and stop, and wait until it has; one that takes too long is killed."""
        process = self._processes[name]
        began = time.monotonic()
        signal.pidfd_send_signal(process.handle, signal.SIGTERM)
        wait_for_end(process, 10)
        end(process)
        self.faults.append(Fault(name, "drain", began, time.monotonic()))

    def cut(self, name: str, seconds: float = 0.0) -> None:
        """Cut the connections to a service, or with `NAME>store` those it has to the store; for so many seconds."""
        began = time.monotonic()
        self.proxies.cut(name, refuse=seconds > 0)
        if seconds > 0:
            time.sleep(seconds)
            self.proxies.mend(name)
        self.faults.append(Fault(name, "cut", began, time.monotonic()))

    def forget(self) -> None:
        """Remove all debates and calls from the store: the stand-in for MongoDB slows down with every document."""
        with MongoClient[dict[str, object]](self.store_url) as client:
            prefix = urlsplit(self.store_url).path.strip("/")
            for service, collections in _FORGOTTEN.items():
                for collection in collections:
                    client[f"{prefix}_{service}"][collection].delete_many({})

    def store_links(self) -> list[str]:
        """Return the names of the proxies before the store."""
        return [f"{name}>store" for name in self._processes if name not in (_MODEL_SERVER, "convergence")]

    def tracebacks(self) -> list[str]:
        """Return the services that wrote a traceback, each with what it wrote from there on."""
        found = []
        for name, process in self._processes.items():
            _, traceback, text = process.output.read_text(errors="replace").partition(_TRACEBACK)
            if traceback:
                found.append(f"{name}: {text[:4000]}")
        return found

    def tail(self, name: str, lines: int = 15) -> str:
        """Return the last lines a service wrote."""
        return "\n".join(self._processes[name].output.read_text(errors="replace").splitlines()[-lines:])

    @contextmanager
    def rules(self, *rules: Mapping[str, object]) -> Iterator[None]:
        """Let the model server follow these rules while the block runs (see `tests.support.model_server.rules`)."""
        url, headers = f"{self.model_server_url()}/control", {"Content-Type": "application/json"}
        urlopen(Request(url, json.dumps({"rules": rules}).encode(), headers), timeout=10).close()
        try:
            yield
        finally:
            urlopen(Request(url, b'{"rules": []}', headers), timeout=10).close()

    def model_server_url(self) -> str:
        """Return the model server's address, without a path."""
        return f"http://127.0.0.1:{self._processes[_MODEL_SERVER].port}"

    def build(self) -> None:
        """Start everything."""
        ports = free_ports()
        store = urlsplit(self.store_url)
        real = {name: next(ports) for name in chain(*self.groups)}
        for name, port in real.items():
            self._fronts[name] = next(ports)
            self.proxies.add(name, self._fronts[name], ("127.0.0.1", port))
        common = {
            "PARLEY_CONVERGENCE": self.target("convergence"),
            "PARLEY_RATINGS": self.target("ratings"),
            "PARLEY_MEMORY": self.target("memory"),
            "PARLEY_GATEWAY": self.target(*GATEWAYS),
            "PARLEY_GRACE_SECONDS": "5",
            "PARLEY_LOG_LEVEL": "warning",
        }
        self._add_model_server(next(ports))
        for name, port in real.items():
            service = name.partition("-")[0]
            variables = {**common, "PARLEY_PORT": str(port)}
            if service != "convergence":
                at = next(ports)
                address = (store.hostname or "", store.port or 27017)
                self.proxies.add(f"{name}>store", at, address, lingers=True)
                variables["PARLEY_STORE"] = _route_through(self.store_url, at)
            variables |= self._own(service)
            self._add(name, f"parley.{service}", port, variables)
        self._start_all()

    def clear_away(self) -> None:
        """End every process, stopped ones too."""
        for process in self._processes.values():
            end(process)

    def _add_model_server(self, port: int) -> None:
        latency = str(self.options.latency * 1000)
        arguments = ("--port", str(port), "--ledger", str(self.ledger), "--latency-ms", latency)
        self._add(_MODEL_SERVER, "tests.support.model_server", port, {}, arguments)

    def _start_all(self) -> None:
        for process in self._processes.values():
            self._spawn(process, {})
        for name in self._processes:
            self._await(name)

    def _use_models(self) -> dict[str, str]:
        """Return the variables of whoever asks models."""
        return {
            "OPENAI_API_KEY": "chaos",
            "OPENAI_BASE_URL": f"{self.model_server_url()}/v1",
            "PARLEY_MODEL": "chaos-model",
            "PARLEY_LOCAL_MODEL": "off",
        }

    def _use_vectors(self) -> dict[str, str]:
        """Return the variables of whoever embeds texts: the model server's vectors mean little, and need no model loaded at every start."""
        return {
            "PARLEY_EMBEDDING_FINE": "endpoint",
            "PARLEY_EMBEDDING_FAST": "endpoint",
            "PARLEY_EMBEDDING_BASE_URL": f"{self.model_server_url()}/v1",
        }

    def _own(self, service: str) -> dict[str, str]:
        options = self.options
        match service:
            case "orchestrator":
                return {
                    "PARLEY_LEASE_SECONDS": str(options.lease),
                    "PARLEY_POLL_SECONDS": str(options.poll),
                    "PARLEY_MAX_DEBATES": str(options.max_debates),
                    "PARLEY_TENANT_REQUESTS": "0",  # one tenant asks for all that is asked
                }
            case "gateway":
                return {"PARLEY_LEASE_SECONDS": str(options.gateway_lease), **self._use_models()}
            case "convergence":
                return self._use_vectors()
            case "memory":
                return {"PARLEY_VECTORS": f"edge:{self.folder / 'vectors'}"}
            case _:
                return {}

    def _add(
        self, name: str, module: str, port: int, variables: Mapping[str, str], arguments: tuple[str, ...] = ()
    ) -> None:
        self._processes[name] = Process(module, arguments, variables, port, self.folder / f"{name}.log")

    def _spawn(self, process: Process, more: Mapping[str, str], code: Path = ROOT) -> None:
        variables = {**environment(), **process.variables, **more}
        process.pid = share_nursery(code).fork(
            Start(process.module, process.arguments, variables, str(process.output))
        )
        process.handle = os.pidfd_open(process.pid)

    def _await(self, name: str) -> None:
        process = self._processes[name]
        ends = time.monotonic() + _STARTED_WITHIN
        while time.monotonic() < ends:
            if not self.alive(name):
                if process.armed:
                    return  # its crash point came before it listened
                raise EndedAtStartError(f"{name} ended at its start\n{self.tail(name)}")
            with suppress(OSError), socket.create_connection(("127.0.0.1", process.port), 1):
                return
            time.sleep(0.02)
        raise AssertionError(f"{name} did not listen within {_STARTED_WITHIN:g} s\n{self.tail(name)}")


@contextmanager
def run_system(
    folder: Path, options: Options | None = None, *, store: Server | None = None
) -> Iterator[System]:
    """Run a system on a store of its own for as long as the block lasts, on the server `store` if it is given.

    Raises:
        NoServerError: there is no MongoDB server here.
    """
    with ExitStack() as stack:
        server = store or stack.enter_context(run_server())
        proxies = stack.enter_context(Proxies())
        prefix = f"parley_chaos_{uuid.uuid4().hex[:12]}"
        url = server.database_url(prefix)
        ledger = folder / "ledger.jsonl"
        system = System(folder, options or Options(), url, ledger, proxies, server.restart)
        try:
            system.build()
            yield system
        finally:
            system.clear_away()
            with MongoClient[dict[str, object]](url) as client:
                for service in ("orchestrator", "gateway", "ratings", "memory"):
                    client.drop_database(f"{prefix}_{service}")


def _route_through(url: str, port: int) -> str:
    """Return the store's URL by way of a proxy."""
    parts = urlsplit(url)
    credentials, at, _ = parts.netloc.rpartition("@")
    # With the driver's default of 2, its pool may stall for tens of seconds after a cut (README, "Bugs found").
    query = f"{parts.query}&directConnection=true&maxConnecting=32".strip("&")
    return parts._replace(netloc=f"{credentials}{at}127.0.0.1:{port}", query=query).geturl()
