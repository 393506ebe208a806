"""The debate that is meant by the beginning of its id."""

from typing import Final

from parley.cli.command_name import command_name
from parley.cli.errors import INVALID_ARGUMENTS, CommandError
from parley.client import ParleyClient
from parley.runtime.validation import DEBATE_ID

__all__ = ["find_debate_id"]

_MAX_NAMED: Final = 3


async def find_debate_id(parley: ParleyClient, written: str) -> str:
    """Return the id that begins as written; a whole one as it stands. Raise CommandError unless it is one debate's."""
    if DEBATE_ID.fullmatch(written):
        return written
    found = [each.id async for each in parley.list() if each.id.startswith(written)]
    if len(found) == 1:
        return found[0]
    if not found:
        raise CommandError(f"no debate's id begins with {written}; {command_name()} list shows them")
    named = ", ".join(found[:_MAX_NAMED]) + (", …" if len(found) > _MAX_NAMED else "")
    raise CommandError(f"ids of {len(found)} debates begin with {written}: {named}", INVALID_ARGUMENTS)
