"""Back up a data folder's databases while they are in use, and restore them.

A plain copy of a database file lacks the last writes: they are in a file next to it until SQLite
moves them over. SQLite's online backup reads both, as of one moment.
"""

import hashlib
import json
import os
import shutil
import sqlite3
import tempfile
from collections.abc import Sequence
from contextlib import closing
from pathlib import Path
from typing import Final

from parley.runtime.private_files import make_folder
from parley.storage.ports import StorageError
from parley.storage.sqlite.database import RESTORING

_MANIFEST: Final = "backup.json"
_FORMAT: Final = 1
_SUFFIX: Final = ".db"


def back_up(folder: Path, target: Path, database: str) -> Sequence[str]:
    """Copy every database of a data folder into a new folder; return their names. They may be in use.

    Raises:
        StorageError: there is no `database`, the target exists, or a database cannot be read.
        OSError: the target cannot be written.
    """
    names = sorted(each.name for each in folder.glob(f"*{_SUFFIX}"))
    if not names:
        raise StorageError(f"{folder} holds no database")
    if database not in names:
        raise StorageError(
            f"{folder} holds {', '.join(names)} and no {database}: it is of an earlier Parley, which had a file for each service; that one backs it up"
        )
    _require_new(target)
    make_folder(target.parent)
    with tempfile.TemporaryDirectory(prefix=f".{target.name}.", dir=target.parent) as made:
        part = Path(made, "backup")
        part.mkdir(mode=0o700)
        for name in names:
            _copy(folder / name, part / name)
        files = {name: _digest(part / name) for name in names}
        _write(part / _MANIFEST, json.dumps({"format": _FORMAT, "sha256": files}, indent=2) + "\n")
        part.rename(target)
    return names


def restore(source: Path, folder: Path, database: str) -> Sequence[str]:
    """Put the databases of a backup into a data folder that holds none; return their names.

    The caller holds the folder's lock. Data made from the databases, such as the index of memory, is built again. If the process is
    killed meanwhile, the folder cannot be used until it is restored again.

    Raises:
        StorageError: the source is not a complete backup, has no `database`, or the folder holds databases.
        OSError: the folder cannot be written.
    """
    files = _check_backup(source)
    if database not in files:
        raise StorageError(
            f"{source} is a backup of an earlier Parley, which had a file for each service; that one restores it"
        )
    part = folder / RESTORING
    if part.exists():
        _remove_restored(folder)
    if any(folder.glob(f"*{_SUFFIX}")):
        raise StorageError(
            f"{folder} holds databases already; move it away, or restore into an empty folder that PARLEY_STORE names"
        )
    make_folder(folder)
    part.mkdir(mode=0o700)
    try:
        for name in files:
            _copy(source / name, part / name)
        for name in files:
            (part / name).rename(folder / name)
    except BaseException:
        _remove_restored(folder)
        raise
    part.rmdir()
    return files


def _remove_restored(folder: Path) -> None:
    """Remove what an unfinished restore has put into a folder; it held no database before, and none was opened since."""
    for each in folder.glob(f"*{_SUFFIX}"):
        each.unlink()
    shutil.rmtree(folder / RESTORING)


def _require_new(target: Path) -> None:
    if target.exists():
        raise StorageError(f"{target} already exists; name a new folder")


def _check_backup(source: Path) -> list[str]:
    """Return the names of a backup's databases. Raise StorageError if it is not complete."""
    try:
        listed = json.loads((source / _MANIFEST).read_text("utf-8"))
        known = listed["format"] == _FORMAT
        files = {str(name): str(digest) for name, digest in listed["sha256"].items()}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        raise StorageError(f"{source} is no backup: it has no readable {_MANIFEST}") from None
    if not known:
        raise StorageError(f"{source} is a backup of a newer version of Parley")
    for name, digest in files.items():
        if Path(name).name != name or not name.endswith(_SUFFIX):
            raise StorageError(f"{source} is no backup: it names {name!r}")
        if not (source / name).is_file() or _digest(source / name) != digest:
            raise StorageError(f"{source / name} is missing or not as it was written; take another backup")
    return list(files)


def _copy(source: Path, target: Path) -> None:
    os.close(os.open(target, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600))
    try:
        with (
            closing(sqlite3.connect(f"{source.absolute().as_uri()}?mode=ro", uri=True)) as read,
            closing(sqlite3.connect(target)) as written,
        ):
            read.backup(written)
            written.execute("PRAGMA journal_mode = DELETE")
            (found,) = written.execute("PRAGMA quick_check(1)").fetchone()
    except sqlite3.Error as error:
        raise StorageError(f"{source} cannot be copied: {error}") from error
    if found != "ok":
        raise StorageError(f"{source} is damaged: {found}")
    descriptor = os.open(target, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _digest(file: Path) -> str:
    with file.open("rb") as opened:
        return hashlib.file_digest(opened, "sha256").hexdigest()


def _write(file: Path, text: str) -> None:
    with open(os.open(file, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "w", encoding="utf-8") as opened:  # noqa: PTH123
        opened.write(text)
        opened.flush()
        os.fsync(opened.fileno())
