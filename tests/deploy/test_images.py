"""The images: each has what its service imports, and the files that build and start them agree with the services."""

import json
import re
import subprocess
import sys
from functools import cache
from importlib.metadata import packages_distributions
from typing import Any

import pytest
import yaml
from qdrant_client.common.version_check import is_compatible

from parley.runtime import health_check
from tests.deploy.chart import ROOT, SETTINGS
from tests.deploy.values_schema import variable

IMPORT_ALL = """
import importlib, importlib.abc, json, pkgutil, sys

service, others = sys.argv[1], json.load(sys.stdin)

class OnlyLocked(importlib.abc.MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if owners := others.get(name.partition(".")[0]):
            raise ModuleNotFoundError(f"{name} is of {', '.join(owners)}, which is not in the lock", name=name)

sys.meta_path.insert(0, OnlyLocked())
found = importlib.import_module(f"parley.{service}")
for each in pkgutil.walk_packages(found.__path__, f"parley.{service}."):
    if not each.name.startswith("parley.gateway.local_model.server"):
        importlib.import_module(each.name)
importlib.import_module("parley.storage.opening")
if service not in ("convergence", "edge"):
    importlib.import_module("parley.storage.mongodb.log")
if service == "orchestrator":
    importlib.import_module("parley.client.trial")  # of the chart's test
if service == "memory":
    importlib.import_module("parley.storage.qdrant.server")
if service == "cli":
    importlib.import_module("parley.local")
"""


def list_others(lock: str) -> dict[str, list[str]]:
    """Return what a lock does not name, of all that is installed: packages by the modules that are theirs."""
    text = (ROOT / "requirements" / f"{lock}.txt").read_text()
    locked = {plain_name(each) for each in re.findall(r"^([\w.-]+)==", text, re.MULTILINE)}
    owners = {module: {*map(plain_name, found)} - {"parley"} for module, found in list_installed().items()}
    return {module: sorted(found) for module, found in owners.items() if found and not found & locked}


list_installed = cache(packages_distributions)


def plain_name(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


@pytest.mark.parametrize(("service", "lock"), [*((each, each) for each in SETTINGS), ("cli", "run")])
def test_an_image_has_whatever_its_service_imports(service: str, lock: str) -> None:
    command, others = [sys.executable, "-c", IMPORT_ALL, service], json.dumps(list_others(lock))
    ended = subprocess.run(
        command, input=others, capture_output=True, text=True, check=False, timeout=120, cwd=ROOT
    )
    assert ended.returncode == 0, ended.stderr.strip().splitlines()[-1]


def compose() -> dict[str, Any]:
    found: dict[str, Any] = yaml.safe_load((ROOT / "docker" / "compose.yaml").read_text())
    return found


def test_the_services_of_compose_get_variables_that_they_read_and_ports_that_they_listen_on() -> None:
    for service, settings in SETTINGS.items():
        given = compose()["services"][service]
        read = {variable(service, name) for name in settings.model_fields}
        assert {each for each in given["environment"] if not each.startswith("OTEL_")} <= read, service
        assert given["environment"]["PARLEY_PORT"] == str(settings.model_fields["port"].default)
        assert given["build"]["args"] == {"SERVICE": service}
        assert given["read_only"] is True
        assert given["user"] == "10001:10001"


def test_compose_opens_ports_on_this_machine_alone_and_takes_no_image_that_changes() -> None:
    for name, given in compose()["services"].items():
        assert all(str(port).startswith("127.0.0.1:") for port in given.get("ports", ())), name
        assert ":" in given["image"], name
        assert not given["image"].endswith(":latest"), name


def test_files_that_compose_mounts_are_there() -> None:
    for name, given in compose()["services"].items():
        for volume in given.get("volumes", ()):
            if volume.startswith("."):
                assert (ROOT / "docker" / volume.split(":")[0]).exists(), f"{name}: {volume}"


def test_an_image_runs_as_the_user_of_the_chart_starts_without_a_shell_and_is_called_as_there() -> None:
    lines = (ROOT / "docker" / "Dockerfile").read_text().splitlines()
    assert "USER 10001:10001" in lines
    assert 'ENTRYPOINT ["python3", "/app/start.py"]' in lines
    assert "latest" not in "".join(lines)
    run_stage = lines[max(number for number, line in enumerate(lines) if line.startswith("FROM ")) :]
    assert not [line for line in run_stage if line.startswith("RUN ")]  # so the base needs no shell


def test_the_images_of_qdrant_are_at_most_one_minor_version_apart_from_the_client() -> None:
    client = re.search(
        r"^qdrant-client==(\S+)", (ROOT / "requirements" / "memory.txt").read_text(), re.MULTILINE
    )
    assert client is not None
    files = ["charts/parley/values.yaml", "docker/compose.yaml", "k8s/dependencies/qdrant.yaml"]
    for name in files:
        images = re.findall(r"/qdrant/qdrant:v([0-9.]+)", (ROOT / name).read_text())
        assert images, name
        assert all(is_compatible(client[1], each) for each in images), name


def test_each_service_of_compose_says_how_it_is_and_none_is_waited_for_by_its_start_alone() -> None:
    services = compose()["services"]
    for name, settings in SETTINGS.items():
        check = services[name]["healthcheck"]["test"]
        port = services[name]["environment"]["PARLEY_HEALTH_PORT"]
        if name == "edge":
            assert f"http://127.0.0.1:{port}/readyz" in check[-1]
        else:
            assert (check[4], check[-1].rpartition(":")[2]) == (health_check.__name__, port)
        assert settings.model_fields["health_port"] is not None
    waits = [each for given in services.values() for each in given.get("depends_on", {}).items()]
    assert waits
    for name, how in waits:
        assert how == {"condition": "service_healthy"}, name
        assert services[name]["healthcheck"]["test"], name


@pytest.mark.parametrize(
    ("digest", "base", "run_base"),
    [
        ("", "", "python:3.11"),
        ("sha256:ab", "", "python:3.11@sha256:ab"),
        ("sha256:ab", "own@sha256:cd", "own@sha256:cd"),
    ],
)
def test_the_digest_of_the_base_is_an_argument_that_both_stages_take(
    digest: str, base: str, run_base: str
) -> None:
    lines = (ROOT / "docker" / "Dockerfile").read_text().splitlines()
    (build, run) = (line.split()[1] for line in lines if line.startswith("FROM "))
    (default,) = (line.partition("=")[2] for line in lines if line.startswith("ARG BASE="))
    program = f'BASE=${{BASE:-{default}}}; echo "{build} {run}"'
    given = {"BUILD_BASE": "python:3.11", "BUILD_BASE_DIGEST": digest, "BASE": base}
    expanded = subprocess.run(
        ["/bin/sh", "-c", program], capture_output=True, text=True, check=True, env=given
    )
    assert expanded.stdout.split() == [f"python:3.11{'@' if digest else ''}{digest}", run_base]


def test_every_argument_of_the_base_is_documented_and_make_passes_the_digest() -> None:
    dockerfile = (ROOT / "docker" / "Dockerfile").read_text().partition("\nFROM ")[0]
    readme = (ROOT / "docker" / "README.md").read_text()
    for name in re.findall(r"^ARG (\w+)", dockerfile, re.MULTILINE):
        assert f"| `{name}` |" in readme
    for digest in ("", "sha256:ab"):
        command = ["make", "--dry-run", "image-memory", f"BASE_DIGEST={digest}"]
        planned = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
        assert ("--build-arg BUILD_BASE_DIGEST=sha256:ab" in planned) == bool(digest)
