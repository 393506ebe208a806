"""Prompt files that a configuration names."""

from pathlib import Path
from typing import Final

from msgspec import Struct

from parley.runtime.regular_files import read_start

MAX_BYTES: Final = 64 * 1024


class Prompt(Struct, frozen=True):
    """A prompt's text and the absolute path it was read from."""

    text: str
    source: str


def is_outside(folder: Path, source: str) -> bool:
    """Return whether what was read from an absolute path lies outside the folder; what has no such path came with the file."""
    path = Path(source)
    return path.is_absolute() and not path.is_relative_to(folder.resolve())


def load_prompt(folder: Path, written: str) -> Prompt | str:
    """Return the prompt at a path taken from `folder`, or in one line why there is none."""
    data = b""
    try:
        path = (folder / written).resolve()
        if path.exists() and not path.is_file():
            return f"{written} is no file"
        data = read_start(path, MAX_BYTES + 1)
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return _too_long(written) if len(data) > MAX_BYTES else f"{written} is not UTF-8"
    except (OSError, ValueError) as error:
        return f"{written} cannot be read: {getattr(error, 'strerror', None) or error}"
    if not text.strip():
        return f"{written} is blank"
    if len(data) > MAX_BYTES or "\0" in text:
        return _too_long(written) if "\0" not in text else f"{written} is not text"
    return Prompt(text, str(path))


def _too_long(written: str) -> str:
    return f"{written} is longer than {MAX_BYTES // 1024} KiB"
