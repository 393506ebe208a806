"""The commands that steer a debate: interventions, sent to the system that runs it."""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

import grpc
from msgspec import Struct

from parley.cli.command_name import command_name, suggest
from parley.cli.commands.checkpoint_prompts import ask_questions, send_answers
from parley.cli.commands.connection import Connection, connect_orchestrator, find_debate_id
from parley.cli.errors import GENERAL, INVALID_ARGUMENTS, CommandError
from parley.cli.person import can_ask
from parley.cli.printing import print_line
from parley.cli.terminal.words import ENDED
from parley.client import ParleyClient, ParleyError
from parley.v1.debate_pb2 import DEBATE_STATUS_PAUSED, Debate, Question

_ARGUMENTS: Final = {
    "intervention.guide.text": "TEXT ",
    "intervention.answer.text": "TEXT ",
    "intervention.approve.text": "TEXT ",
    "intervention.cancel.reason": "REASON ",
    "intervention.checkpoint": "--checkpoint: ",
}
"""The command line's names for the fields of an intervention."""

Intervention = Callable[[ParleyClient, str], Awaitable[int | None]]
"""Intervenes in the debate with an id and returns the sequence of the event that records it; None: there was nothing to do."""


async def intervene(server: str | None, debate_id: str, recorded: str, intervention: Intervention) -> None:
    """Intervene in a debate and print which event records it; `recorded` describes the intervention. Raise CommandError."""
    sequence, _ = await _send(server, debate_id, intervention)
    _print_recorded(sequence, recorded)


async def pause_debate(server: str | None, debate_id: str, *, stop_calls: bool) -> None:
    """Pause a debate that is not paused yet, and print which event records it. Raise CommandError."""

    async def pause(parley: ParleyClient, found: str) -> int | None:
        if (await parley.get_summary(found)).status == DEBATE_STATUS_PAUSED:
            return None
        return await parley.pause(found, stop_calls=stop_calls)

    sequence, _ = await _send(server, debate_id, pause)
    if sequence is None:
        again = suggest(f"resume {debate_id}", server)
        print_line(f"Nothing recorded: the debate is paused already; to go on: {again}")
    else:
        _print_recorded(sequence, f"pause; calls in flight are {'stopped' if stop_calls else 'waited for'}")


async def resume_debate(server: str | None, debate_id: str) -> None:
    """Resume a debate in the system that runs, and print its address. Raise CommandError."""
    sequence, link = await _send(server, debate_id, lambda parley, found: parley.resume(found))
    where = f"at {link.orchestrator}" if not link.own else "where a Parley runs on its store"
    _print_recorded(sequence, f"resume; the debate goes on {where}")


def _print_recorded(sequence: int | None, recorded: str) -> None:
    print_line(f"Recorded as event {sequence}: {recorded}")


async def _send(
    server: str | None, debate_id: str, intervention: Intervention
) -> tuple[int | None, Connection]:
    async with connect_orchestrator(server) as (link, parley):
        found = await find_debate_id(parley, debate_id)
        if link.alone:
            raise await _explain_no_system(parley, found)
        try:
            return await intervention(parley, found), link
        except ParleyError as error:
            explained = _explain(error)
            if explained is None:
                raise
            raise explained from None


async def _explain_no_system(parley: ParleyClient, debate_id: str) -> CommandError:
    """Return the error if no system runs that could act on an intervention."""
    if (await parley.get_summary(debate_id)).status in ENDED:
        return CommandError(f"debate {debate_id} has ended")
    return CommandError(
        f"no Parley runs on this machine; start one with: {command_name()} up, "
        f"or go on with the debate: {command_name()} debate --resume {debate_id}"
    )


def _explain(error: ParleyError) -> CommandError | None:
    if error.code == grpc.StatusCode.INVALID_ARGUMENT and error.violations:
        bad = (f"{_ARGUMENTS.get(each.field, '')}{each.description}" for each in error.violations)
        return CommandError("; ".join(bad), INVALID_ARGUMENTS)
    if error.code == grpc.StatusCode.DEADLINE_EXCEEDED:
        return CommandError(
            "no Parley has acted on this yet; it is recorded, and takes effect as soon as a Parley runs the debate"
        )
    return None


class AnswerOptions(Struct, frozen=True):
    """The answers on the command line.

    Attributes:
        text: The answer to all questions together.
        answers: Number or id of a question, and the answer to it.
        checkpoint: Its key; empty for the one that is open.
    """

    text: str | None
    answers: Sequence[tuple[str, str]]
    enough: bool
    checkpoint: str


def answer_questions(given: AnswerOptions) -> Callable[[ParleyClient, str], Awaitable[int]]:
    """Return the intervention that answers a debate's questions. Raise CommandError if there is no answer and no terminal."""
    if given.text is None and not given.answers and not can_ask():
        raise CommandError(
            "give TEXT, or --to QUESTION TEXT; there is no terminal to ask on", INVALID_ARGUMENTS
        )

    async def answer(parley: ParleyClient, debate_id: str) -> int:
        if given.text is not None and not given.answers:
            return await parley.answer(
                debate_id, given.text, enough=given.enough, checkpoint=given.checkpoint
            )
        debate = await parley.get_summary(debate_id)
        key, questions = _find_questions(debate, given.checkpoint)
        if given.text is None and not given.answers:
            typed = await ask_questions(debate, questions)
            return await send_answers(parley, debate_id, key, typed)
        answers = {_find_question_id(name, questions): text for name, text in given.answers}
        text = given.text or ""
        return await parley.answer(debate_id, text, answers=answers, enough=given.enough, checkpoint=key)

    return answer


def _find_questions(debate: Debate, wanted: str) -> tuple[str, Sequence[Question]]:
    waiting = debate.waiting
    if waiting.WhichOneof("request") != "questions" or wanted not in {"", waiting.checkpoint}:
        where = f"checkpoint {wanted}" if wanted else "a checkpoint with questions"
        raise CommandError(f"debate {debate.id} does not wait at {where}; nothing was recorded", GENERAL)
    return waiting.checkpoint, waiting.questions.questions


def _find_question_id(name: str, questions: Sequence[Question]) -> str:
    """Return the id of the question with this number or id."""
    for number, each in enumerate(questions, 1):
        if name in {each.id, str(number)}:
            return each.id
    known = ", ".join(f"{number} ({each.id})" for number, each in enumerate(questions, 1))
    raise CommandError(f"--to: there is no question {name!r}; questions: {known}", INVALID_ARGUMENTS)
