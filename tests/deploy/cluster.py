"""A cluster as far as a guide's commands go: `kubectl`, `helm` and `docker` are checked against rendered objects, and pods are processes.

What a real one would refuse is refused here: an image that was not pushed, a Secret or a key of it that is not there, a
namespace that does not exist, an object that was not rendered.
"""

import base64
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from time import monotonic, sleep
from typing import Any, Final

import yaml

from parley.runtime import health_check
from tests.deploy.chart import CHART, Object, Rendered, render
from tests.deploy.pods import HOST, Network, Pod, PodSpec
from tests.support.certificates import Authority

_SERVICES_BY_NAME: Final = re.compile(r"parley-(\w+)")


_USER_OF_PLATFORM: Final = 1_000_680_000
"""What OpenShift gives a namespace is such a number, which no image knows."""
_READY_SECONDS: Final = 150


class RefusedError(Exception):
    """A command is refused, with what kubectl, helm or docker would say."""


@dataclass
class Cluster:
    """Namespaces, Secrets and a release; its pods run once it is installed, if there is a network for them.

    Attributes:
        images: Names of images that were pushed.
        changes: Values that whoever installs has changed.
        elsewhere: Names of hosts that stand outside, at the test's own address.
    """

    folder: Path
    network: Network | None = None
    changes: Mapping[str, Any] = field(default_factory=dict)
    elsewhere: Sequence[str] = ()
    images: set[str] = field(default_factory=set)
    namespaces: set[str] = field(default_factory=lambda: {"default"})
    secrets: dict[str, dict[str, bytes]] = field(default_factory=dict)
    rendered: Rendered | None = None
    pods: dict[str, Pod] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.authority = Authority(self.folder)
        """The issuer that cert-manager has."""

    def create_namespace(self, name: str) -> str:
        if name in self.namespaces:
            raise RefusedError(f'namespaces "{name}" already exists')
        self.namespaces.add(name)
        return f"namespace/{name} created\n"

    def create_secret(self, name: str, keys: Mapping[str, bytes], namespace: str) -> str:
        self._check_namespace(namespace)
        if name in self.secrets:
            raise RefusedError(f'secrets "{name}" already exists')
        self.secrets[name] = dict(keys)
        return f"secret/{name} created\n"

    def install(self, namespace: str, values: Path, chart: Path) -> str:
        """Check and start a release."""
        self._check_namespace(namespace)
        assert chart.resolve() == CHART
        self.rendered = render({**yaml.safe_load(values.read_text()), **self.changes})
        for certificate in self.rendered.of("Certificate"):
            self._issue(certificate["spec"])
        for where, pod in self.rendered.pods():
            self._check_pod(where, pod)
        if self.network is not None:
            self._start(self.network)
        return self.rendered.notes

    def require(self, reference: str, namespace: str) -> Object:
        """Return a rendered object such as `deployment/parley-gateway`."""
        self._check_namespace(namespace)
        kind, _, name = reference.partition("/")
        for each in self.rendered.objects if self.rendered else ():
            if each["kind"].lower() == kind and each["metadata"]["name"] == name:
                return each
        raise RefusedError(f'{kind}s "{name}" not found')

    def wait(self, deployment: str, namespace: str) -> str:
        """Wait until the pod of a deployment is ready."""
        name = self.require(deployment, namespace)["metadata"]["name"]
        pod, ends = self.pods[name], monotonic() + _READY_SECONDS
        while health_check.main([f"{pod.address}:{pod.spec.variables['PARLEY_HEALTH_PORT']}"]):
            assert pod.process.poll() is None, f"{name} ended: {pod.log.read_text()[-3000:]}"
            assert monotonic() < ends, f"{name} is not ready: {pod.log.read_text()[-3000:]}"
            sleep(0.2)
        return f'deployment "{name}" successfully rolled out\n'

    def execute(self, deployment: str, namespace: str, command: Sequence[str]) -> str:
        """Run a command in the pod of a deployment."""
        name = self.require(deployment, namespace)["metadata"]["name"]
        done = self.pods[name].execute(command)
        if done.returncode:
            raise RefusedError(f"command terminated with exit code {done.returncode}: {done.stderr.decode()}")
        return done.stdout.decode()

    def read_secret(self, name: str, key: str, namespace: str) -> str:
        """Return a key of a Secret in base64, as `get secret --output jsonpath` does."""
        self._check_namespace(namespace)
        if key not in self.secrets.get(name, {}):
            raise RefusedError(f'secrets "{name}" not found, or without {key}')
        return base64.b64encode(self.secrets[name][key]).decode()

    def _check_namespace(self, name: str) -> None:
        if name not in self.namespaces:
            raise RefusedError(f'namespaces "{name}" not found')

    def _issue(self, spec: Mapping[str, Any]) -> None:
        certificate, key = self.authority.sign(spec["commonName"], hosts=spec["dnsNames"])
        self.secrets[spec["secretName"]] = {
            "tls.crt": certificate.read_bytes(),
            "tls.key": key.read_bytes(),
            "ca.crt": self.authority.file.read_bytes(),
        }

    def _check_pod(self, where: str, pod: Mapping[str, Any]) -> None:
        for container in pod["containers"]:
            image = container["image"]
            assert not _is_ours(image) or container["imagePullPolicy"] == "Never" or image in self.images, (
                f"{where}: nobody pushed {image}"
            )
        for name, keys in _list_needed_secrets(pod):
            assert name in self.secrets, f"{where}: no Secret {name}"
            assert keys <= self.secrets[name].keys(), f"{where}: Secret {name} has no {keys}"

    def _start(self, network: Network) -> None:
        assert self.rendered is not None
        joined = {each["metadata"]["name"]: network.join() for each in self.rendered.of("Deployment")}
        network.hosts |= dict.fromkeys(self.elsewhere, HOST)
        for service in self.rendered.of("Service"):
            component = service["spec"]["selector"]["app.kubernetes.io/component"]
            (address,) = (ip for name, (_, ip) in joined.items() if name.endswith(f"-{component}"))
            name, namespace = service["metadata"]["name"], service["metadata"]["namespace"]
            network.hosts |= dict.fromkeys((name, f"{name}.{namespace}", f"{name}.{namespace}.svc"), address)
        for deployment in self.rendered.of("Deployment"):
            name = deployment["metadata"]["name"]
            namespace, address = joined[name]
            named = _SERVICES_BY_NAME.fullmatch(name)
            assert named is not None
            spec = self._pod_spec(name, deployment["spec"]["template"]["spec"], address)
            self.pods[name] = network.start(
                spec, namespace, address, f"parley.{named[1]}", self.authority.file
            )

    def _pod_spec(self, name: str, pod: Mapping[str, Any], address: str) -> PodSpec:
        (container,) = pod["containers"]
        assert container["securityContext"]["readOnlyRootFilesystem"]
        folders = {each["name"]: self._write_volume(name, each) for each in pod["volumes"]}
        mounts = {each["mountPath"]: folders[each["name"]] for each in container["volumeMounts"]}
        return PodSpec(
            name,
            pod["securityContext"].get("runAsUser", _USER_OF_PLATFORM),
            self._variables(name, container, address),
            mounts,
        )

    def _write_volume(self, pod: str, volume: Mapping[str, Any]) -> Path | None:
        if {"emptyDir", "persistentVolumeClaim"} & volume.keys():
            return None
        folder: Path = self.folder / "volumes" / pod / volume["name"]
        folder.mkdir(parents=True)
        for path, content in self._contents(volume).items():
            (folder / path).write_bytes(content)
        return folder

    def _contents(self, volume: Mapping[str, Any]) -> dict[str, bytes]:
        if "configMap" in volume:
            assert self.rendered is not None
            data = self.rendered.one("ConfigMap", volume["configMap"]["name"])["data"]
            return {name: text.encode() for name, text in data.items()}
        secret = volume["secret"]
        kept = self.secrets[secret["secretName"]]
        items = secret.get("items") or [{"key": name, "path": name} for name in kept]
        return {each["path"]: kept[each["key"]] for each in items}

    def _variables(self, pod: str, container: Mapping[str, Any], address: str) -> dict[str, str]:
        assert self.rendered is not None
        of_pod = {"status.podIP": address, "metadata.name": pod}
        found: dict[str, str] = {}
        for source in container["envFrom"]:
            if "configMapRef" in source:
                found |= self.rendered.one("ConfigMap", source["configMapRef"]["name"])["data"]
            else:
                found |= {
                    name: text.decode() for name, text in self.secrets[source["secretRef"]["name"]].items()
                }
        for each in container.get("env", ()):
            match each:
                case {"name": name, "value": value}:
                    found[name] = re.sub(r"\$\((\w+)\)", lambda named: found[named[1]], value)
                case {"name": name, "valueFrom": {"secretKeyRef": of}}:
                    found[name] = self.secrets[of["name"]][of["key"]].decode()
                case {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}:
                    found[name] = of_pod[path]
        return found


def _is_ours(image: str) -> bool:
    return "/parley-" in f"/{image}"


def _list_needed_secrets(pod: Mapping[str, Any]) -> list[tuple[str, set[str]]]:
    """Return the Secrets that a pod needs, with the keys that it names of each."""
    found: list[tuple[str, set[str]]] = []
    for container in pod["containers"]:
        found += [
            (each["secretRef"]["name"], set()) for each in container.get("envFrom", ()) if "secretRef" in each
        ]
        for each in container.get("env", ()):
            if of := each.get("valueFrom", {}).get("secretKeyRef"):
                found.append((of["name"], {of["key"]}))
    for volume in pod.get("volumes", ()):
        if secret := volume.get("secret"):
            found.append((secret["secretName"], {each["key"] for each in secret.get("items", ())}))
    return found
