"""Pods of rendered objects as processes: a network, a root, a user and variables of their own, as Kubernetes would give them.

Needs root, `ip`, `unshare` and `nsenter`: whoever cannot make namespaces gets NoNamespacesError.
"""

import os
import shutil
import signal
import subprocess
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Final

import certifi

from tests.deploy.chart import ROOT

_PREFIX: Final = f"10.77.{os.getpid() % 256}"
"""A run beside this one, or one that was killed, seldom has the same network."""
HOST: Final = f"{_PREFIX}.1"
"""Where pods reach the test."""
_VENV: Final = Path(sys.prefix)
_BINDS: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib64", sys.base_prefix, str(_VENV), str(ROOT))
_STOP_SECONDS: Final = 60


class NoNamespacesError(Exception):
    """This machine makes no namespaces, so that nothing can run as a pod."""


@dataclass(frozen=True)
class PodSpec:
    """What a pod is.

    Attributes:
        variables: All that its container is given.
        mounts: What is mounted: by the path in the pod, a folder or file of this machine, or None for an empty folder.
        user: Its user and group.
    """

    name: str
    user: int
    variables: Mapping[str, str]
    mounts: Mapping[str, Path | None]


@dataclass
class Pod:
    """A pod that runs."""

    spec: PodSpec
    address: str
    process: subprocess.Popen[bytes]
    log: Path

    def execute(self, command: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
        """Run a command in the pod, as its user and with its variables, as `kubectl exec` does."""
        user = str(self.spec.user)
        enter = ["nsenter", "--target", str(self.process.pid), "--mount", "--net", "--root"]
        inside = [
            *enter,
            "setpriv",
            "--reuid",
            user,
            "--regid",
            user,
            "--clear-groups",
            "--no-new-privs",
            *command,
        ]
        return subprocess.run(
            inside, env={**_image_variables(), **self.spec.variables}, capture_output=True, check=False
        )


@dataclass
class Network:
    """A bridge, and the pods and desks on it, each in a namespace of its own."""

    folder: Path
    hosts: dict[str, str] = field(default_factory=dict)
    _bridge: str = field(default_factory=lambda: f"parley{os.getpid() % 100000}")
    _numbers: Iterator[int] = field(default_factory=lambda: count(2))
    _namespaces: list[str] = field(default_factory=list)
    _pods: list[Pod] = field(default_factory=list)

    def open(self) -> None:
        """Make the bridge, whose own address is HOST."""
        _ip("link", "add", self._bridge, "type", "bridge")
        _ip("address", "add", f"{HOST}/24", "dev", self._bridge)
        _ip("link", "set", self._bridge, "up")

    def close(self) -> None:
        """Stop the pods and take everything away."""
        for pod in reversed(self._pods):
            pod.process.send_signal(signal.SIGTERM)
        for pod in self._pods:
            with suppress(subprocess.TimeoutExpired):
                pod.process.wait(_STOP_SECONDS)
            pod.process.kill()
            pod.process.wait()
        for each in self._namespaces:
            _ip("netns", "delete", each)
        _ip("link", "delete", self._bridge)

    def join(self) -> tuple[str, str]:
        """Make a namespace on the bridge; return its name and address."""
        number = next(self._numbers)
        name, address, outer = (
            f"{self._bridge}-{number}",
            f"{_PREFIX}.{number}",
            f"v{os.getpid() % 100000}-{number}",
        )
        _ip("netns", "add", name)
        self._namespaces.append(name)
        _ip("link", "add", outer, "type", "veth", "peer", "name", "eth0", "netns", name)
        _ip("link", "set", outer, "master", self._bridge, "up")
        for command in (
            ["address", "add", f"{address}/24", "dev", "eth0"],
            ["link", "set", "eth0", "up"],
            ["link", "set", "lo", "up"],
        ):
            _ip("-n", name, *command)
        return name, address

    def start(self, spec: PodSpec, namespace: str, address: str, module: str, trusted: Path) -> Pod:
        """Start a pod's program, a module of Parley, which trusts the authority of `trusted` too."""
        own = self.folder / spec.name
        (own / "root").mkdir(parents=True)
        shutil.copy(self._write_hosts(own), own / "hosts")
        authorities = own / "authorities.pem"
        authorities.write_bytes(Path(certifi.where()).read_bytes() + trusted.read_bytes())
        system = sysconfig.get_config_var("OPENSSL_CAFILE") or "/etc/ssl/certs/ca-certificates.crt"
        mounts = {
            **spec.mounts,
            "/etc/hosts": own / "hosts",
            **{path: authorities for path in (certifi.where(), str(system)) if Path(path).exists()},
        }
        (own / "mounts").write_text(
            "".join(f"{source or '-'} {target}\n" for target, source in mounts.items())
        )
        command = [
            "ip",
            "netns",
            "exec",
            namespace,
            "unshare",
            "--mount",
            "sh",
            str(Path(__file__).with_name("pod.sh")),
        ]
        arguments = [
            str(own / "root"),
            str(spec.user),
            str(own / "mounts"),
            " ".join(dict.fromkeys(_BINDS)),
            "--",
        ]
        log = own / "log"
        with log.open("wb") as written:
            process = subprocess.Popen(
                [*command, *arguments, "python3", "-P", "-m", module],
                env={**_image_variables(), **spec.variables},
                stdin=subprocess.DEVNULL,
                stdout=written,
                stderr=written,
            )
        pod = Pod(spec, address, process, log)
        self._pods.append(pod)
        return pod

    def _write_hosts(self, folder: Path) -> Path:
        file = folder / "hosts.all"
        file.write_text(
            "127.0.0.1 localhost\n" + "".join(f"{ip} {name}\n" for name, ip in self.hosts.items())
        )
        return file


def _image_variables() -> dict[str, str]:
    """Return what docker/Dockerfile sets, with the paths of this checkout."""
    path = os.pathsep.join([str(_VENV / "bin"), "/usr/sbin", "/usr/bin", "/sbin", "/bin"])
    return {
        "PATH": path,
        "HOME": "/tmp",
        "PYTHONPATH": str(ROOT / "services"),
        "PYTHONSAFEPATH": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
        "PYTHONUNBUFFERED": "1",
        "GRPC_VERBOSITY": "NONE",
    }


@contextmanager
def network(folder: Path) -> Iterator[Network]:
    """Run a network while the block lasts.

    Raises:
        NoNamespacesError: this machine makes none.
    """
    if os.geteuid() or not all(map(shutil.which, ("ip", "unshare", "nsenter", "setpriv"))):
        raise NoNamespacesError("needs root, ip, unshare, nsenter and setpriv")
    made = Network(folder)
    try:
        made.open()
    except subprocess.CalledProcessError as error:
        raise NoNamespacesError(f"no bridge can be made: {error.stderr.decode().strip()}") from None
    try:
        yield made
    finally:
        made.close()


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
