"""What a process sets for its own libraries stays its own; what it was given goes on to the programs that it starts."""

import json
import os
import subprocess
import sys

import pytest

from parley.runtime.own_variables import set_own_variable
from parley.runtime.python_process import safe_environment

OF_LIBRARIES = ("GRPC_VERBOSITY", "PYDANTIC_DISABLE_PLUGINS")
PROGRAM = """
import json, os
from parley.cli.command_line import run
from parley.runtime.python_process import safe_environment
run(["--version"])
print(json.dumps([dict(os.environ), safe_environment()]))
"""


def test_what_was_set_from_outside_stays_and_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("A_LIBRARY", "loud")
    set_own_variable("A_LIBRARY", "quiet")
    assert os.environ["A_LIBRARY"] == "loud"
    assert safe_environment()["A_LIBRARY"] == "loud"


@pytest.mark.parametrize(
    "given", [{}, dict.fromkeys(OF_LIBRARIES, "1")], ids=["by the command", "by its user"]
)
def test_a_command_keeps_what_it_sets_for_its_libraries_from_what_it_starts(given: dict[str, str]) -> None:
    environment = {name: value for name, value in os.environ.items() if name not in OF_LIBRARIES}
    ended = subprocess.run(
        [sys.executable, "-P", "-c", PROGRAM],
        env={**environment, **given},
        stdout=subprocess.PIPE,
        check=True,
        text=True,
    )
    own, passed_on = json.loads(ended.stdout.splitlines()[-1])
    assert set(OF_LIBRARIES) <= own.keys()
    assert {name: passed_on[name] for name in OF_LIBRARIES if name in passed_on} == given
