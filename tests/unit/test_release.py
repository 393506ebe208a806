"""What a release is made of, when it is refused, and that the same commit makes the same files."""

import hashlib
import re
import shutil
import subprocess
import tarfile
from pathlib import Path

import pytest

from tests.support.release import CONTRACTS, LOGS, build, find_obstacles, freeze, pack, write_sums
from tests.support.versions import PLACES, ROOT, find_other_versions, read_version, set_version

PYPROJECT = """[build-system]
requires = ["setuptools>=77"]
build-backend = "setuptools.build_meta"

[project]
name = "parley"
version = "1.2.3"

[tool.setuptools]
packages = ["parley"]
"""
PROTO = 'syntax = "proto3";\npackage small;\nmessage Small {\n  string name = 1;\n}\n'


def git(folder: Path, *arguments: str) -> None:
    identity = ["-c", "user.name=a", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *identity, *arguments], cwd=folder, check=True, capture_output=True)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A small project that can be released: all files that say the version, a package, a chart and a contract."""
    folder = tmp_path / "checkout"
    for name in PLACES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, folder / name)
    (folder / "pyproject.toml").write_text(PYPROJECT)
    set_version("1.2.3", folder)
    written = {
        "CHANGELOG.md": "# Changes\n\n## [1.2.3] - 2026-11-26\n",
        "README.md": "# Small\n",
        "buf.yaml": "version: v2\nmodules:\n  - path: protos\n",
        "charts/parley/.helmignore": "examples/\n",
        "charts/parley/examples/values.yaml": "a: 1\n",
        "charts/parley/templates/pod.yaml": "kind: Pod\n",
        "parley/__init__.py": "",
        "protos/small.proto": PROTO,
        f"{LOGS}/panel@1.log": "e30=\n",
    }
    for name, text in written.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    git(folder, "init", "--quiet")
    git(folder, "add", ".")
    git(folder, "commit", "--quiet", "--message", "Begin")
    return folder


def test_every_file_that_says_the_version_says_that_of_pyproject() -> None:
    assert find_other_versions() == []


def test_a_version_is_set_wherever_it_stands_and_one_that_is_left_behind_is_named(checkout: Path) -> None:
    set_version("2.0.0", checkout)
    assert read_version(checkout) == "2.0.0"
    assert find_other_versions(checkout) == []
    chart = checkout / "charts/parley/Chart.yaml"
    chart.write_text(chart.read_text().replace("2.0.0", "1.9.0"))
    assert all(
        line.startswith("charts/parley/Chart.yaml says 1.9.0") for line in find_other_versions(checkout)
    )
    with pytest.raises(ValueError, match="'next' is no version"):
        set_version("next", checkout)


def test_what_is_committed_with_an_entry_among_the_changes_can_be_released(checkout: Path) -> None:
    (checkout / CONTRACTS).mkdir()
    (checkout / CONTRACTS / "1.2.3.binpb").touch()  # what the release itself leaves for the next commit
    assert find_obstacles(checkout) == []


def test_a_tree_with_changes_is_refused_with_their_names(checkout: Path) -> None:
    (checkout / "new.txt").touch()
    (obstacle,) = find_obstacles(checkout)
    assert obstacle.startswith("1 changed files are not committed, such as new.txt")


@pytest.mark.parametrize(
    "heading", ["## [Unreleased]", "## [1.2.3]", "## [1.2.30] - 2026-11-26", "## [1x2.3] - 2026-11-26"]
)
def test_a_version_without_a_dated_entry_among_the_changes_is_refused(heading: str, checkout: Path) -> None:
    (checkout / "CHANGELOG.md").write_text(f"# Changes\n\n{heading}\n")
    git(checkout, "commit", "--quiet", "--all", "--message", "Change")
    assert find_obstacles(checkout) == [
        "CHANGELOG.md has no entry for this version: write `## [1.2.3] - YYYY-MM-DD` above what changed"
    ]


def test_the_same_commit_makes_the_same_files_in_any_folder_and_nothing_else_comes_along(
    checkout: Path, tmp_path: Path
) -> None:
    (checkout / "parley" / "left_over.py").touch()
    for folder in (first := tmp_path / "first", second := tmp_path / "second"):
        build(checkout, folder)
        write_sums(folder)
    assert (first / "SHA256SUMS").read_text() == (second / "SHA256SUMS").read_text()
    assert {each.name for each in first.iterdir()} == {
        "SHA256SUMS",
        "parley-1.2.3-contract.binpb",
        "parley-1.2.3-py3-none-any.whl",
        "parley-1.2.3.tar.gz",
        "parley-chart-1.2.3.tgz",
    }
    subprocess.run(["sha256sum", "--check", "--quiet", "SHA256SUMS"], cwd=first, check=True)
    with tarfile.open(first / "parley-1.2.3.tar.gz") as source:
        names = source.getnames()
    assert {"parley-1.2.3/PKG-INFO", "parley-1.2.3/pyproject.toml", "parley-1.2.3/parley/__init__.py"} <= set(
        names
    )
    assert not [name for name in names if "left_over" in name]
    with tarfile.open(first / "parley-chart-1.2.3.tgz") as chart:
        assert chart.getnames() == ["parley/Chart.yaml", "parley/templates/pod.yaml"]


def test_an_archive_says_nothing_of_who_packed_it(tmp_path: Path) -> None:
    folder = tmp_path / "parley"
    folder.mkdir()
    (folder / "run").write_text("#!/bin/sh\n")
    (folder / "run").chmod(0o700)
    pack(tmp_path / "a.tgz", folder, folder.iterdir(), 315532800)
    with tarfile.open(tmp_path / "a.tgz") as opened:
        (entry,) = opened.getmembers()
    assert (entry.mode, entry.mtime, entry.uid, entry.uname) == (0o755, 315532800, 0, "")


def test_a_release_keeps_its_contract_and_the_digests_of_the_logs(checkout: Path, tmp_path: Path) -> None:
    contract = tmp_path / "contract.binpb"
    contract.write_bytes(b"contract")
    freeze(checkout, contract)
    kept = checkout / CONTRACTS
    assert (kept / "1.2.3.binpb").read_bytes() == b"contract"
    subprocess.run(
        ["sha256sum", "--check", "--quiet", kept / "1.2.3.logs.sha256"], cwd=checkout / LOGS, check=True
    )


def test_the_kept_logs_of_each_release_are_as_they_were() -> None:
    for sums in (ROOT / CONTRACTS).glob("*.logs.sha256"):
        for digest, name in re.findall(r"^(\w+)  (.+)$", sums.read_text(), re.MULTILINE):
            now = hashlib.sha256((ROOT / LOGS / name).read_bytes()).hexdigest()
            assert now == digest, (
                f"{name} was released with {sums.name.removesuffix('.logs.sha256')}: restore it"
            )
