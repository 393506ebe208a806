"""The name of the code that runs here: what it asked once, it would ask again."""

import os
import sys
from collections.abc import Iterator
from hashlib import blake2b
from pathlib import Path
from typing import Final

import google.protobuf
import pydantic

import parley

_ROOMS: Final = ("orchestrator", "runtime", "v1")
"""The packages of which prompts, and what is read of answers, are made."""


def name_running_code() -> str:
    """Return a name that differs wherever code differs that makes prompts: of another release, and of a file that was edited."""
    return _RUNNING


def name_code(package: Path) -> str:
    """Return the name of the code in a folder. Files go by path, size and time of change: to read all of them takes too long at a start."""
    versions = (sys.version, google.protobuf.__version__, pydantic.VERSION)
    found = sorted(each for room in _ROOMS for each in _list_files(package / room))
    return blake2b(repr((versions, found)).encode(), digest_size=8).hexdigest()


def _list_files(folder: Path) -> Iterator[tuple[str, int, int]]:
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.name == "__pycache__" or entry.name.startswith("."):
                continue
            if entry.is_dir():
                yield from _list_files(Path(entry))
            else:
                state = entry.stat()
                yield f"{folder.name}/{entry.name}", state.st_size, state.st_mtime_ns


_RUNNING: Final = name_code(Path(parley.__file__).parent)
"""Of the files as they are at the start: an edit that comes later is not what runs. And no debate has to wait for the file system."""
