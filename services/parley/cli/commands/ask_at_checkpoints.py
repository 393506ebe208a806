"""Asking the person at the terminal what a checkpoint asks, while the debate is followed."""

import asyncio
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Final, Self

import grpc

from parley.cli.commands.put_choices import Action, ask_approval, ask_direction
from parley.cli.commands.put_questions import ask_questions, send_answers
from parley.cli.printing import say
from parley.cli.terminal.checkpoints import Checkpoint
from parley.client import Event, ParleyClient, ParleyError, event_kind

__all__ = ["CheckpointPrompter", "is_known_kind"]

_KNOWN: Final = frozenset({"questions", "direction", "approval"})
_CLOSED: Final = {
    "checkpoint_closed": "Nothing is asked any more: somebody has answered elsewhere.",
    "checkpoint_expired": "Nothing is asked any more: the time to answer is over.",
}
"""What is said to somebody who is being asked, by the kind of event that ends it."""
_STOPPED: Final = "Nothing is asked any more: the debate was stopped."


def is_known_kind(checkpoint: Checkpoint) -> bool:
    """Return whether a checkpoint is of a kind that can be put on a terminal; a later version may have others."""
    return checkpoint.opened.WhichOneof("request") in _KNOWN


class CheckpointPrompter:
    """Puts what open checkpoints ask, one at a time.

    Use it as `async with`; whoever follows the debate tells it of each event before and after it is shown.

    Attributes:
        left: Set where the person leaves a checkpoint by Ctrl-D.
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
        self._checkpoint: Checkpoint | None = None
        self._sends = False
        self._why = ""
        self.left = asyncio.Event()

    async def __aenter__(self) -> Self:
        await self._tasks.__aenter__()
        return self

    async def __aexit__(self, *raised: object) -> None:
        self._stop()
        await self._tasks.__aexit__(*raised)  # type: ignore[arg-type]

    @property
    def active_checkpoint(self) -> Checkpoint | None:
        """The checkpoint at which a person is being asked, or which they have left; None where there is none."""
        is_asking = self._asking is not None and not (self._asking.done() or self._sends)
        return self._checkpoint if is_asking or self.left.is_set() else None

    async def before_event(self, event: Event, checkpoint: Checkpoint | None) -> None:
        """Stop asking, before an event is shown after which another checkpoint is open, or None."""
        if self._checkpoint is None or (checkpoint and checkpoint.key == self._checkpoint.key):
            return
        self._checkpoint = None
        self.left.clear()
        if self._asking is not None and self._stop(_CLOSED.get(event_kind(event), _STOPPED)):
            await asyncio.wait({self._asking})

    def ask_if_open(self, checkpoint: Checkpoint | None) -> None:
        """Ask what an open checkpoint asks, unless that is being asked."""
        if checkpoint is not None and self._checkpoint is None and is_known_kind(checkpoint):
            self._checkpoint, self._sends = checkpoint, False
            self._asking = self._tasks.create_task(self._ask(checkpoint, self._asking))

    def _stop(self, why: str = "") -> bool:
        """Stop asking, and say why; return whether that was of account."""
        if self._asking is None or self._asking.done() or self._sends:
            return False
        self._why = why
        self._asking.cancel()
        return True

    async def _ask(self, checkpoint: Checkpoint, before: asyncio.Task[None] | None) -> None:
        if (
            before is not None
        ):  # it may still be told that its act is recorded, and has the terminal until then
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
        """Return what the person has chosen to do; None where they leave."""
        match checkpoint.opened.WhichOneof("request"):
            case "direction":
                return await ask_direction(checkpoint.opened.direction.text)
            case "approval":
                return await ask_approval(checkpoint.opened.approval.text)
            case _:
                debate = await self._parley.get_summary(self._debate_id)
                answers = await ask_questions(debate, checkpoint.opened.questions.questions)
                return lambda parley, debate_id, key: send_answers(parley, debate_id, key, answers)
