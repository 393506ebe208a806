"""Prompt files that a configuration names."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final

__all__ = ["Prompt", "load_prompt"]

MAX_BYTES: Final = 64 * 1024


@dataclass(frozen=True, slots=True)
class Prompt:
    """A prompt's text and the absolute path it was read from."""

    text: str
    source: str


def load_prompt(folder: Path, written: str) -> Prompt | str:
    """Return the prompt at a path taken from `folder`, or in one line why there is none."""
    try:
        path = (folder / written).resolve()
        data = path.read_bytes()
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return f"{written} is not UTF-8"
    except (OSError, ValueError) as error:
        return f"{written} cannot be read: {getattr(error, 'strerror', None) or error}"
    if not text.strip():
        return f"{written} is blank"
    if len(data) > MAX_BYTES or "\0" in text:
        return (
            f"{written} is longer than {MAX_BYTES // 1024} KiB"
            if "\0" not in text
            else f"{written} is not text"
        )
    return Prompt(text, str(path))
