"""Where a result is to be written, checked before the work that it is the result of."""

import os
import tempfile
from pathlib import Path

from parley.cli.errors import INVALID_ARGUMENTS, CommandError

__all__ = ["check_output_path", "report_path"]


def check_output_path(option: str, path: Path) -> None:
    """Refuse a path that could not be written, and leave nothing behind. Raise CommandError.

    What may be written is tried, since permissions do not tell: of root, of a read-only disk, of a full one.
    """
    try:
        problem = _find_obstacle(path)
    except OSError as error:
        problem = f"cannot be written: {error.strerror or error}"
    if problem is not None:
        raise CommandError(f"{option} {path}: {problem}", INVALID_ARGUMENTS)


def report_path(path: Path) -> Path:
    """Return the path with `.md` at its end."""
    return path if path.suffix.lower() == ".md" else path.with_name(f"{path.name}.md")


def _find_obstacle(path: Path) -> str | None:
    if path.is_dir():
        return "is a folder; name a file in it"
    if path.exists() and not path.is_file():  # a device or a pipe
        return None if os.access(path, os.W_OK) else "cannot be written: no permission"
    file = path.resolve()
    folder = next(each for each in file.parents if each.exists())
    if not folder.is_dir():
        return f"cannot be written: {folder} is not a folder"
    try:
        with tempfile.NamedTemporaryFile(
            prefix=f".{file.name}.", dir=folder
        ):  # as the result will be, before it gets its name
            return None
    except PermissionError:
        return f"cannot be written: no permission in {folder}"
