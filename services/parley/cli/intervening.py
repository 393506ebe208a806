"""Wishes about a debate, put to the system that runs it."""

import sys
from collections.abc import Awaitable, Callable
from typing import Final

import grpc

from parley.cli.failures import INVALID_ARGUMENTS, CommandError
from parley.cli.naming import command
from parley.cli.system import Link, connected
from parley.client import ParleyClient, ParleyError
from parley.v1.orchestrator_pb2 import DEBATE_STATUS_CANCELLED, DEBATE_STATUS_COMPLETED

__all__ = ["Wish", "resume", "steer"]

_PATIENCE: Final = 5.0
_ENDED: Final = frozenset({DEBATE_STATUS_COMPLETED, DEBATE_STATUS_CANCELLED})
_ARGUMENTS: Final = {
    "guide.text": "TEXT ",
    "answer.text": "TEXT ",
    "approve.text": "TEXT ",
    "cancel.reason": "REASON ",
    "checkpoint": "--checkpoint: ",
}
"""How the command line calls the fields of a wish."""

Wish = Callable[[ParleyClient], Awaitable[int]]
"""Puts a wish to a debate and returns the sequence of the event that records it."""


async def steer(server: str | None, debate_id: str, recorded: str, wish: Wish) -> None:
    """Puts a wish to a debate and prints which event records it; `recorded` says what was wished. Raises CommandError."""
    sequence, _ = await _recorded(server, debate_id, wish)
    _tell(sequence, recorded)


async def resume(server: str | None, debate_id: str) -> None:
    """Has a debate go on in the system that runs, and says where that is. Raises CommandError."""
    sequence, link = await _recorded(server, debate_id, lambda parley: parley.resume(debate_id))
    where = f"at {link.orchestrator}" if not link.own else "where a Parley runs on its store"
    _tell(sequence, f"resume; the debate goes on {where}")


def _tell(sequence: int, recorded: str) -> None:
    sys.stdout.write(f"Recorded as event {sequence}: {recorded}\n")


async def _recorded(server: str | None, debate_id: str, wish: Wish) -> tuple[int, Link]:
    async with (
        connected(server, purpose="records") as link,
        ParleyClient(link.orchestrator, patience=_PATIENCE) as parley,
    ):
        if link.alone:
            raise await _refusal(parley, debate_id)
        try:
            return await wish(parley), link
        except ParleyError as error:
            explained = _explained(error)
            if explained is None:
                raise
            raise explained from None


async def _refusal(parley: ParleyClient, debate_id: str) -> CommandError:
    """Why nothing can be wished where no system runs: whatever was recorded, nobody would act on it."""
    if (await parley.get(debate_id)).status in _ENDED:
        return CommandError(f"debate {debate_id} has ended")
    return CommandError(
        f"no Parley runs on this machine to take this up; start one with: {command()} up, "
        f"or go on with the debate: {command()} debate --resume {debate_id}"
    )


def _explained(error: ParleyError) -> CommandError | None:
    if error.code == grpc.StatusCode.INVALID_ARGUMENT and error.violations:
        bad = (f"{_ARGUMENTS.get(each.field, '')}{each.description}" for each in error.violations)
        return CommandError("; ".join(bad), INVALID_ARGUMENTS)
    if error.code == grpc.StatusCode.DEADLINE_EXCEEDED:
        return CommandError(
            "nobody has taken this up yet; it is kept, and counts as soon as a Parley runs the debate"
        )
    return None
