"""What this command is called where it is run, so that hints can be typed as they stand."""

import functools
import os
import shutil
import sys
from pathlib import Path
from typing import Final

__all__ = ["COMPLETION_VARIABLE", "command_name"]

COMPLETION_VARIABLE: Final = "_PARLEY_COMPLETE"
"""Set by a shell that asks what could come next."""

_NAME: Final = "parley"


@functools.cache
def command_name() -> str:
    """Return `parley` where that is found on PATH, else the path it was typed by."""
    typed = sys.argv[0]
    if Path(typed).name != _NAME:  # `python -m parley.cli`
        return _NAME
    found = shutil.which(_NAME)
    if found is not None and os.path.realpath(found) == os.path.realpath(typed):
        return _NAME
    return typed
