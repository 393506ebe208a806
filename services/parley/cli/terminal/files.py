"""Result files: paths checked before the work, files written whole or not at all."""

import os
import tempfile
from itertools import count
from pathlib import Path
from typing import Final

from parley.cli.errors import GENERAL, INVALID_ARGUMENTS, CommandError
from parley.runtime.private_files import initial_umask

_FILE: Final = 0o666
_FOLDER: Final = 0o777


def check_output_path(option: str, path: Path) -> None:
    """Raise CommandError if the path cannot be written; leave nothing behind.

    A temporary file is written, since permissions are not enough: the user may be root, the disk read-only or full.
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


def write_file(path: Path, text: str) -> None:
    """Write the whole file or leave the old one; create parent folders. Raise CommandError.

    The user's umask decides who else may read it.
    """
    try:
        _create_folders(path.parent)
        if path.is_dir():
            raise IsADirectoryError(None, "Is a directory")
        if path.exists() and not path.is_file():  # a device or a pipe cannot be replaced
            path.write_text(text, "utf-8")
            return
        _replace(path.resolve(), text)
    except OSError as error:
        raise CommandError(f"{path}: cannot be written: {error.strerror or error}", GENERAL) from None


def write_new_file(path: Path, text: str) -> Path:
    """Write the whole file under this name, or with `-2`, `-3`, … if that is taken; return its path.

    Nothing is overwritten, and nothing is written if one of these files has exactly this text. Raise CommandError.
    """
    for number in count(1):
        chosen = path if number == 1 else path.with_name(f"{path.stem}-{number}{path.suffix}")
        try:
            _create_folders(chosen.parent)
            chosen.open("x").close()  # from now on the name is ours
            chosen.chmod(_FILE & ~initial_umask())
        except FileExistsError:
            if not chosen.parent.is_dir():
                raise CommandError(f"{path}: cannot be written: {chosen.parent} is not a folder") from None
            if _has_text(chosen, text):
                return chosen
        except OSError as error:
            raise CommandError(f"{path}: cannot be written: {error.strerror or error}") from None
        else:
            try:
                write_file(chosen, text)
            except BaseException:
                chosen.unlink(missing_ok=True)
                raise
            return chosen
    raise AssertionError


def _has_text(path: Path, text: str) -> bool:
    try:
        return path.is_file() and path.read_bytes() == text.encode()
    except OSError:
        return False


def _replace(path: Path, text: str) -> None:
    mode = path.stat().st_mode & 0o777 if path.exists() else _FILE & ~initial_umask()
    descriptor, name = tempfile.mkstemp(prefix=f".{path.name}.", dir=path.parent)
    temporary = Path(name)
    try:
        with open(descriptor, "w", encoding="utf-8", newline="") as file:  # noqa: PTH123 (a descriptor)
            file.write(text)
            file.flush()
            os.fchmod(file.fileno(), mode)
            os.fsync(file.fileno())
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _create_folders(path: Path) -> None:
    """Create a folder and its missing parents with the user's umask."""
    for each in (*reversed(path.parents), path):
        if not each.exists():
            each.mkdir(exist_ok=True)
            each.chmod(each.stat().st_mode | _FOLDER & ~initial_umask())  # bits from the parent folder stay
    path.mkdir(exist_ok=True)  # raises if the path exists and is no folder


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
        # as the result will be, before it gets its name
        with tempfile.NamedTemporaryFile(prefix=f".{file.name}.", dir=folder):
            return None
    except PermissionError:
        return f"cannot be written: no permission in {folder}"
