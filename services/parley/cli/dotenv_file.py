"""The file `.env` of the working directory: keys that nobody has to export."""

import os
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Final

from parley.cli.errors import CONFIGURATION, CommandError

__all__ = ["take_dotenv"]

_FILE: Final = ".env"
_NAMES: Final = frozenset({"AZURE_OPENAI_API_KEY", "OPENAI_API_KEY", "OPENAI_BASE_URL", "OPENROUTER_API_KEY"})
_PREFIX: Final = "PARLEY_"


def take_dotenv(names: Collection[str] = ()) -> None:
    """Set the variables of `.env` that we read, and those in `names`, where they are not set; say which on stderr.

    What else is in the file belongs to others. Raise CommandError for a file that cannot be read.
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
        if value and name not in os.environ and (name in _NAMES or name in names or name.startswith(_PREFIX))
    }
    if taken:
        os.environ.update(taken)
        sys.stderr.write(f"Read from {_FILE}: {', '.join(taken)}\n")
        sys.stderr.flush()
