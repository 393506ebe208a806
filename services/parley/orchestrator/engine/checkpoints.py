"""Checkpoints: what is put to a person, which interventions close which kind, and the wait for them."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import timedelta
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

from parley.orchestrator.engine.call_admission import Slot
from parley.orchestrator.engine.steps import wait_or_timeout
from parley.orchestrator.log.envelope import Draft
from parley.orchestrator.log.index import RUNNING, WAITING
from parley.orchestrator.log.journal import Journal
from parley.orchestrator.model.errors import CheckpointExpiredError
from parley.orchestrator.model.times import time_of, timestamp
from parley.runtime.clock import Clock
from parley.v1.debate_pb2 import Approval, Direction, Questions
from parley.v1.event_pb2 import CheckpointClosed, CheckpointOpened

__all__ = [
    "ACTS_FOR_CHECKPOINT",
    "CLOSING_ACTS",
    "OWNED_WAIT_SECONDS",
    "CheckpointRequest",
    "Checkpoints",
    "NotifyStatus",
    "closes",
    "opened_event",
]

NotifyStatus = Callable[[str], Awaitable[None]]
"""Notes a debate's status in the index."""

CheckpointRequest = Questions | Direction | Approval
"""What is put to a person."""

OWNED_WAIT_SECONDS: Final = 5.0
"""How long an owner stays with a debate that waits for a person: whoever sits there may answer at once."""

_CLOSED_BY: Final[Mapping[str, frozenset[str]]] = {
    "questions": frozenset({"answer", "continue_debate"}),
    "direction": frozenset({"continue_debate", "guide", "end"}),
    "approval": frozenset({"approve"}),
}
CLOSING_ACTS: Final = frozenset().union(*_CLOSED_BY.values())
"""Acts that may close a checkpoint."""
ACTS_FOR_CHECKPOINT: Final = frozenset({"continue_debate", "answer", "approve"})
"""Those of them that mean nothing without one."""


def opened_event(request: CheckpointRequest, until: Timestamp) -> CheckpointOpened:
    """Return the event that puts a request to a person."""
    match request:
        case Questions():
            return CheckpointOpened(until=until, questions=request)
        case Direction():
            return CheckpointOpened(until=until, direction=request)
        case Approval():
            return CheckpointOpened(until=until, approval=request)


def closes(act: str, checkpoint: CheckpointOpened) -> bool:
    """Return whether an act closes a checkpoint."""
    return act in _CLOSED_BY.get(checkpoint.WhichOneof("request") or "", ())


class Checkpoints:
    """The checkpoints of one debate, between the format that waits at them and the owner who hears of interventions.

    Attributes:
        left_alone: Set once a person, and nothing else, has been waited for so long that no owner need stay for it.
    """

    def __init__(self, journal: Journal, clock: Clock, slot: Slot, tell_status: NotifyStatus) -> None:
        """Stand on a journal that is being written; the slot is given back during a wait."""
        self.unattended = asyncio.Event()
        self._journal = journal
        self._recorded = journal.recorded
        self._clock = clock
        self._slot = slot
        self._notify_status = tell_status
        self._closed: dict[str, asyncio.Event] = {}
        self._decided: set[str] = set()

    async def open_and_wait(self, key: str, request: CheckpointRequest, seconds: float) -> CheckpointClosed:
        """Open a checkpoint unless it is recorded, wait so long until it is closed, and return how.

        Raises:
            CheckpointExpiredError: nobody came.
        """
        recorded = self._recorded
        if key not in recorded.checkpoints:
            closed = self._closed.setdefault(key, asyncio.Event())
            if key not in recorded.open_checkpoints:
                until = timestamp(self._clock.now() + timedelta(seconds=seconds))
                await self._journal.append(Draft(key, opened_event(request, until), recorded.attempt))
            await self._notify_status(WAITING)
            if key not in recorded.checkpoints:
                with self._slot.free_while_asking():
                    await self._wait(key, closed)
            if not recorded.open_checkpoints:
                await self._notify_status(RUNNING)
        return recorded.checkpoints[key]

    async def _wait(self, key: str, closed: asyncio.Event) -> None:
        until = time_of(self._recorded.open_checkpoints[key].until)
        while (left := (until - self._clock.now()).total_seconds()) > OWNED_WAIT_SECONDS:
            if await wait_or_timeout(closed, self._clock, OWNED_WAIT_SECONDS):
                return
            if self._slot.only_waits_for_person and self._clock.now() < until:
                self.unattended.set()
        if not await wait_or_timeout(closed, self._clock, left):
            if key not in self._decided:
                self._decided.add(key)
                raise CheckpointExpiredError(key)
            await closed.wait()  # somebody has just come, and that is being recorded

    def claim_for(self, act: str, wanted: str = "", answered: frozenset[str] = frozenset()) -> str | None:
        """Return the open checkpoint that an act closes, so that it cannot expire any more; None for none.

        With `wanted`, it is that one or none. It asks all questions that are `answered`, which are ids. Whoever takes it
        records how it was closed, and says so with `notify_closed`.
        """
        for key, asked in self._find_open(act, wanted):
            if answered <= asked:
                self._decided.add(key)
                return key
        return None

    def question_ids(self, act: str, wanted: str = "") -> frozenset[str] | None:
        """Return the ids of the questions that an act may answer; None where no checkpoint is open that it closes."""
        together = [asked for _, asked in self._find_open(act, wanted)]
        return frozenset[str]().union(*together) if together else None

    def was_opened(self, key: str) -> bool:
        """Whether a person was or is waited for there."""
        return key in self._recorded.open_checkpoints or key in self._recorded.checkpoints

    def is_open(self, key: str) -> bool:
        """Whether a person is waited for there."""
        return key in self._recorded.open_checkpoints and key not in self._decided

    def _find_open(self, act: str, wanted: str) -> Iterator[tuple[str, frozenset[str]]]:
        for key, checkpoint in self._recorded.open_checkpoints.items():
            if key not in self._decided and wanted in ("", key) and closes(act, checkpoint):
                yield key, frozenset(question.id for question in checkpoint.questions.questions)

    def notify_closed(self, key: str) -> None:
        """Let the format go on, now that the log holds how a checkpoint was closed."""
        if key in self._closed:
            self._closed[key].set()
