"""What a checkpoint asks, put to the user at the terminal while the debate is followed."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Final, Self

import grpc
from msgspec import Struct

from parley.cli.person import ask, discard_input
from parley.cli.printing import say, say_line
from parley.cli.terminal.checkpoints import Checkpoint
from parley.cli.terminal.markdown import show_markdown
from parley.cli.terminal.words import debating_agents
from parley.client import Event, ParleyClient, ParleyError, event_kind
from parley.v1.debate_pb2 import Debate, Question

Action = Callable[[ParleyClient, str, str], Awaitable[int]]
"""Carries out what the user chose, in the debate with an id at the checkpoint with a key; returns the sequence of its event."""

_DIRECTIONS: Final = {"continue": "c", "guide": "g", "end": "e"}
_APPROVALS: Final = {"approve": "a", "yes": "a", "y": "a", "refuse": "r", "no": "r", "n": "r"}


async def ask_direction(text: str) -> Action | None:
    """Show the state of the debate, and return the action that the user chooses; None for Ctrl-D."""
    _show(text)
    while True:
        choice = await _ask_choice("[C]ontinue  [G]uide  [E]nd early", _DIRECTIONS)
        if choice != "g":
            return {"c": _continue, "e": _end}.get(choice or "")
        guidance = await ask("Your guidance:")
        if guidance:
            return lambda parley, debate_id, key: parley.guide(debate_id, guidance, checkpoint=key)
        say("No guidance was given.")


async def ask_approval(text: str) -> Action | None:
    """Show the text to approve, and return the action that the user chooses; None for Ctrl-D."""
    _show(text)
    while True:
        choice = await _ask_choice("[A]pprove  [R]efuse", _APPROVALS)
        if choice != "r":
            return _approve if choice == "a" else None
        why = await ask("Why, or what should change? An empty line says nothing, Ctrl-D goes back.")
        if why is not None:
            return lambda parley, debate_id, key: parley.approve(
                debate_id, why, approved=False, checkpoint=key
            )


async def _continue(parley: ParleyClient, debate_id: str, key: str) -> int:
    return await parley.continue_debate(debate_id, checkpoint=key)


async def _end(parley: ParleyClient, debate_id: str, key: str) -> int:
    return await parley.end_rounds(debate_id, checkpoint=key)


async def _approve(parley: ParleyClient, debate_id: str, key: str) -> int:
    return await parley.approve(debate_id, checkpoint=key)


def _show(text: str) -> None:
    discard_input()
    show_markdown(text)


async def _ask_choice(choices: str, words: Mapping[str, str]) -> str | None:
    """Return the letter of the choice that is typed, by its letter or a word for it; None for Ctrl-D."""
    letters = {*words.values()}
    asked = choices
    while True:
        say_line(asked)  # unchanged, with two spaces between choices
        typed = await ask("")
        if typed is None:
            return None
        letter = words.get(typed.lower(), typed.lower())
        if letter in letters:
            return letter
        asked = f"Type a letter: {choices}"


class Answers(Struct, frozen=True):
    """The user's answers to questions.

    Attributes:
        texts: By the id of the question, without skipped questions.
        enough: Whether nothing more is to be asked.
    """

    texts: Mapping[str, str]
    enough: bool


async def ask_questions(debate: Debate, questions: Sequence[Question]) -> Answers:
    """Ask the questions one at a time and return the answers."""
    names = {agent.id: agent.name for agent in debating_agents(debate)}
    moderator = debate.spec.judge.agent.id
    is_moderators = bool(moderator) and all(each.agent_id == moderator for each in questions)
    who = "The moderator has" if is_moderators else "The agents have"
    discard_input()
    count = f"{len(questions)} questions" if len(questions) > 1 else "a question"
    say(f"{who} {count}. An empty line skips one, Ctrl-D ends the questions: the debate begins.")
    answers: dict[str, str] = {}
    for number, question in enumerate(questions, 1):
        asks = "" if is_moderators else names.get(question.agent_id) or question.agent_id
        text = await ask(f"{number}/{len(questions)} {asks}{': ' if asks else ''}{question.text}")
        if text is None:
            return Answers(answers, enough=True)
        if text:
            answers[question.id] = text
    return Answers(answers, enough=False)


async def send_answers(parley: ParleyClient, debate_id: str, key: str, answers: Answers) -> int:
    """Send the answers, or that there are none; return the sequence of the event."""
    if answers.texts:
        return await parley.answer(debate_id, answers=answers.texts, enough=answers.enough, checkpoint=key)
    return await parley.continue_debate(debate_id, checkpoint=key)


_KNOWN: Final = frozenset({"questions", "direction", "approval"})
_CLOSED: Final = {
    "checkpoint_closed": "No answer is needed any more: the checkpoint was answered elsewhere.",
    "checkpoint_expired": "No answer is needed any more: the time to answer is over.",
}
"""The message to the user if an event of this kind ends the prompt."""
_STOPPED: Final = "No answer is needed any more: the debate was stopped."


def is_known_kind(checkpoint: Checkpoint) -> bool:
    """Return whether this version can ask what the checkpoint asks; a later one may have more kinds."""
    return checkpoint.opened.WhichOneof("request") in _KNOWN


class CheckpointPrompter:
    """Asks the user what open checkpoints ask, one at a time.

    Use it as `async with`. The follower calls it for each event, before and after the event is shown.

    Attributes:
        left: Set if the user leaves a checkpoint by Ctrl-D.
        approved: The text that the user approved; empty if there is none.
    """

    def __init__(
        self, parley: ParleyClient, debate_id: str, aside: Callable[[], AbstractContextManager[None]]
    ) -> None:
        """Ask while the debate is shown; `aside` releases the terminal."""
        self._parley = parley
        self._debate_id = debate_id
        self._aside = aside
        self._tasks = asyncio.TaskGroup()
        self._asking: asyncio.Task[None] | None = None
        self._checkpoint: Checkpoint | None = None
        self._sends = False
        self._why = ""
        self.left = asyncio.Event()
        self.approved = ""

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(self, *raised: object) -> None:
        self._stop()
        await self._tasks.__aexit__(*raised)  # type: ignore[arg-type]

    @property
    def active_checkpoint(self) -> Checkpoint | None:
        """The checkpoint at which the user is being asked, or which they have left; None if there is none."""
        is_asking = self._asking is not None and not (self._asking.done() or self._sends)
        return self._checkpoint if is_asking or self.left.is_set() else None

    async def before_event(self, event: Event, checkpoint: Checkpoint | None) -> None:
        """Stop asking if the checkpoint is no longer the open one after this event, which is not shown yet."""
        if self._checkpoint is None or (checkpoint and checkpoint.key == self._checkpoint.key):
            return
        self._checkpoint = None
        self.left.clear()
        if self._asking is not None and self._stop(_CLOSED.get(event_kind(event), _STOPPED)):
            await asyncio.wait({self._asking})

    def ask_if_open(self, checkpoint: Checkpoint | None) -> None:
        """Ask what the open checkpoint asks, unless the user is being asked already."""
        if checkpoint is not None and self._checkpoint is None and is_known_kind(checkpoint):
            self._checkpoint, self._sends = checkpoint, False
            self._asking = self._tasks.create_task(self._ask(checkpoint, self._asking))

    def _stop(self, why: str = "") -> bool:
        """Stop asking, and say why; return False if the user was not being asked."""
        if self._asking is None or self._asking.done() or self._sends:
            return False
        self._why = why
        self._asking.cancel()
        return True

    async def _ask(self, checkpoint: Checkpoint, before: asyncio.Task[None] | None) -> None:
        if before is not None:  # it may still be printing, and has the terminal until then
            await asyncio.wait({before})
        with self._aside():
            try:
                act = await self._ask_for_action(checkpoint)
            except asyncio.CancelledError:
                if self._why:
                    say(self._why)
                raise
            if act is None:
                self.left.set()
                return
            self._sends = True
            try:
                await act(self._parley, self._debate_id, checkpoint.key)
            except ParleyError as error:
                if error.code != grpc.StatusCode.FAILED_PRECONDITION:
                    raise
                say(f"Not recorded: {error.message}.")

    async def _ask_for_action(self, checkpoint: Checkpoint) -> Action | None:
        """Return the action that the user chooses; None if they leave."""
        match checkpoint.opened.WhichOneof("request"):
            case "direction":
                return await ask_direction(checkpoint.opened.direction.text)
            case "approval":
                text = checkpoint.opened.approval.text
                action = await ask_approval(text)
                self.approved = text if action is _approve else ""
                return action
            case _:
                debate = await self._parley.get_summary(self._debate_id)
                answers = await ask_questions(debate, checkpoint.opened.questions.questions)
                return lambda parley, debate_id, key: send_answers(parley, debate_id, key, answers)
