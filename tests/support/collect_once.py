"""Makes processes of pytest forks of one that has collected the tests: to collect them in each takes a twentieth of the suite's time."""

import json
import os
import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import execnet
import pytest

from tests.support.warm_start import list_command

_VARIABLE: Final = "PARLEY_TEST_COLLECTED"
_PROGRAM: Final = "tests.support.execnet_server"
_COLLECTED: Final = "tests.support.collected"


class _RunCollected:
    def __init__(self) -> None:
        self._has_failed = False

    def pytest_internalerror(self) -> None:
        self._has_failed = True

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Let the run fail if a process did, which xdist goes on without, and without the tests that were its own."""
        if self._has_failed:
            session.exitstatus = pytest.ExitCode.INTERNAL_ERROR

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_getremotemodule(self) -> str:
        return f"import {_COLLECTED} as collected; collected.run(channel)"


def start_forks(config: pytest.Config, specs: Sequence[execnet.XSpec]) -> None:
    """Change what processes are started by, and what runs in them."""
    config.pluginmanager.register(_RunCollected())
    given = json.dumps([[*config.invocation_params.args], str(Path.cwd())])
    command = list_command(module=_PROGRAM, imports=[_COLLECTED], before=["env", f"{_VARIABLE}={given}"])
    for spec in specs:
        spec.python = shlex.join(command)


def read_arguments() -> list[str]:
    """Return pytest's arguments in the process that collects, and go to the folder that they are given in."""
    arguments, folder = json.loads(os.environ.pop(_VARIABLE))
    os.chdir(folder)
    return list(arguments)
