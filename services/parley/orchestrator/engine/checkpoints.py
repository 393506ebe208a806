"""Checkpoints: the requests to a person, the interventions that close each kind, and the wait for them."""

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from datetime import timedelta
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

from parley.orchestrator.engine.call_admission import Slot
from parley.orchestrator.log.debate_record import RUNNING, WAITING
from parley.orchestrator.log.envelope import create_event
from parley.orchestrator.log.journal import Journal
from parley.orchestrator.model.errors import CheckpointExpiredError
from parley.orchestrator.model.times import time_of, timestamp
from parley.runtime.clock import Clock, wait_or_timeout
from parley.v1.debate_pb2 import Approval, Direction, Questions
from parley.v1.event_pb2 import CheckpointClosed, CheckpointOpened

NotifyStatus = Callable[[str], Awaitable[None]]
"""Writes a debate's status to the index."""

CheckpointRequest = Questions | Direction | Approval
"""A request to a person."""

OWNED_WAIT_SECONDS: Final = 5.0
"""How long an owner keeps a debate that waits for a person, who may answer at once."""

_CLOSED_BY: Final[Mapping[str, frozenset[str]]] = {
    "questions": frozenset({"answer", "continue_debate"}),
    "direction": frozenset({"continue_debate", "guide", "end"}),
    "approval": frozenset({"approve"}),
}
CLOSING_ACTS: Final = frozenset().union(*_CLOSED_BY.values())
"""The acts that may close a checkpoint."""
ACTS_FOR_CHECKPOINT: Final = frozenset({"continue_debate", "answer", "approve"})
"""The acts that are refused without an open checkpoint."""


def opened_event(request: CheckpointRequest, until: Timestamp) -> CheckpointOpened:
    """Return the event that opens a checkpoint with a request."""
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
    """The checkpoints of one debate, between the format that waits at them and the owner that receives interventions.

    Attributes:
        unattended: Set once the debate has waited only for a person for so long that it needs no owner.
    """

    def __init__(self, journal: Journal, clock: Clock, slot: Slot, notify_status: NotifyStatus) -> None:
        """Use a journal whose writer runs. The slot is freed during a wait."""
        self.unattended = asyncio.Event()
        self._journal = journal
        self._recorded = journal.recorded
        self._clock = clock
        self._slot = slot
        self._notify_status = notify_status
        self._closed: dict[str, asyncio.Event] = {}
        self._decided: set[str] = set()

    async def open_and_wait(self, key: str, request: CheckpointRequest, seconds: float) -> CheckpointClosed:
        """Open a checkpoint unless it is recorded. Wait until it is closed, and return how.

        Raise CheckpointExpiredError if it was not closed within `seconds`.
        """
        recorded = self._recorded
        has_to_wait = key not in recorded.checkpoints
        if has_to_wait:
            closed = self._closed.setdefault(key, asyncio.Event())
            if key not in recorded.open_checkpoints:
                until = timestamp(self._clock.now() + timedelta(seconds=seconds))
                await self._journal.append(create_event(key, opened_event(request, until), recorded.attempt))
            await self._notify_status(WAITING)
            if key not in recorded.checkpoints:
                with self._slot.free_while_asking():
                    await self._wait(key, closed)
        # It may have been closed before the wait began, or before the format came here.
        await self._journal.write_outcomes()
        if has_to_wait and not recorded.open_checkpoints:
            await self._notify_status(RUNNING)
        return recorded.checkpoints[key]

    async def _wait(self, key: str, closed: asyncio.Event) -> None:
        # Read once: a clock that is set while the owner waits must not end the wait.
        until = time_of(self._recorded.open_checkpoints[key].until)
        due = self._clock.monotonic() + (until - self._clock.now()).total_seconds()
        while (left := due - self._clock.monotonic()) > OWNED_WAIT_SECONDS:
            if await wait_or_timeout(closed, self._clock, OWNED_WAIT_SECONDS):
                return
            if self._slot.only_waits_for_person and self._clock.monotonic() < due:
                self.unattended.set()
        if not await wait_or_timeout(closed, self._clock, left):
            if key not in self._decided:
                self._decided.add(key)
                raise CheckpointExpiredError(key)
            await closed.wait()  # a person has just closed it, and that is being recorded

    def claim_for(self, act: str, checkpoint: str, answered: frozenset[str]) -> str | None:
        """Return the key of the open checkpoint that an act closes, or None. The checkpoint cannot expire any more.

        If `checkpoint` is given, only that one counts. It must ask all questions with the ids `answered`. The caller
        records how it was closed, then calls `notify_closed`.
        """
        for key, asked in self._find_open(act, checkpoint):
            if answered <= asked:
                self._decided.add(key)
                return key
        return None

    def question_ids(self, act: str, checkpoint: str = "") -> frozenset[str] | None:
        """Return the ids of the questions that an act may answer; None if it closes no open checkpoint."""
        asked = [ids for _, ids in self._find_open(act, checkpoint)]
        return frozenset[str]().union(*asked) if asked else None

    def was_opened(self, key: str) -> bool:
        """Return whether the checkpoint is or was open."""
        return key in self._recorded.open_checkpoints or key in self._recorded.checkpoints

    def is_open(self, key: str) -> bool:
        """Return whether the checkpoint waits for a person now."""
        return key in self._recorded.open_checkpoints and key not in self._decided

    def _find_open(self, act: str, only: str) -> Iterator[tuple[str, frozenset[str]]]:
        for key, checkpoint in self._recorded.open_checkpoints.items():
            if key not in self._decided and only in ("", key) and closes(act, checkpoint):
                yield key, frozenset(question.id for question in checkpoint.questions.questions)

    def notify_closed(self, key: str) -> None:
        """Let the format continue: the log now records how the checkpoint was closed."""
        if key in self._closed:
            self._closed[key].set()
