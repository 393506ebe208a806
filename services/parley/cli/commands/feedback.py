"""The command that says of a finished debate whether it was good."""

from typing import Final

import grpc

from parley.cli.commands.connection import connect
from parley.cli.commands.find_debate import find_debate_id
from parley.cli.errors import INVALID_ARGUMENTS, CommandError
from parley.cli.printing import print_line, print_text
from parley.cli.terminal.debate_overview import feedback_text
from parley.cli.terminal.message_json import json_value, to_json
from parley.client import ParleyClient, ParleyError

__all__ = ["submit_feedback"]

_PATIENCE: Final = 5.0


async def submit_feedback(
    server: str | None, debate_id: str, value: int, message: str, *, as_json: bool
) -> None:
    """Record a word on a debate and print what is recorded. Raise CommandError."""
    async with (
        connect(server, purpose="ratings") as link,
        ParleyClient(link.orchestrator, patience=_PATIENCE) as parley,
    ):
        found = await find_debate_id(parley, debate_id)
        try:
            feedback = await parley.submit_feedback(found, value, message)
        except ParleyError as error:
            if error.code == grpc.StatusCode.INVALID_ARGUMENT and error.violations:
                bad = (f"--{each.field}: {each.description}" for each in error.violations)
                raise CommandError("; ".join(bad), INVALID_ARGUMENTS) from None
            raise
    if as_json:
        print_text(to_json({"debate_id": found, **json_value(feedback)}))
    else:
        print_line(f"Recorded for {found}: {feedback_text(feedback)}")
