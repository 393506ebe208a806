"""The context documents of a debate, read from a folder or a file."""

import codecs
import os
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from msgspec import Struct

from parley.cli.errors import GENERAL, INVALID_ARGUMENTS, CommandError

MAX_BYTES: Final = 4 * 1024 * 1024
"""The contract's limit for the bytes of all documents together."""
MAX_FILES: Final = 2000
"""The limit for files below a folder, ignored ones included, so that a wrong folder is refused soon."""

_SPARE_BYTES: Final = 8
"""Read beyond the limit: more than a byte order mark and a character that is cut in two."""
_OPTION: Final = "--context"
_MAX_NAME: Final = 1024
_NOT_IN_A_NAME: Final = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
_HIDDEN: Final = "hidden"
_NOT_TEXT: Final = "not UTF-8 text"
_EMPTY: Final = "empty"
_OUTSIDE: Final = "links out of the folder"
_ODD: Final = "no plain file or no plain name"


class Context(Struct, frozen=True):
    """What was read.

    Attributes:
        documents: Path and text of each document, in the order of their paths.
        notice: What was left out, in one line; empty for nothing.
    """

    documents: tuple[tuple[str, str], ...] = ()
    notice: str = ""


def read_context(path: Path) -> Context:
    """Read one file, or the text files below a folder without hidden ones.

    Raise CommandError if it does not exist, has no text or too much, or cannot be read.
    """
    try:
        if not path.exists():
            raise _path_error(path, "there is no such file or folder")
        if path.is_dir():
            return _read_folder(path)
        if not path.is_file():
            raise _path_error(path, "is neither a file nor a folder")
        return Context((_read_file(path),))
    except OSError as error:
        place = f" {error.filename}:" if error.filename and Path(error.filename) != path else ""
        why = error.strerror or error
        raise CommandError(f"{_OPTION} {path}:{place} cannot be read: {why}", GENERAL) from None


def _path_error(path: Path, why: str) -> CommandError:
    return CommandError(f"{_OPTION} {path}: {why}", INVALID_ARGUMENTS)


def _read_file(path: Path) -> tuple[str, str]:
    if not _is_plain_name(path.name):
        raise _path_error(path, "has a name that is not plain text")
    text = _read_text(path, MAX_BYTES)
    if text is None:
        raise _path_error(path, "is not UTF-8 text")
    if not text.strip():
        raise _path_error(path, "is empty")
    if len(text.encode()) > MAX_BYTES:
        raise _too_large_error(path)
    return path.name, text


def _read_folder(folder: Path) -> Context:
    root = folder.resolve()
    left_out = Counter[str]()
    documents: list[tuple[str, str]] = []
    size = 0
    for name, path in sorted(_find_files(folder, root, left_out)):
        text = _read_text(path, MAX_BYTES - size)
        if not text or not text.strip():
            left_out[_NOT_TEXT if text is None else _EMPTY] += 1
            continue
        size += len(text.encode())
        if size > MAX_BYTES:
            raise _too_large_error(folder)
        documents.append((name, text))
    if not documents:
        raise _path_error(folder, f"has no text{f' ({_format_counts(left_out)})' if left_out else ''}")
    notice = (
        f"{_OPTION} {folder}: left out {left_out.total():,} ({_format_counts(left_out)})" if left_out else ""
    )
    return Context(tuple(documents), notice)


def _too_large_error(path: Path) -> CommandError:
    return _path_error(path, f"has more than {MAX_BYTES // 1024 // 1024} MiB of text; name a smaller part")


def _find_files(folder: Path, root: Path, left_out: "Counter[str]") -> Iterator[tuple[str, Path]]:
    """Yield relative path and path of each file that may be read, in any order.

    Links to folders are not followed: files inside of `root` are found under their own paths.
    """
    seen = 0
    for parent, folders, names in os.walk(folder, onerror=_raise):
        seen += len(names)
        if seen > MAX_FILES:
            raise _path_error(folder, f"has more than {MAX_FILES:,} files; name a smaller part")
        left_out.update(_HIDDEN for each in (*folders, *names) if each.startswith("."))
        folders[:] = [each for each in folders if not each.startswith(".")]
        linked = (Path(parent, each) for each in folders if Path(parent, each).is_symlink())
        left_out.update(_OUTSIDE for each in linked if not _is_inside(each, root))
        for path in (Path(parent, each) for each in names if not each.startswith(".")):
            relative = path.relative_to(folder).as_posix()
            if path.is_symlink() and not _is_inside(path, root):
                left_out[_OUTSIDE] += 1
            elif not path.is_file() or not _is_plain_name(relative):
                left_out[_ODD] += 1
            else:
                yield relative, path


def _is_plain_name(name: str) -> bool:
    return len(name) <= _MAX_NAME and not _NOT_IN_A_NAME.search(name)


def _is_inside(path: Path, root: Path) -> bool:
    """Return whether a link leads to a file in `root` that is not hidden."""
    try:
        target = path.resolve(strict=True)
    except (OSError, RuntimeError):  # it leads nowhere, or in a circle
        return False
    if not target.is_relative_to(root):
        return False
    return not any(part.startswith(".") for part in target.relative_to(root).parts)


def _raise(error: OSError) -> None:
    raise error


def _read_text(path: Path, max_bytes: int) -> str | None:
    """Return the text of a file, of which slightly more than `max_bytes` are read; None if it is not text."""
    with path.open("rb") as file:
        data = file.read(max_bytes + _SPARE_BYTES)
    is_cut = len(data) == max_bytes + _SPARE_BYTES
    text = data.removeprefix(codecs.BOM_UTF8)
    if b"\0" in text:
        return None
    try:
        return text.decode()
    except UnicodeDecodeError as error:
        is_cut_character = is_cut and error.reason == "unexpected end of data"
        return text[: error.start].decode() if is_cut_character else None


def _format_counts(left_out: "Counter[str]") -> str:
    return ", ".join(f"{why}: {count:,}" for why, count in sorted(left_out.items()))
