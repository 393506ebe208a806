"""Clarifications need a person: they are refused where nobody can be asked."""

import sys

from parley.cli.errors import INVALID_ARGUMENTS, CommandError
from parley.cli.person import is_terminal
from parley.config import ConfigFile

__all__ = ["check_clarifications"]


def check_clarifications(found: ConfigFile | None, clarify: bool | None) -> None:  # noqa: FBT001 (the option)
    """Refuse clarifications, asked for by the option or else by the file, without a terminal. Raise CommandError."""
    of_file = clarify is None and found is not None and bool(found.debate.interactive_clarifications)
    if not (clarify or of_file):
        return
    missing = [
        name for name, stream in (("stdin", sys.stdin), ("stderr", sys.stderr)) if not is_terminal(stream)
    ]
    if not missing:
        return
    why = f"the agents ask on a terminal, and {' and '.join(missing)} {'is' if len(missing) == 1 else 'are'} none"
    if found is not None and of_file:
        place = found.places.of("debate.interactive_clarifications")
        raise CommandError(f"{place}: {why}; --no-clarify begins without asking", INVALID_ARGUMENTS)
    raise CommandError(f"--clarify: {why}; leave it out to begin without asking", INVALID_ARGUMENTS)
