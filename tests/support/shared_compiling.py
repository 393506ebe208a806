"""Modules of tests are imported by as many processes as there are processors before they are collected, so that each compiles its share."""

import importlib
import os
from contextlib import suppress
from pathlib import Path

import pytest


def import_in_processes(config: pytest.Config) -> None:
    """Import a share of the modules of tests here, and each other share in a fork. A fresh checkout is compiled in half of the time."""
    modules = _list_modules(config)
    count = os.cpu_count() or 1
    forks = [_import_in_fork(modules[number::count]) for number in range(1, count)]
    _import(modules[::count])
    for each in forks:
        os.waitpid(each, 0)


def _import_in_fork(modules: list[str]) -> int:
    pid = os.fork()
    if pid == 0:
        try:
            _import(modules)
        finally:
            os._exit(0)
    return pid


def _import(modules: list[str]) -> None:
    for module in modules:
        with suppress(Exception, pytest.skip.Exception):  # who collects it says what is wrong with it
            importlib.import_module(module)


def _list_modules(config: pytest.Config) -> list[str]:
    paths = [config.invocation_params.dir / each.partition("::")[0] for each in config.args]
    files = {file for path in paths for file in ([path] if path.is_file() else path.rglob("test_*.py"))}
    return sorted({_name_module(each.resolve(), config.rootpath) for each in files})


def _name_module(file: Path, root: Path) -> str:
    return ".".join(file.relative_to(root).with_suffix("").parts) if file.is_relative_to(root) else file.stem
