"""The name by which hints call this command."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from parley.cli.command_name import command_name


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    command_name.cache_clear()
    yield
    command_name.cache_clear()


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    script = tmp_path / "bin" / "parley"
    script.parent.mkdir()
    script.write_text("#!/bin/sh\n")
    script.chmod(0o755)
    monkeypatch.setenv("PATH", "/nowhere")
    monkeypatch.setattr(sys, "argv", ["bin/parley", "list"])
    return script


def test_a_command_that_is_not_on_the_path_is_called_as_it_was_typed(installed: Path) -> None:
    assert command_name() == "bin/parley"


def test_a_command_on_the_path_is_called_by_its_name(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(installed.parent))
    assert command_name() == "parley"


def test_a_module_that_is_run_is_called_by_the_commands_name(
    installed: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "argv", ["parley/cli/__main__.py"])
    assert command_name() == "parley"
