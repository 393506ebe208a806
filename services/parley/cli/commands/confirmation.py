"""Asking the user before something is gone for good."""

from typing import Final

from parley.cli.errors import GENERAL, INVALID_ARGUMENTS, CommandError
from parley.cli.person import ask, can_ask
from parley.cli.printing import say

_YES: Final = frozenset({"y", "yes"})


async def confirm(what: str, asked: str, otherwise: str) -> None:
    """Say what would be done, ask, and return if the user says yes.

    Raise CommandError without a terminal, and with `otherwise` after any other answer.
    """
    if not can_ask():
        raise CommandError("there is no terminal to confirm on; use --yes", INVALID_ARGUMENTS)
    say(what)
    answer = await ask(asked)
    if (answer or "").casefold() not in _YES:
        raise CommandError(otherwise, GENERAL)
