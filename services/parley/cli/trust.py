"""Whether files that lie in the working directory may say where keys and questions go.

Whoever clones a repository and runs a command in it has not read its files. So such a file is trusted by name and content, once
for each; what was trusted is remembered in the person's own state folder.
"""

import hashlib
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Final

from parley.cli.errors import CONFIGURATION, CommandError
from parley.cli.person import can_ask
from parley.cli.printing import say_text
from parley.runtime.printable import printable_line
from parley.runtime.private_files import make_folder

__all__ = ["TRUST_VARIABLE", "is_trusted", "trust_files"]

TRUST_VARIABLE: Final = "PARLEY_TRUST_CONFIG"
"""Set to `true`, files of any working directory are trusted. It is never taken from `.env`."""

_FILE: Final = "parley/trusted.json"
_SHOWN: Final = 20
_by_option: ContextVar[bool] = ContextVar("trusted by option", default=False)


@contextmanager
def trust_files() -> Iterator[None]:
    """Trust the files that a command finds in its working directory, as they are, from now on: what `--trust-config` means."""
    before = _by_option.set(True)
    try:
        yield
    finally:
        _by_option.reset(before)


def is_trusted(path: Path, content: bytes, reaching: Sequence[str]) -> bool:
    """Tell whether a file with this content is trusted; ask where somebody sits there, and remember a yes.

    `reaching` is what in it needs trust. Raise CommandError where a yes cannot be remembered though the option asks for it.
    """
    if os.environ.get(TRUST_VARIABLE, "").strip().lower() in {"1", "true", "yes", "on"}:
        return True
    name, digest = str(path.resolve()), _digest(content, reaching)
    known = _read_trusted()
    if known.get(name) == digest:
        return True
    if _by_option.get():
        _remember({**known, name: digest})
        return True
    if not can_ask() or not _confirm(path, reaching):
        return False
    _remember({**known, name: digest})
    return True


def _digest(content: bytes, reaching: Sequence[str]) -> str:
    """Return what is trusted: the content, and where that leads now; a file of the folder may have become a link out of it since."""
    return hashlib.sha256(b"\0".join([content, *(each.encode() for each in reaching)])).hexdigest()


def _confirm(path: Path, reaching: Sequence[str]) -> bool:
    changed = str(path.resolve()) in _read_trusted()
    lines = [
        f"{printable_line(str(path))} lies in this folder{' and has changed' if changed else ''}. It says where keys, questions or files go:",
        *(f"  {printable_line(each)}" for each in reaching[:_SHOWN]),
        *([f"  and {len(reaching) - _SHOWN} more"] if len(reaching) > _SHOWN else []),
        "Do you know this file, and trust it from now on as it is? [y/N] ",
    ]
    say_text("\n".join(lines))
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _trust_file() -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / _FILE


def _read_trusted() -> Mapping[str, str]:
    try:
        found = json.loads(_trust_file().read_text("utf-8"))
    except (OSError, ValueError, RecursionError):
        return {}
    return found if isinstance(found, dict) else {}


def _remember(trusted: Mapping[str, str]) -> None:
    store = _trust_file()
    part = store.with_suffix(f".{os.getpid()}")
    try:
        make_folder(store.parent)
        descriptor = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with open(descriptor, "w", encoding="utf-8") as file:  # noqa: PTH123 (a descriptor)
            json.dump(trusted, file, indent=1)
        part.replace(store)
    except OSError as error:
        raise CommandError(
            f"{store}: what is trusted cannot be written: {error.strerror or error}", CONFIGURATION
        ) from None
