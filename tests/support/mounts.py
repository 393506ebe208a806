"""Small disks and read-only ones, where this machine lets a test mount any."""

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import pytest


def mount(*arguments: str) -> None:
    """Call `mount`; skip the test where it may not."""
    ended = subprocess.run(["mount", *arguments], capture_output=True, text=True, check=False)
    if ended.returncode != 0:
        pytest.skip(f"NOT TRIED, since nothing can be mounted here: {ended.stderr.strip()}")


@contextmanager
def mount_for_block(folder: Path, *arguments: str) -> Iterator[None]:
    """Mount something on a folder while the block runs."""
    mount(*arguments, str(folder))
    try:
        yield
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(folder: Path) -> Path:
    """Leave no room on a folder's disk; return the file that takes it."""
    path = folder / "fill"
    with path.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"\0" * 4096)
    return path
