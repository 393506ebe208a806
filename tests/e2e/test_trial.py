"""The debate that shows whether an installation works, as `helm test` holds it: five processes, no model."""

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.harness import SERVICES, System, system

pytestmark = pytest.mark.timeout(180)  # five processes start here, on a machine that may be busy

NOWHERE = "http://127.0.0.1:1/v1"


@pytest.fixture(scope="module")
def services(tmp_path_factory: pytest.TempPathFactory) -> Iterator[System]:
    with system(tmp_path_factory.mktemp("trial"), NOWHERE, {"PARLEY_ECHO": "true"}) as five:
        for name in SERVICES:
            five.start(name)
        five.wait(*SERVICES)
        yield five


def trial(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "parley.client.trial", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


def test_a_trial_holds_a_debate_whose_answer_says_that_no_model_was_asked(services: System) -> None:
    ended = trial(services.folder, services.addresses["orchestrator"])
    assert ended.returncode == 0, ended.stderr
    assert "closed" in ended.stdout
    assert "Echo (no model was asked)" in ended.stdout
    assert "Demonstration" in ended.stdout


def test_a_trial_over_a_route_that_nobody_serves_fails_with_one_line(services: System) -> None:
    ended = trial(services.folder, services.addresses["orchestrator"], "--route", "nobody/there")
    assert ended.returncode == 1
    assert "nobody/there" in ended.stderr
    assert len(ended.stderr.splitlines()) == 1
