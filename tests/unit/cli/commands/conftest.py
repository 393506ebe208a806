"""A folder of its own for every test, and a scripted orchestrator."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from parley.cli.__main__ import run
from tests.support.scripted_orchestrator import ScriptedOrchestrator, scripted
from tests.unit.cli.commands.remembered import KAFKA, PRICES, make_record
from tests.unit.cli.commands.scripts import run_one_round


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PARLEY_STORE", f"sqlite:///{tmp_path / 'data'}")
    monkeypatch.setenv("PARLEY_TRUST_CONFIG", "true")
    for name in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENROUTER_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(sys, "stdin", None)  # as where it was closed
    return tmp_path


@pytest.fixture
def orchestrator() -> Iterator[ScriptedOrchestrator]:
    with scripted(ScriptedOrchestrator(script=run_one_round)) as serving:
        yield serving


@pytest.fixture
def server(orchestrator: ScriptedOrchestrator, capsys: pytest.CaptureFixture[str]) -> list[str]:
    """A server that has held a debate."""
    at = ["--server", orchestrator.address]
    assert run(["debate", "Which?", *at]) == 0
    capsys.readouterr()
    return at


@pytest.fixture
def at(orchestrator: ScriptedOrchestrator, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """A server that remembers two debates."""
    monkeypatch.delenv("COLUMNS", raising=False)
    orchestrator.memories = {KAFKA: make_record(), PRICES: make_record(PRICES, "Raise them.", "sales")}
    return ["--server", orchestrator.address]
