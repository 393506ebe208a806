"""Processes of pytest that collect the same tests: each imports a share of the modules first, so that each module is compiled once."""

import importlib
from contextlib import suppress
from pathlib import Path

import pytest

__all__ = ["import_share"]


def import_share(config: pytest.Config) -> None:
    """Import every nth module of tests, if this is one of n processes. Compiled in all of them, a fresh checkout takes twice as long."""
    worker: dict[str, object] | None = getattr(config, "workerinput", None)
    if worker is None:
        return
    number, count = int(str(worker["workerid"]).removeprefix("gw")), int(str(worker["workercount"]))
    for module in _list_modules(config)[number::count]:
        with suppress(Exception, pytest.skip.Exception):  # who collects it says what is wrong with it
            importlib.import_module(module)


def _list_modules(config: pytest.Config) -> list[str]:
    paths = [config.invocation_params.dir / each.partition("::")[0] for each in config.args]
    files = {file for path in paths for file in ([path] if path.is_file() else path.rglob("test_*.py"))}
    return sorted(".".join(_relative(each, config).with_suffix("").parts) for each in files)


def _relative(file: Path, config: pytest.Config) -> Path:
    return file.resolve().relative_to(config.rootpath)
