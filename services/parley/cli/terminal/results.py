"""The answer, the report and the decision of a debate, put where they belong."""

import re
from pathlib import Path
from typing import Final

from parley.cli.errors import CommandError
from parley.cli.printing import say
from parley.cli.terminal.files import write_file, write_new_file
from parley.cli.terminal.message_json import message_to_json
from parley.cli.terminal.remark import summary_line
from parley.cli.terminal.rendered import print_footer, print_markdown
from parley.client import Debate
from parley.runtime.printable import printable
from parley.v1.orchestrator_pb2 import GetDecisionResponse

__all__ = ["write_answer", "write_decision", "write_report"]

_DECISIONS: Final = Path("docs", "decisions")
"""Where decision documents are written, below the working folder."""
_FILE_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,119}\.md")


def write_answer(debate: Debate, output: Path | None) -> None:
    """Print the answer, or write it to the file, and say in a line what it took; print it too where it cannot be written.

    Raise CommandError.
    """
    answer = debate.answer.rstrip("\n") + "\n"
    if output is None:
        print_markdown(answer)
        print_footer(summary_line(debate))
        return
    try:
        write_file(output, message_to_json(debate) if output.suffix.lower() == ".json" else printable(answer))
    except CommandError as error:
        print_markdown(answer)
        raise CommandError(f"--output {error}", error.code) from None
    say(f"Answer: {output}")
    say(summary_line(debate))


def write_report(path: Path, text: str) -> None:
    """Write the report; a failure is only a warning."""
    try:
        write_file(path, printable(text))
    except CommandError as error:
        say(f"warning: --report {error}")
    else:
        say(f"Report: {path}")


def write_decision(decision: GetDecisionResponse) -> None:
    """Write the decision document into its folder and overwrite nothing; a failure is only a warning."""
    if not _FILE_NAME.fullmatch(
        decision.file_name
    ):  # it comes from a server, and must not lead out of the folder
        say(f"warning: the decision was not written: {decision.file_name!r} is no file name for it")
        return
    try:
        path = write_new_file(_DECISIONS / decision.file_name, printable(decision.markdown))
    except CommandError as error:
        say(f"warning: the decision was not written: {error}")
    else:
        say(f"Decision: {path}")
