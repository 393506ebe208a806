"""Python processes that this one starts. None looks for modules in the current folder, which a stranger may have written."""

import os
import sys


def python_command(*arguments: str) -> list[str]:
    """Return the command that runs Python with these arguments and keeps the current folder off its module path.

    PYTHONPATH and packages of the user stay on it: Parley may be installed there.
    """
    return [sys.executable, "-P", *arguments]


def safe_environment() -> dict[str, str]:
    """Return the variables for such a process: what it starts keeps the current folder off its path too."""
    return {**os.environ, "PYTHONSAFEPATH": "1"}
