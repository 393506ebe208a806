"""The answer and the report of a debate, put where they were asked for."""

from pathlib import Path

from parley.cli.errors import CommandError
from parley.cli.terminal.files import write_file
from parley.cli.terminal.message_json import json_text
from parley.cli.terminal.remark import remark
from parley.cli.terminal.rendered import print_markdown, print_remark
from parley.cli.terminal.say import say
from parley.client import Debate

__all__ = ["put_answer", "write_report"]


def put_answer(debate: Debate, output: Path | None) -> None:
    """Print the answer, or write it to the file, and say in a line what it took; print it too where it cannot be written.

    Raise CommandError.
    """
    answer = debate.answer.rstrip("\n") + "\n"
    if output is None:
        print_markdown(answer)
        print_remark(remark(debate))
        return
    try:
        write_file(output, json_text(debate) if output.suffix.lower() == ".json" else answer)
    except CommandError as error:
        print_markdown(answer)
        raise CommandError(f"--output {error}", error.code) from None
    say(f"Answer: {output}")
    say(remark(debate))


def write_report(path: Path, text: str) -> None:
    """Write the report; a failure is only a warning."""
    try:
        write_file(path, text)
    except CommandError as error:
        say(f"warning: --report {error}")
    else:
        say(f"Report: {path}")
