"""The command that answers a debate's questions: from the command line, or at the terminal."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass

from parley.cli.commands.put_questions import ask_questions, send_answers
from parley.cli.errors import GENERAL, INVALID_ARGUMENTS, CommandError
from parley.cli.person import can_ask
from parley.client import ParleyClient
from parley.v1.debate_pb2 import Debate, Question

__all__ = ["AnswerOptions", "answer_questions"]


@dataclass(frozen=True, slots=True)
class AnswerOptions:
    """What the command line says.

    Attributes:
        text: To the questions as a whole.
        answers: Question, by number or id, and text.
        checkpoint: Key; empty for whichever is open.
    """

    text: str | None
    answers: Sequence[tuple[str, str]]
    enough: bool
    checkpoint: str


def answer_questions(given: AnswerOptions) -> Callable[[ParleyClient, str], Awaitable[int]]:
    """Return what answers a debate's questions. Raise CommandError where nobody says anything."""
    if given.text is None and not given.answers and not can_ask():
        raise CommandError(
            "give TEXT, or --to QUESTION TEXT; without a terminal nobody can be asked", INVALID_ARGUMENTS
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
    """Return the id of the question that is meant by its number or its id."""
    for number, each in enumerate(questions, 1):
        if name in {each.id, str(number)}:
            return each.id
    known = ", ".join(f"{number} ({each.id})" for number, each in enumerate(questions, 1))
    raise CommandError(f"--to: there is no question {name!r}; questions: {known}", INVALID_ARGUMENTS)
