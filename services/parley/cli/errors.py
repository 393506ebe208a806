"""The errors of a command: a line on stderr and an exit code."""

from typing import Final

GENERAL: Final = 1
INVALID_ARGUMENTS: Final = 2
PROVIDER_FAILED: Final = 3
CONFIGURATION: Final = 4
INTERRUPTED: Final = 130


class CommandError(Exception):
    """The command cannot go on; the message is for its user.

    `more` are further errors that can be fixed at the same time, a line each.
    """

    def __init__(self, message: str, code: int = GENERAL, more: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.code = code
        self.more = more
