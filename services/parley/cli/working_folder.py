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
from io import StringIO
from pathlib import Path
from typing import Final

from parley.cli.errors import CONFIGURATION, CommandError
from parley.cli.person import can_ask
from parley.cli.printing import say, say_text
from parley.runtime.printable import printable_line
from parley.runtime.private_files import make_folder
from parley.runtime.regular_files import read_start

TRUST_VARIABLE: Final = "PARLEY_TRUST_CONFIG"
"""If `true`, files of any working directory are trusted. It is never read from `.env`."""

_TRUST_FILE: Final = "parley/trusted.json"
_SHOWN: Final = 20
_refused: Final[set[tuple[str, str]]] = set()
"""What this process need not ask about again: names of files and digests of their content."""
_by_option: ContextVar[bool] = ContextVar("trusted by option", default=False)


@contextmanager
def trust_files() -> Iterator[None]:
    """Trust the files that a command finds in its working directory, as they are, from now on: `--trust-config`."""
    before = _by_option.set(True)
    try:
        yield
    finally:
        _by_option.reset(before)


def is_trusted(path: Path, content: str, reaching: Sequence[str]) -> bool:
    """Return whether a file with this content is trusted; ask the user on a terminal, once, and remember a yes.

    `reaching` lists the settings that need trust. Raise CommandError if the decision cannot be stored.
    """
    if _trusts_everything():
        return True
    name, digest = _identify(path, content)
    known = _read_trusted()
    if known.get(name) == digest:
        return True
    if _by_option.get():
        _remember({**known, name: digest})
        return True
    if (name, digest) in _refused or not can_ask() or not _confirm(path, reaching):
        _refused.add((name, digest))
        return False
    _remember({**known, name: digest})
    return True


def is_known_as_trusted(path: Path, content: str) -> bool:
    """Return whether a file with this content is trusted, without asking or remembering anything."""
    name, digest = _identify(path, content)
    return _trusts_everything() or _by_option.get() or _read_trusted().get(name) == digest


def _trusts_everything() -> bool:
    return os.environ.get(TRUST_VARIABLE, "").strip().lower() in {"1", "true", "yes", "on"}


def _identify(path: Path, content: str) -> tuple[str, str]:
    return str(path.resolve()), hashlib.sha256(content.encode()).hexdigest()


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
_BASE_URL: Final = "OPENAI_BASE_URL"
_NAMES: Final = frozenset({"AZURE_OPENAI_API_KEY", "OPENAI_API_KEY", "OPENROUTER_API_KEY", _BASE_URL})
_PREFIX: Final = "PARLEY_"
_MAX_BYTES: Final = 64 * 1024


def load_dotenv(names: Collection[str] = ()) -> None:
    """Set our variables of `.env`, and those in `names`, unless they are set; print their names to stderr.

    Other variables are ignored, and all of a file that is not trusted: they decide who is asked, for whose account, and how
    Parley runs. Raise CommandError if it cannot be read.
    """
    path = Path(_DOTENV_FILE)
    if not path.exists() or path.is_dir():  # a virtual environment may have that name
        return
    from dotenv import dotenv_values  # heavy: only a folder with the file needs it

    content = _read_dotenv(path)
    taken = {
        name: value
        for name, value in dotenv_values(stream=StringIO(content), interpolate=False).items()
        if value and name not in os.environ and (name in _NAMES or name in names or _is_ours(name))
    }
    if not taken:
        return
    was_refused = _identify(path, content) in _refused
    if not is_trusted(path, content, [_describe_variable(*each) for each in taken.items()]):
        if not was_refused:
            say(
                f"Not read from {_DOTENV_FILE}, which is not trusted: {', '.join(taken)}; read it, then use --trust-config or "
                f"set {TRUST_VARIABLE}=true"
            )
        return
    os.environ.update(taken)
    say(f"Read from {_DOTENV_FILE}: {', '.join(taken)}")


def _read_dotenv(path: Path) -> str:
    try:
        data = read_start(path, _MAX_BYTES + 1)
        if len(data) > _MAX_BYTES:
            raise CommandError(f"{path}: is larger than {_MAX_BYTES // 1024} KiB", CONFIGURATION)
        return data.decode()
    except UnicodeDecodeError:
        raise CommandError(f"{path}: is not UTF-8 text", CONFIGURATION) from None
    except OSError as error:
        raise CommandError(f"{path}: cannot be read: {error.strerror or error}", CONFIGURATION) from None


def _describe_variable(name: str, value: str) -> str:
    """Return in words where questions go with a variable; its name alone if that says nothing about it."""
    if name == _BASE_URL:
        return f"questions go to {value}, by {name}"
    from parley.config.endpoints import describe_key  # heavy, as above

    return describe_key(name)


def _is_ours(name: str) -> bool:
    return name.startswith(_PREFIX) and name.isidentifier() and name != TRUST_VARIABLE
