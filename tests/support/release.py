"""Builds a release of what is committed: `make release` runs this, and says what it made.

In `dist/VERSION/` come the wheel, the source distribution, the chart's package, the contract as a descriptor set, lists of what is
in each lock, and `SHA256SUMS`. All but the lists are built twice, in two folders, and must be equal to the byte.
"""

import gzip
import hashlib
import io
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterable
from fnmatch import fnmatch
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from tests.support.versions import find_other_versions, read_version

ROOT: Final = Path(__file__).parents[2]
CONTRACTS: Final = "tests/data/contracts"
LOGS: Final = "tests/data/logs"
_BUF: Final = Path(sys.executable).parent / "buf"


def find_obstacles(root: Path = ROOT) -> list[str]:
    """Return what speaks against a release of what is checked out, a line each."""
    version = read_version(root)
    wrong = find_other_versions(root)
    # What a release freezes is committed after it, so it may be there already.
    changed = _run(root, "git", "status", "--porcelain", "--", ".", f":!{CONTRACTS}").splitlines()
    if changed:
        names = ", ".join(line[3:] for line in changed[:3])
        wrong.append(
            f"{len(changed)} changed files are not committed, such as {names}: commit them, or put them away"
        )
    changes = (root / "CHANGELOG.md").read_text(encoding="utf-8")
    if not re.search(rf"(?m)^## \[{re.escape(version)}\] - \d{{4}}-\d\d-\d\d$", changes):
        wrong.append(
            f"CHANGELOG.md has no entry for this version: write `## [{version}] - YYYY-MM-DD` above what changed"
        )
    return wrong


def build(root: Path, out: Path) -> None:
    """Build what is committed in `root` into an empty folder: wheel, source distribution, chart, contract."""
    version, epoch = read_version(root), int(_run(root, "git", "log", "-1", "--format=%ct"))
    out.mkdir(parents=True)
    with TemporaryDirectory() as temporary:
        checkout, made = Path(temporary) / f"parley-{version}", Path(temporary) / "made"
        _export(root, checkout)
        _setuptools(checkout, f"build_wheel({str(out)!r})", epoch)
        shutil.rmtree(checkout / "build", ignore_errors=True)
        _setuptools(checkout, f"build_sdist({str(made)!r})", epoch)
        (archive,) = made.iterdir()
        with tarfile.open(archive) as opened:
            opened.extractall(made, filter="data")
        folder = made / f"parley-{version}"
        pack(out / f"parley-{version}.tar.gz", folder, folder.rglob("*"), epoch)
        chart = checkout / "charts" / "parley"
        pack(out / f"parley-chart-{version}.tgz", chart, list_chart_files(chart), epoch)
        _run(
            checkout,
            _BUF,
            "build",
            "--exclude-source-info",
            "--output",
            out / f"parley-{version}-contract.binpb",
        )


def pack(archive: Path, folder: Path, files: Iterable[Path], epoch: int) -> None:
    """Pack files of a folder under its name. The same files make the same archive, whoever packs them, and when."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for path in sorted(each for each in files if each.is_file()):
            entry = tarfile.TarInfo(f"{folder.name}/{path.relative_to(folder).as_posix()}")
            entry.size, entry.mtime = path.stat().st_size, epoch
            entry.mode = 0o755 if path.stat().st_mode & 0o100 else 0o644
            with path.open("rb") as content:
                tar.addfile(entry, content)
    with archive.open("wb") as out, gzip.GzipFile("", "wb", fileobj=out, mtime=epoch) as zipped:
        zipped.write(packed.getvalue())


def write_sums(folder: Path) -> None:
    """Write SHA256SUMS of a folder's files, as `sha256sum --check` reads it."""
    names = sorted(each.name for each in folder.iterdir() if each.name != "SHA256SUMS")
    lines = [f"{_digest(folder / name)}  {name}\n" for name in names]
    (folder / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")


def freeze(root: Path, contract: Path) -> None:
    """Keep what a release promises: its contract, and the kept logs as they are now."""
    version, kept = read_version(root), root / CONTRACTS
    kept.mkdir(exist_ok=True)
    shutil.copyfile(contract, kept / f"{version}.binpb")
    lines = [f"{_digest(each)}  {each.name}\n" for each in sorted((root / LOGS).glob("*.log"))]
    (kept / f"{version}.logs.sha256").write_text("".join(lines), encoding="utf-8")


def list_chart_files(chart: Path) -> list[Path]:
    """Return the chart's files without those that Helm leaves out of a package."""
    ignored = (chart / ".helmignore").read_text(encoding="utf-8").split()
    return [
        each
        for each in chart.rglob("*")
        if each.name != ".helmignore"
        and not any(
            fnmatch(part, pattern.rstrip("/"))
            for part in each.relative_to(chart).parts
            for pattern in ignored
        )
    ]


def _export(root: Path, folder: Path) -> None:
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=root, stdout=subprocess.PIPE, check=True)
    with tarfile.open(fileobj=io.BytesIO(archive.stdout)) as opened:
        opened.extractall(folder, filter="data")


def _setuptools(checkout: Path, call: str, epoch: int) -> None:
    """Call the build backend in a checkout. It is of the locked version, and installs nothing."""
    program = f"from setuptools import build_meta; build_meta.{call}"
    _run(checkout, sys.executable, "-P", "-c", program, SOURCE_DATE_EPOCH=str(epoch))


def _run(folder: Path, *command: str | Path, **variables: str) -> str:
    done = subprocess.run(
        command, cwd=folder, env={**os.environ, **variables}, capture_output=True, text=True, check=False
    )
    if done.returncode:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr or done.stdout}")
    return done.stdout


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main(*, check: bool) -> None:
    """Build the release, or exit with a line for each obstacle."""
    if obstacles := find_obstacles():
        sys.exit("\n".join(obstacles))
    if check:
        return
    version = read_version()
    out = ROOT / "dist" / version
    shutil.rmtree(out, ignore_errors=True)
    build(ROOT, out)
    with TemporaryDirectory() as temporary:
        build(ROOT, again := Path(temporary) / "again")
        different = [
            each.name for each in sorted(again.iterdir()) if _digest(each) != _digest(out / each.name)
        ]
    if different:
        sys.exit(f"built twice, these are not the same: {', '.join(different)}")
    for each in sorted((ROOT / "build" / "sbom").glob("*.json")):
        shutil.copy(each, out)
    write_sums(out)
    freeze(ROOT, out / f"parley-{version}-contract.binpb")
    sys.stdout.write(
        f"{out.relative_to(ROOT)}: built twice, and the same to the byte\n{(out / 'SHA256SUMS').read_text('utf-8')}"
    )
    sys.stdout.write(
        f"Commit {CONTRACTS}: from now on the contract and the kept logs are compared with it.\n"
    )


if __name__ == "__main__":
    main(check="--check" in sys.argv)
