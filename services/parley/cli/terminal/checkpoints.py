"""Checkpoints as texts: what the user is asked, the commands that answer, and the answers."""

from collections.abc import Iterable, Iterator
from typing import Final

from msgspec import Struct

from parley.cli.command_name import suggest
from parley.cli.terminal.words import to_line
from parley.runtime.printable import printable_line
from parley.runtime.work_words import utc_time_text
from parley.v1.debate_pb2 import Debate, Intervention, Question, Waiting
from parley.v1.event_pb2 import CheckpointClosed, CheckpointOpened

_SHOWN: Final = 300
"""Characters shown of a text that may be a whole document."""


class Checkpoint(Struct, frozen=True):
    """An open checkpoint: its key, and what is asked there, from the event that opened it or from the debate."""

    key: str
    opened: CheckpointOpened | Waiting


def answer_hint(debate_id: str, checkpoint: Checkpoint, server: str | None) -> str:
    """Return `parley continue ID --checkpoint KEY (or guide, end)`: the commands that close a checkpoint of its kind."""
    at = f" --checkpoint {checkpoint.key}"
    match checkpoint.opened.WhichOneof("request"):
        case "questions":
            return suggest(f"answer {debate_id} TEXT{at}", server) + " (or continue)"
        case "approval":
            return suggest(f"approve {debate_id}{at}", server) + " (with --no: it is not approved)"
        case "direction":
            return suggest(f"continue {debate_id}{at}", server) + " (or guide, end)"
        case _:  # a kind of a later version
            return suggest(f"continue {debate_id}{at}", server) + " (or answer, approve, guide, end)"


def opened_text(opened: CheckpointOpened) -> str:
    """Return `waiting for a person until 14:05:09 UTC to approve: …`."""
    until = f"waiting for a person until {utc_time_text(opened.until)}"
    match opened.WhichOneof("request"):
        case "questions":
            asked = " ".join((opened.questions.text, *_number_questions(opened.questions.questions)))
            return f"{until} to answer: {printable_line(asked)}"
        case "approval":
            return f"{until} to approve: {to_line(opened.approval.text, _SHOWN)}"
        case "direction":
            return f"{until} to say how to go on: {to_line(opened.direction.text, _SHOWN)}"
        case _:
            return until


def clarification_lines(debate: Debate, width: int) -> Iterator[str]:
    """Yield questions and answers below a heading; nothing if there were no questions."""
    if debate.clarifications:
        yield "Clarifications"
    for each in debate.clarifications:
        answers = {given.question_id: given.text for given in each.answer.answers}
        for asked in each.questions.questions:
            yield f"  {to_line(f'{asked.agent_id}: ' * bool(asked.agent_id) + asked.text, width)}"
            if asked.id in answers:
                yield f"    {to_line(answers[asked.id], width)}"
        if each.answer.text:
            yield f"    to all: {to_line(each.answer.text, width)}"
        elif not answers:
            yield "    went on without an answer"


def closed_text(closed: CheckpointClosed) -> str:
    """Return `a person said guide: be brief`."""
    word, text = intervention_texts(closed.intervention)
    return f"a person said {word}: {text}" if text else f"a person said {word}"


def intervention_texts(intervention: Intervention) -> tuple[str, str]:  # noqa: PLR0911 (a case an act)
    """Return the action in a word or two, such as `mute bo`, and the text that came with it, on one line."""
    match act := intervention.WhichOneof("act"):
        case "cancel":
            return act, printable_line(intervention.cancel.reason)
        case "guide":
            return act, printable_line(intervention.guide.text)
        case "mute":
            return f"mute {intervention.mute.agent_id}", ""
        case "unmute":
            return f"unmute {intervention.unmute.agent_id}", ""
        case "continue_debate":
            return "continue", ""
        case "answer":
            answers = (each.text for each in intervention.answer.answers)
            return act, printable_line(" ".join((intervention.answer.text, *answers)))
        case "approve":
            approve = intervention.approve
            return "approve" if approve.approved else "disapprove", printable_line(approve.text)
        case _:
            return act or "something new", ""


def _number_questions(questions: Iterable[Question]) -> Iterable[str]:
    for number, each in enumerate(questions, 1):
        yield f"({number}) {f'{each.agent_id}: ' if each.agent_id else ''}{each.text}"
