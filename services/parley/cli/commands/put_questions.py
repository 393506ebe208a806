"""The questions of a debate, put to the person at the terminal."""

import asyncio
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Final, Self

import grpc

from parley.cli.person import discard_typed, is_terminal, typed
from parley.cli.terminal.checkpoints import Checkpoint
from parley.cli.terminal.say import say
from parley.cli.terminal.words import debaters
from parley.client import ParleyClient, ParleyError
from parley.v1.debate_pb2 import Debate, Question

__all__ = ["Answers", "Questioner", "answered_by_person", "can_be_asked", "send_answers"]

_MAX_ANSWER_BYTES: Final = 8 * 1024
_MAX_LINE_BYTES: Final = 4095
"""What a terminal keeps of a line, its end included: of a longer one, the rest is lost."""


def can_be_asked() -> bool:
    """Return whether somebody at a terminal can be asked: they see stderr and type on stdin."""
    return is_terminal(sys.stdin) and is_terminal(sys.stderr)


@dataclass(frozen=True, slots=True)
class Answers:
    """What a person says to questions.

    Attributes:
        said: By the id of the question; what was skipped is not there.
        enough: Whether nothing more is to be asked.
    """

    said: Mapping[str, str]
    enough: bool


class Questioner:
    """Puts the questions of open checkpoints, one at a time, while the debate is followed.

    Use it as `async with`; whoever follows the debate tells it which checkpoint is open. It stops asking where the
    checkpoint is closed from elsewhere.
    """

    def __init__(
        self, parley: ParleyClient, debate_id: str, aside: Callable[[], AbstractContextManager[None]]
    ) -> None:
        """Ask beside what is shown: `aside` makes room on the terminal."""
        self._parley = parley
        self._debate_id = debate_id
        self._aside = aside
        self._tasks = asyncio.TaskGroup()
        self._asking: asyncio.Task[None] | None = None
        self._key = ""
        self._sends = False

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(self, *raised: object) -> None:
        self._stop()
        await self._tasks.__aexit__(*raised)  # type: ignore[arg-type]

    @property
    def asks(self) -> bool:
        """Whether a person is being asked now."""
        return self._asking is not None and not self._asking.done()

    def see(self, checkpoint: Checkpoint | None) -> None:
        """Ask at this checkpoint, if it has questions; stop where it is closed."""
        key = checkpoint.key if checkpoint is not None else ""
        if self._key and key != self._key:
            if self._stop():
                say("The questions are closed: they were answered elsewhere, or the debate was stopped.")
            self._key = ""
        if (
            checkpoint is not None
            and not self._key
            and checkpoint.opened.WhichOneof("request") == "questions"
        ):
            self._key, self._sends = key, False
            self._asking = self._tasks.create_task(self._ask(key, checkpoint.opened.questions.questions))

    def _stop(self) -> bool:
        """Stop asking; return whether that was of account."""
        if self._asking is None or self._asking.done() or self._sends:
            return False
        self._asking.cancel()
        return True

    async def _ask(self, key: str, questions: Sequence[Question]) -> None:
        with self._aside():
            debate = await self._parley.get(self._debate_id)
            answers = await answered_by_person(debate, questions)
            self._sends = True
            try:
                await send_answers(self._parley, self._debate_id, key, answers)
            except ParleyError as error:
                if error.code != grpc.StatusCode.FAILED_PRECONDITION:
                    raise
                say(f"Not recorded: {error.message}.")


async def answered_by_person(debate: Debate, questions: Sequence[Question]) -> Answers:
    """Put the questions one at a time and return what is typed."""
    names = {agent.id: agent.name for agent in debaters(debate)}
    discard_typed()
    count = f"{len(questions)} questions" if len(questions) > 1 else "a question"
    say(f"The agents have {count}. An empty line skips one, Ctrl-D ends the questions: the debate begins.")
    said: dict[str, str] = {}
    for number, question in enumerate(questions, 1):
        asks = names.get(question.agent_id) or question.agent_id
        text = await _answer(f"{number}/{len(questions)} {asks}{': ' if asks else ''}{question.text}")
        if text is None:
            return Answers(said, enough=True)
        if text:
            said[question.id] = text
    return Answers(said, enough=False)


async def _answer(asked: str) -> str | None:
    """Return what is answered, empty where the question is skipped; None where no more is to be asked."""
    say(asked)
    while True:
        _write("> ")
        text = None
        try:
            text = await typed()
        finally:
            if text is None:  # Ctrl-D, or it was broken off: what comes next begins a line
                _write("\n")
        if text is None:
            return None
        if any(len(line.encode()) >= _MAX_LINE_BYTES for line in text.split("\n")):
            say(
                "That is more than a terminal takes in one line; break it into several and paste them together."
            )
        elif len(text.encode()) > _MAX_ANSWER_BYTES:
            say("That is more than 8 KiB; say it in fewer words.")
        else:
            return text.strip()


async def send_answers(parley: ParleyClient, debate_id: str, key: str, answers: Answers) -> int:
    """Record what a person said, or that they said nothing; return the sequence of the event."""
    if answers.said:
        return await parley.answer(debate_id, answers=answers.said, enough=answers.enough, checkpoint=key)
    return await parley.go_on(debate_id, checkpoint=key)


def _write(text: str) -> None:
    sys.stderr.write(text)
    sys.stderr.flush()
