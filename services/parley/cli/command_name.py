"""The name of this command, as it can be typed here, and lines to type next; hints use them."""

import functools
import os
import shutil
import sys
from pathlib import Path
from typing import Final

COMPLETION_VARIABLE: Final = "_PARLEY_COMPLETE"
"""Set by a shell that asks what could come next."""

_NAME: Final = "parley"


@functools.cache
def command_name() -> str:
    """Return `parley` if that is on PATH, else the path by which this command was started."""
    typed = sys.argv[0]
    if Path(typed).name != _NAME:  # `python -P -m parley.cli`
        return _NAME
    found = shutil.which(_NAME)
    if found is not None and os.path.realpath(found) == os.path.realpath(typed):
        return _NAME
    return typed


def suggest(words: str, server: str | None) -> str:
    """Return `parley WORDS` as it can be typed next: a command that had --server goes on at the same server."""
    return f"{command_name()} {words}" + (f" --server {server}" if server is not None else "")
