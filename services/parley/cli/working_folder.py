"""Files of the working directory: the variables of `.env`, and whether a file may say where keys and questions go.

Whoever clones a repository and runs a command in it has not read its files. So such a file is trusted by name and content, once
for each; the user's own state folder stores which files are trusted.
"""

import hashlib
import json
import os
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import Final

from parley.cli.errors import CONFIGURATION, CommandError
from parley.cli.person import can_ask
from parley.cli.printing import say, say_text
from parley.runtime.printable import printable_line
from parley.runtime.private_files import make_folder

TRUST_VARIABLE: Final = "PARLEY_TRUST_CONFIG"
"""If `true`, files of any working directory are trusted. It is never read from `.env`."""

_TRUST_FILE: Final = "parley/trusted.json"
_SHOWN: Final = 20
_by_option: ContextVar[bool] = ContextVar("trusted by option", default=False)


@contextmanager
def trust_files() -> Iterator[None]:
    """Trust the files that a command finds in its working directory, as they are, from now on: `--trust-config`."""
    before = _by_option.set(True)
    try:
        yield
    finally:
        _by_option.reset(before)


def is_trusted(path: Path, content: bytes, reaching: Sequence[str]) -> bool:
    """Return whether a file with this content is trusted; ask the user on a terminal, and remember a yes.

    `reaching` lists the settings that need trust. Raise CommandError if the decision cannot be stored.
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
    """Return the digest of the content and of the settings in it: a file of the folder may later become a link out of it."""
    return hashlib.sha256(b"\0".join([content, *(each.encode() for each in reaching)])).hexdigest()


def _confirm(path: Path, reaching: Sequence[str]) -> bool:
    changed = str(path.resolve()) in _read_trusted()
    lines = [
        f"{printable_line(str(path))} is in this folder{' and has changed' if changed else ''}. It decides where keys, questions or files go:",
        *(f"  {printable_line(each)}" for each in reaching[:_SHOWN]),
        *([f"  and {len(reaching) - _SHOWN} more"] if len(reaching) > _SHOWN else []),
        "Do you know this file and trust it as it is from now on? [y/N] ",
    ]
    say_text("\n".join(lines))
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _trust_file() -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / _TRUST_FILE


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


_DOTENV_FILE: Final = ".env"
_NAMES: Final = frozenset({"AZURE_OPENAI_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENROUTER_API_KEY"})
_PREFIX: Final = "PARLEY_"
_KEYS: Final = _NAMES - {"OPENAI_BASE_URL"}
"""Harmless without trust: a key is sent to its own host only."""


def load_dotenv(names: Collection[str] = ()) -> None:
    """Set our variables of `.env`, and those in `names`, unless they are set; print their names to stderr.

    Other variables are ignored. Those that decide where questions and keys go, or how Parley runs, are ignored if the file
    is not trusted. Raise CommandError if it cannot be read.
    """
    path = Path(_DOTENV_FILE)
    if not path.is_file():
        return
    from dotenv import dotenv_values  # heavy: only a folder with the file needs it

    try:
        with path.open(encoding="utf-8") as file:
            given = dotenv_values(stream=file, interpolate=False)
    except UnicodeDecodeError:
        raise CommandError(f"{_DOTENV_FILE}: is not UTF-8 text", CONFIGURATION) from None
    except OSError as error:
        raise CommandError(
            f"{_DOTENV_FILE}: cannot be read: {error.strerror or error}", CONFIGURATION
        ) from None
    taken = {
        name: value
        for name, value in given.items()
        if value and name not in os.environ and (name in _NAMES or name in names or _is_ours(name))
    }
    reaching = [name for name in taken if name not in _KEYS and name not in names]
    if reaching and not is_trusted(path, path.read_bytes(), reaching):
        say(
            f"Not read from {_DOTENV_FILE}, which is not trusted: {', '.join(reaching)}; read it, then use --trust-config or set "
            f"{TRUST_VARIABLE}=true"
        )
        taken = {name: value for name, value in taken.items() if name not in reaching}
    if taken:
        os.environ.update(taken)
        say(f"Read from {_DOTENV_FILE}: {', '.join(taken)}")


def _is_ours(name: str) -> bool:
    return name.startswith(_PREFIX) and name.isidentifier() and name != TRUST_VARIABLE
