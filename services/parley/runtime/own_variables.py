"""Variables of the environment that this process sets for its own libraries. Programs that it starts do not get them."""

import os
from typing import Final

_own: Final[set[str]] = set()


def set_own_variable(name: str, value: str) -> None:
    """Set a variable for this process alone, unless whoever started the process has set it."""
    if name not in os.environ:
        os.environ[name] = value
        _own.add(name)


def list_inherited() -> dict[str, str]:
    """Return the variables for a program that this process starts."""
    return {name: value for name, value in os.environ.items() if name not in _own}
