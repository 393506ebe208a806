"""The name of the code that runs: the same for the same files, and another one as soon as one of them was edited."""

import runpy
from pathlib import Path

import pytest

import parley
from parley.orchestrator.engine import running_code
from parley.orchestrator.engine.running_code import name_code, name_running_code


def test_an_edited_file_makes_it_other_code_and_what_python_and_editors_keep_of_files_does_not(
    tmp_path: Path,
) -> None:
    for room in ("orchestrator/phases", "runtime/__pycache__", "v1"):
        (tmp_path / room).mkdir(parents=True)
    phase = tmp_path / "orchestrator" / "phases" / "critique.py"
    phase.write_text("_TASK = 'Name each issue.'")
    first = name_code(tmp_path)
    (tmp_path / "runtime" / "__pycache__" / "labels.pyc").write_bytes(b"compiled")
    phase.with_name(".#critique.py").symlink_to("somebody@host")  # Emacs marks so what is not saved
    assert name_code(tmp_path) == first
    phase.write_text("_TASK = 'Name every issue.'")
    assert name_code(tmp_path) != first


def test_two_calls_name_the_code_that_runs_the_same() -> None:
    assert name_running_code() == name_code(Path(__file__).parents[4] / "services" / "parley")


def test_a_file_that_is_edited_while_the_code_runs_does_not_change_its_name(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What runs is what was there at the start: under the new name, a restart would take it for the edited code."""
    phase = tmp_path / "orchestrator" / "critique.py"
    for room in ("orchestrator", "runtime", "v1"):
        (tmp_path / room).mkdir()
    phase.write_text("_TASK = 'Name each issue.'")
    monkeypatch.setattr(parley, "__file__", str(tmp_path / "__init__.py"))
    started = runpy.run_path(str(running_code.__file__))
    before = name_code(tmp_path)
    phase.write_text("_TASK = 'Name every issue.'")
    assert started["name_running_code"]() == before != name_code(tmp_path)
