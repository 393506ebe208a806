"""The commands of the guide on installing, `kubectl`, `helm`, `docker` and `make`, as a cluster of ours answers them.

A shell that runs the guide finds programs of these names, which hand their arguments over a socket to `answer`.
"""

import argparse
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, NoReturn

import yaml

from tests.deploy.chart import ROOT
from tests.deploy.cluster import Cluster, RefusedError
from tests.support.versions import read_version

PROGRAM: Final = """#!/usr/bin/env -S python3 -IS
import json, socket, sys
with socket.socket(socket.AF_UNIX) as asked:
    asked.connect({socket!r})
    read = "" if "-f" not in sys.argv else sys.stdin.read()
    asked.sendall(json.dumps([{name!r}, sys.argv[1:], read]).encode() + b"\\n")
    code, out, err = json.loads(asked.makefile().readline())
sys.stdout.write(out)
sys.stderr.write(err)
sys.exit(code)
"""

Forward = Callable[[int, str, int], None]
"""Lead a port of the desk to an address and a port."""


def answer(
    cluster: Cluster, folder: Path, forward: Forward, name: str, arguments: Sequence[str], read: str
) -> tuple[int, str, str]:
    """Return a command's exit code and what it prints on stdout and stderr."""
    commands: Mapping[str, Callable[[], str]] = {
        "kubectl": lambda: _kubectl(cluster, folder, forward, arguments, read),
        "helm": lambda: _helm(cluster, folder, arguments),
        "docker": lambda: _docker(cluster, arguments),
        "make": lambda: _make(arguments),
    }
    try:
        return 0, commands[name](), ""
    except (RefusedError, AssertionError) as error:
        return 1, "", f"{name} {' '.join(arguments)}: {error}\n"


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise RefusedError(message)


def _kubectl(cluster: Cluster, folder: Path, forward: Forward, arguments: Sequence[str], read: str) -> str:
    before, _, command = _split(arguments)
    parser = _Parser(prog="kubectl")
    parser.add_argument("--namespace", default="default")
    parser.add_argument("words", nargs="+")
    parser.add_argument("--from-literal", action="append", default=[])
    parser.add_argument("--from-file", action="append", default=[])
    parser.add_argument("--output", "-o", default="")
    parser.add_argument("--dry-run", default="")
    parser.add_argument("-f", dest="file")
    given = parser.parse_intermixed_args(before)
    match given.words:
        case ["create", *what]:
            return _create(cluster, folder, given, what)
        case ["apply"]:
            applied = yaml.safe_load(read)
            assert given.file == "-"
            assert applied["kind"] == "Secret"
            return f"secret/{applied['metadata']['name']} configured\n"
        case ["rollout", "status", reference]:
            return cluster.wait(reference, given.namespace)
        case ["exec", reference]:
            return cluster.execute(reference, given.namespace, command)
        case ["get", "secret", name]:
            key = re.fullmatch(r"jsonpath=\{\.data\.(.+)\}", given.output)
            assert key is not None
            return cluster.read_secret(name, key[1].replace("\\.", "."), given.namespace)
        case ["port-forward", reference, ports]:
            ours, _, theirs = ports.partition(":")
            service = cluster.require(reference, given.namespace)
            assert int(theirs) in {each["port"] for each in service["spec"]["ports"]}
            component = service["spec"]["selector"]["app.kubernetes.io/component"]
            forward(int(ours), cluster.pods[f"parley-{component}"].address, int(theirs))
            return f"Forwarding from 127.0.0.1:{ours} -> {theirs}\n"
    raise RefusedError("this cluster does not know that command")


def _create(cluster: Cluster, folder: Path, given: argparse.Namespace, what: Sequence[str]) -> str:
    match what:
        case ["namespace", name]:
            return cluster.create_namespace(name)
        case ["secret", "generic", name]:
            keys = _read_keys(folder, given.from_literal, given.from_file)
            if given.dry_run:
                assert given.output == "yaml"
                return yaml.safe_dump(
                    {
                        "kind": "Secret",
                        "metadata": {"name": name, "namespace": given.namespace},
                        "data": sorted(keys),
                    }
                )
            return cluster.create_secret(name, keys, given.namespace)
    raise RefusedError("this cluster does not make that")


def _split(arguments: Sequence[str]) -> tuple[list[str], str, list[str]]:
    """Return what stands before and after `--`."""
    words = list(arguments)
    place = words.index("--") if "--" in words else len(words)
    return words[:place], "--", words[place + 1 :]


def _read_keys(folder: Path, literals: Sequence[str], files: Sequence[str]) -> dict[str, bytes]:
    keys = {name: value.encode() for name, _, value in (each.partition("=") for each in literals)}
    return keys | {
        name: (folder / file).read_bytes() for name, _, file in (each.partition("=") for each in files)
    }


def _helm(cluster: Cluster, folder: Path, arguments: Sequence[str]) -> str:
    parser = _Parser(prog="helm")
    parser.add_argument("words", nargs="+")
    parser.add_argument("--namespace", required=True)
    parser.add_argument("--create-namespace", action="store_true")
    parser.add_argument("--values", type=Path)
    parser.add_argument("--logs", action="store_true")
    given = parser.parse_intermixed_args(arguments)
    match given.words:
        case ["install", "parley", chart]:
            if given.create_namespace:
                cluster.create_namespace(given.namespace)
            return cluster.install(given.namespace, folder / given.values, folder / chart)
        case ["test", "parley"]:
            cluster.require("pod/parley-trial", given.namespace)
            return "Phase: Succeeded\n"
    raise RefusedError("this cluster does not know that command")


def _docker(cluster: Cluster, arguments: Sequence[str]) -> str:
    match arguments:
        case ["tag", ours, _]:
            assert ours in {f"parley-{each}:{read_version()}" for each in _services()}, (
                f"no such image: {ours}"
            )
        case ["push", name]:
            cluster.images.add(name)
        case _:
            raise RefusedError("is not a command of this guide")
    return ""


def _services() -> list[str]:
    found = re.search(r"^SERVICES := (.+)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert found is not None
    return found[1].split()


def _make(arguments: Sequence[str]) -> str:
    makefile = (ROOT / "Makefile").read_text()
    for target in arguments:
        assert re.search(rf"^(?:{target}|\.PHONY: .*{target}.*)(?::| )", makefile, re.MULTILINE), (
            f"no rule to make target '{target}'"
        )
    return ""
