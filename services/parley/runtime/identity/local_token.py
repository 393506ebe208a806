"""The token of a system on this machine: whoever can read its file is accepted, and that is only its user.

A new token is created at every start, so that a file that a killed process left behind is useless. It is in a folder of
this user, under the port that it is for, with the id of the listening process: a client sends it nowhere else.
"""

import hmac
import os
import secrets
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Final

from parley.runtime.errors import ConfigurationError
from parley.runtime.identity.guard import Credentials
from parley.runtime.identity.identity import DEFAULT_TENANT, Identity
from parley.runtime.identity.roles import EVERY_ROLE

LOCAL_USER: Final = Identity(DEFAULT_TENANT, "local", EVERY_ROLE)
"""This machine's user."""
_OTHERS = stat.S_IRWXG | stat.S_IRWXO


class LocalToken:
    """Authentication of this machine's user, who has every role."""

    def __init__(self) -> None:
        self._text = f"local_{secrets.token_urlsafe(32)}"

    async def identify(self, shown: Credentials) -> Identity | None:
        """Return the user's identity if the token matches, else None."""
        if hmac.compare_digest(shown.bearer.encode(), self._text.encode()):
            return LOCAL_USER
        return None

    @contextmanager
    def publish(self, port: int) -> Iterator[None]:
        """Write the token for a port to its file while the block runs.

        Raise ConfigurationError if there is no folder that only this user can enter.
        """
        path = _own_folder() / _name(port)
        content = f"{os.getpid()} {self._text}"
        _write(path, content)
        try:
            yield
        finally:
            if _read(path) == content:  # not the file of a later process
                path.unlink(missing_ok=True)


def find_token(port: int) -> str:
    """Return the token for a port of this machine; empty if no running process of this user wrote one."""
    for folder in _folders():
        if _is_own(folder):
            process, _, text = _read(folder / _name(port)).partition(" ")
            if text and _is_alive(process):
                return text
    return ""


def _is_alive(process: str) -> bool:
    try:
        os.kill(int(process), 0)
    except (ValueError, ProcessLookupError):
        return False
    except PermissionError:  # the id now belongs to another user's process
        return False
    return True


def _name(port: int) -> str:
    return f"{port}.token"


def _folders() -> list[Path]:
    """Return the folders to look in for tokens: the session's own folder first, if there is one."""
    session = os.environ.get("XDG_RUNTIME_DIR")
    shared = Path(tempfile.gettempdir()) / f"parley-{os.geteuid()}"
    return [Path(session) / "parley", shared] if session else [shared]


def _own_folder() -> Path:
    for folder in _folders():
        with suppress(OSError):
            folder.mkdir(mode=0o700, exist_ok=True)
            if _is_own(folder):
                return folder
    folders = " or ".join(map(str, _folders()))
    raise ConfigurationError(
        f"XDG_RUNTIME_DIR: {folders} must be a folder that only you can enter, for the token that authenticates commands; "
        "or set PARLEY_AUTH=none to accept every caller on this machine"
    )


def _is_own(folder: Path) -> bool:
    try:
        found = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and not found.st_mode & _OTHERS


def _write(path: Path, text: str) -> None:
    """Write a file atomically, so that no reader sees half of it."""
    made = path.with_name(f".{path.name}.{os.getpid()}")
    made.unlink(missing_ok=True)
    descriptor = os.open(made, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(descriptor, "w", encoding="ascii") as file:
        file.write(text)
    made.replace(path)


def _read(path: Path) -> str:
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return ""
    with os.fdopen(descriptor, encoding="ascii", errors="replace") as file:
        found = os.fstat(descriptor)
        is_own = found.st_uid == os.geteuid() and not found.st_mode & _OTHERS
        return file.read(256).strip() if is_own else ""
