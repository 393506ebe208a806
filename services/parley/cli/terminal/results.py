"""The results of a debate or an evaluation, printed or written to files: answer, report, decision, scores."""

import csv
import io
import re
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Final

from parley.cli.errors import CommandError
from parley.cli.person import is_terminal
from parley.cli.printing import print_text, say
from parley.cli.terminal.account import news_lines, summary_line
from parley.cli.terminal.files import write_file, write_new_file
from parley.cli.terminal.markdown import print_footer, print_markdown
from parley.cli.terminal.message_json import json_value, message_to_json, to_json
from parley.cli.terminal.words import enum_text
from parley.client import Debate
from parley.runtime.printable import printable
from parley.v1.evaluation_pb2 import EvaluationDimension, EvaluationOutcome
from parley.v1.orchestrator_pb2 import GetDecisionResponse

_DECISIONS: Final = Path("docs", "decisions")
"""The folder of decision documents, below the working folder."""
_FILE_NAME: Final = re.compile(r"[a-z0-9][a-z0-9-]{0,119}\.md")


def write_answer(debate: Debate, output: Path | None, approved: str = "") -> None:
    """Print the answer, or write it to the file, and print a summary line and what is new; if the file cannot be written, print the answer too.

    Print it no second time below the text with it that the user has just `approved` on this terminal. Raise CommandError.
    """
    answer = debate.answer.rstrip("\n") + "\n"
    if output is None:
        is_above = is_terminal(sys.stdout) and debate.outcome.description.strip() in approved
        if not (approved and is_above):
            print_markdown(answer)
        print_footer(summary_line(debate), *news_lines(debate))
        return
    try:
        write_file(output, message_to_json(debate) if output.suffix.lower() == ".json" else _page(answer))
    except CommandError as error:
        print_markdown(answer)
        raise CommandError(f"--output {error}", error.code) from None
    say(f"Answer: {output}")
    for line in (summary_line(debate), *news_lines(debate)):
        say(line)


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
    # the server chose the name, which must not lead out of the folder
    if not _FILE_NAME.fullmatch(decision.file_name):
        say(f"warning: the decision was not written: {decision.file_name!r} is no file name for it")
        return
    try:
        path = write_new_file(_DECISIONS / decision.file_name, printable(decision.markdown))
    except CommandError as error:
        say(f"warning: the decision was not written: {error}")
    else:
        say(f"Decision: {path}")


_HEAD: Final = ("debate", "evaluation", "evaluator", "dimension", "score", "reason")
_AVERAGE: Final = "(average)"
_OVERALL: Final = "overall"
_FORMULA_SIGNS: Final = ("=", "+", "-", "@", "＝", "＋", "－", "＠")  # noqa: RUF001 (spreadsheets of Asia take the wide ones)


def write_evaluation(evaluation: Debate, form: str, output: Path | None) -> None:
    """Print the evaluation as `markdown`, `json` or `csv`, or write it to the file. Raise CommandError.

    If it cannot be written, it is printed.
    """
    text = _text(evaluation, form)
    if output is None:
        _print(text, form)
        if form == "markdown":
            print_footer(summary_line(evaluation))
        return
    try:
        write_file(output, _page(text) if form == "markdown" else text)
    except CommandError as error:
        _print(text, form)
        raise CommandError(f"--output {error}", error.code) from None
    say(f"Evaluation: {output}")
    say(summary_line(evaluation))


def csv_text(evaluation: Debate) -> str:
    """Return a row for each evaluator and dimension, then one for each average, as RFC 4180 has it.

    A missing score is an empty cell. A text that a spreadsheet would read as a formula begins with an apostrophe.
    """
    written = io.StringIO()
    # where `;` separates, a text must not begin a cell either
    rows = csv.writer(written, quoting=csv.QUOTE_ALL)
    rows.writerow(_HEAD)
    outcome = evaluation.outcome.evaluation
    for row in (*_score_rows(outcome), *_average_rows(outcome)):
        rows.writerow(map(_cell, (outcome.debate_id, evaluation.id, *row)))
    return written.getvalue()


def _text(evaluation: Debate, form: str) -> str:
    if form == "csv":
        return csv_text(evaluation)
    if form == "json":
        return to_json({"id": evaluation.id, **json_value(evaluation.outcome.evaluation)})
    return evaluation.answer.rstrip("\n") + "\n"


def _page(text: str) -> str:
    """Return Markdown for a file, which other programs show: without what the terminal does not show either."""
    # It comes with all names of HTML, and most debates write no file.
    from parley.runtime.safe_markdown import to_safe_page

    return f"{to_safe_page(printable(text))}\n"


def _print(text: str, form: str) -> None:
    if form == "markdown":
        print_markdown(text)
    else:
        print_text(text)


def _score_rows(outcome: EvaluationOutcome) -> Iterator[Sequence[str]]:
    for evaluator in outcome.evaluators:
        given = {each.dimension: each for each in evaluator.scores}
        for dimension in _dimensions():
            score = given.get(dimension)
            shown = f"{score.score:g}" if score is not None else ""
            yield evaluator.agent_id, _name(dimension), shown, score.reason if score is not None else ""
        yield evaluator.agent_id, _OVERALL, f"{evaluator.overall:.2f}", ""


def _average_rows(outcome: EvaluationOutcome) -> Iterator[Sequence[str]]:
    averages = {each.dimension: each.average for each in outcome.averages}
    for dimension in _dimensions():
        average = averages.get(dimension)
        yield _AVERAGE, _name(dimension), "" if average is None else f"{average:.2f}", ""
    yield _AVERAGE, _OVERALL, f"{outcome.overall:.2f}", ""


def _dimensions() -> list[EvaluationDimension.ValueType]:
    return [number for number in EvaluationDimension.values() if number]


def _name(dimension: EvaluationDimension.ValueType) -> str:
    return enum_text(EvaluationDimension.DESCRIPTOR, dimension)


def _cell(text: str) -> str:
    """Return a cell that no spreadsheet reads as a formula and no terminal as control characters."""
    shown = printable(text)
    return f"'{shown}" if shown.lstrip().startswith(_FORMULA_SIGNS) else shown
