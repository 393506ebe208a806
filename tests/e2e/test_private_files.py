"""What Parley keeps on a machine is its user's alone, also where that user's umask would let everybody read it."""

import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.harness import model_server
from tests.support.command import Command, Ended


@pytest.fixture(autouse=True)
def open_to_everybody() -> Iterator[None]:
    before = os.umask(0)
    yield
    os.umask(before)


def modes(folder: Path) -> dict[str, int]:
    return {
        str(each.relative_to(folder)): stat.S_IMODE(each.lstat().st_mode)
        for each in folder.rglob("*")
        if not each.is_symlink()
    }


def test_all_that_is_kept_is_0600_in_folders_of_0700_and_what_was_asked_for_is_as_the_umask_says(
    tmp_path: Path,
) -> None:
    home, project = tmp_path / "home", tmp_path / "project"
    for folder in (home, project):
        folder.mkdir()
    (project / "parley.yaml").write_text(
        "providers: [{name: openai, kind: openai}]\nagents: [{role: architect}, {role: security}]\n"
    )
    with model_server() as url:
        variables = {
            "HOME": str(home),
            "PARLEY_STORE": "",
            "OPENAI_BASE_URL": url,
            "PARLEY_MODEL": "test",
            "PARLEY_TRUST_CONFIG": "",
            **{f"XDG_{name}_HOME": "" for name in ("CACHE", "CONFIG", "DATA", "STATE")},
        }

        def run(*arguments: str) -> Ended:
            ended = Command(arguments, project, variables).end()
            assert ended.code == 0, ended.err
            return ended

        out = ("-o", "out/answer.md", "--report", "out/report.md")
        run("debate", "Tabs or spaces?", "--rounds", "1", "--trust-config", *out)
        run("keys", "add", "ci")
        run("backup", str(home / "kept" / "first"))
        run("export", "-o", str(home / "all.zip"))

    kept = modes(home)
    assert {".db", ".log", ".json", ".zip"} <= {Path(each).suffix for each in kept}, kept
    wrong = {
        name: oct(mode) for name, mode in kept.items() if mode != (0o700 if (home / name).is_dir() else 0o600)
    }
    assert not wrong
    asked_for = modes(project / "out")
    assert asked_for == {"answer.md": 0o666, "report.md": 0o666}
    assert stat.S_IMODE((project / "out").stat().st_mode) == 0o777
