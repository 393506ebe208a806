"""The file `.env` of the working directory: keys that nobody has to export."""

import os
from collections.abc import Collection
from pathlib import Path
from typing import Final

from parley.cli.errors import CONFIGURATION, CommandError
from parley.cli.printing import say
from parley.cli.trust import TRUST_VARIABLE, is_trusted

__all__ = ["load_dotenv"]

_FILE: Final = ".env"
_NAMES: Final = frozenset({"AZURE_OPENAI_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENROUTER_API_KEY"})
_PREFIX: Final = "PARLEY_"
_KEYS: Final = _NAMES - {"OPENAI_BASE_URL"}
"""What harms nobody: a key goes to its own host, whoever wrote it down."""


def load_dotenv(names: Collection[str] = ()) -> None:
    """Set the variables of `.env` that we read, and those in `names`, where they are not set; say which on stderr.

    What else is in the file belongs to others. What says where questions and keys go, or how Parley runs, is left out of a file that
    is not trusted. Raise CommandError for a file that cannot be read.
    """
    path = Path(_FILE)
    if not path.is_file():
        return
    from dotenv import dotenv_values  # heavy: only a folder with the file needs it

    try:
        with path.open(encoding="utf-8") as file:
            given = dotenv_values(stream=file, interpolate=False)
    except UnicodeDecodeError:
        raise CommandError(f"{_FILE}: is not UTF-8 text", CONFIGURATION) from None
    except OSError as error:
        raise CommandError(f"{_FILE}: cannot be read: {error.strerror or error}", CONFIGURATION) from None
    taken = {
        name: value
        for name, value in given.items()
        if value and name not in os.environ and (name in _NAMES or name in names or _is_ours(name))
    }
    reaching = [name for name in taken if name not in _KEYS and name not in names]
    if reaching and not is_trusted(path, path.read_bytes(), reaching):
        say(
            f"Not read from {_FILE}, which is not trusted: {', '.join(reaching)}; read it, and then say --trust-config or set "
            f"{TRUST_VARIABLE}=true"
        )
        taken = {name: value for name, value in taken.items() if name not in reaching}
    if taken:
        os.environ.update(taken)
        say(f"Read from {_FILE}: {', '.join(taken)}")


def _is_ours(name: str) -> bool:
    return name.startswith(_PREFIX) and name.isidentifier() and name != TRUST_VARIABLE
