"""Interventions in a debate, put to the system that runs it."""

from collections.abc import Awaitable, Callable
from typing import Final

import grpc

from parley.cli.command_name import command_name
from parley.cli.commands.connection import Connection, connect
from parley.cli.commands.find_debate import find_debate_id
from parley.cli.errors import INVALID_ARGUMENTS, CommandError
from parley.cli.printing import print_line
from parley.cli.statuses import ENDED
from parley.client import ParleyClient, ParleyError

__all__ = ["Intervention", "intervene", "resume_debate"]

_PATIENCE: Final = 5.0
_ARGUMENTS: Final = {
    "intervention.guide.text": "TEXT ",
    "intervention.answer.text": "TEXT ",
    "intervention.approve.text": "TEXT ",
    "intervention.cancel.reason": "REASON ",
    "intervention.checkpoint": "--checkpoint: ",
}
"""How the command line calls the fields of an intervention."""

Intervention = Callable[[ParleyClient, str], Awaitable[int]]
"""Intervenes in the debate with an id and returns the sequence of the event that records it."""


async def intervene(server: str | None, debate_id: str, recorded: str, intervention: Intervention) -> None:
    """Intervene in a debate and print which event records it; `recorded` says what was asked. Raise CommandError."""
    sequence, _ = await _send(server, debate_id, intervention)
    _print_recorded(sequence, recorded)


async def resume_debate(server: str | None, debate_id: str) -> None:
    """Have a debate go on in the system that runs, and say where that is. Raise CommandError."""
    sequence, link = await _send(server, debate_id, lambda parley, found: parley.resume(found))
    where = f"at {link.orchestrator}" if not link.own else "where a Parley runs on its store"
    _print_recorded(sequence, f"resume; the debate goes on {where}")


def _print_recorded(sequence: int, recorded: str) -> None:
    print_line(f"Recorded as event {sequence}: {recorded}")


async def _send(server: str | None, debate_id: str, intervention: Intervention) -> tuple[int, Connection]:
    async with (
        connect(server, purpose="records") as link,
        ParleyClient(link.orchestrator, patience=_PATIENCE) as parley,
    ):
        found = await find_debate_id(parley, debate_id)
        if link.alone:
            raise await _no_system_error(parley, found)
        try:
            return await intervention(parley, found), link
        except ParleyError as error:
            explained = _explain(error)
            if explained is None:
                raise
            raise explained from None


async def _no_system_error(parley: ParleyClient, debate_id: str) -> CommandError:
    """Return why nothing can be recorded where no system runs: nobody would act on it."""
    if (await parley.get_summary(debate_id)).status in ENDED:
        return CommandError(f"debate {debate_id} has ended")
    return CommandError(
        f"no Parley runs on this machine to take this up; start one with: {command_name()} up, "
        f"or go on with the debate: {command_name()} debate --resume {debate_id}"
    )


def _explain(error: ParleyError) -> CommandError | None:
    if error.code == grpc.StatusCode.INVALID_ARGUMENT and error.violations:
        bad = (f"{_ARGUMENTS.get(each.field, '')}{each.description}" for each in error.violations)
        return CommandError("; ".join(bad), INVALID_ARGUMENTS)
    if error.code == grpc.StatusCode.DEADLINE_EXCEEDED:
        return CommandError(
            "nobody has taken this up yet; it is kept, and counts as soon as a Parley runs the debate"
        )
    return None
