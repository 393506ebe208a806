"""What a debate's log says so far: the fold of its events that people read."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import datetime

from pydantic import TypeAdapter, ValidationError

from parley.orchestrator.envelope import Envelope
from parley.orchestrator.events import (
    CheckpointClosed,
    CheckpointExpired,
    CheckpointOpened,
    Claimed,
    Concluded,
    CorruptEventError,
    DebateCreated,
    DebateFailed,
    Intervened,
    Json,
    Paused,
    Recalled,
    Reply,
    Resumed,
    RoundStarted,
    Solution,
    StepFailed,
    StepStarted,
    StepSucceeded,
    Usage,
    WaitFinished,
    WaitStarted,
    Warned,
    Work,
)
from parley.orchestrator.rows import CANCELLED, COMPLETED, FAILED, PAUSED, PENDING, RUNNING, WAITING
from parley.orchestrator.spec import DebateSpec

__all__ = [
    "FIRST_DRAFT_VOTE",
    "Contribution",
    "DebateState",
    "DraftGroup",
    "Failure",
    "FirstDraftVote",
    "Waiting",
    "advance",
    "fold",
]

FIRST_DRAFT_VOTE = "first-draft-vote"
"""The activity of the step that groups the first drafts."""


@dataclass(frozen=True, slots=True)
class Contribution:
    """An agent's answer as recorded. `attempt` is the one that succeeded, from 1."""

    key: str
    attempt: int
    recorded_at: datetime
    work: Work
    reply: Reply


@dataclass(frozen=True, slots=True)
class Failure:
    """A step whose latest outcome is a failure. `attempt` is the one that failed, from 1."""

    key: str
    attempt: int
    step: StepFailed


@dataclass(frozen=True, slots=True)
class DraftGroup:
    """First drafts that take one position."""

    agents: tuple[str, ...]
    position: str


@dataclass(frozen=True, slots=True)
class FirstDraftVote:
    """How the first drafts group, largest group first. `majority`: more than half of them are in that one."""

    groups: tuple[DraftGroup, ...]
    majority: bool


@dataclass(frozen=True, slots=True)
class Waiting:
    """What a debate waits for: a person at a checkpoint, or else providers; see WaitStarted."""

    message: str
    until: datetime
    checkpoint: str = ""
    reason: str = ""
    agent: str = ""
    phase: str = ""


@dataclass(frozen=True, slots=True)
class DebateState:
    """A debate as its log tells it.

    Attributes:
        status: One of the states in rows.py.
        phase: Of the step started last, such as `round 1 proposal`; empty before the first.
        contributions: Agents' answers, the latest of each step, in the order of the log.
        failures: Steps whose latest outcome is a failure, in the order of the log.
        failure: Why it failed, while the status is FAILED.
        usage: Of every attempt at every step, failed ones too.
        calls: Attempts at agents' steps that have ended.
        current_round: Rounds held or begun.
        wishes: What was wished of the debate, in the order of the log.
        recalled: Ids of the past debates that the agents were shown.
        waiting: What it waits for, while the status is WAITING.
        ended_by: The limit that ended it early, such as `total_timeout`; empty for none.
    """

    debate: str
    spec: DebateSpec
    created_at: datetime
    updated_at: datetime
    last_sequence: int
    status: str = PENDING
    phase: str = ""
    contributions: tuple[Contribution, ...] = ()
    failures: tuple[Failure, ...] = ()
    solution: Solution | None = None
    failure: DebateFailed | None = None
    usage: Usage = field(default_factory=Usage)
    calls: int = 0
    warnings: tuple[str, ...] = ()
    current_round: int = 0
    first_draft_vote: FirstDraftVote | None = None
    wishes: tuple[Intervened, ...] = ()
    recalled: tuple[str, ...] = ()
    waiting: Waiting | None = None
    ended_by: str = ""

    @property
    def ended(self) -> bool:
        """Whether it ended for good, with an answer or by a wish."""
        return self.status in {COMPLETED, CANCELLED}


def fold(events: Iterable[Envelope]) -> DebateState:
    """Return the state that a whole log tells.

    Raises:
        CorruptEventError: the log is empty or does not begin with the debate's creation.
    """
    rest = iter(events)
    first = next(rest, None)
    if first is None or not isinstance(first.payload, DebateCreated):
        raise CorruptEventError("a debate's log begins with its creation, and this one does not")
    begun = DebateState(
        debate=first.debate,
        spec=first.payload.spec,
        created_at=first.time,
        updated_at=first.time,
        last_sequence=first.sequence,
    )
    return advance(begun, rest)


def advance(state: DebateState, events: Iterable[Envelope]) -> DebateState:
    """Return the state after the events that follow it in the log."""
    folding = _Folding(state)
    for event in events:
        folding.take(event)
    return folding.done()


class _Folding:
    """A state while events are folded in: what grows with the log is kept by key, so that each event is cheap."""

    def __init__(self, state: DebateState) -> None:
        self._state = state
        self._contributions = {made.key: made for made in state.contributions}
        self._failures = {failed.key: failed for failed in state.failures}
        self._warnings = list(state.warnings)
        self._wishes = list(state.wishes)
        self._usage, self._calls = state.usage, state.calls
        self._last: Envelope | None = None

    def done(self) -> DebateState:
        last = self._last
        return replace(
            self._state,
            contributions=tuple(self._contributions.values()),
            failures=tuple(self._failures.values()),
            warnings=tuple(self._warnings),
            wishes=tuple(self._wishes),
            usage=self._usage,
            calls=self._calls,
            updated_at=last.time if last else self._state.updated_at,
            last_sequence=last.sequence if last else self._state.last_sequence,
        )

    def take(self, event: Envelope) -> None:
        self._last = event
        match event.payload:
            case StepSucceeded() | StepFailed() as outcome:
                self._take_outcome(event, outcome)
            case StepStarted(work=work):
                self._set(phase=work.phase)
            case RoundStarted(number=number):
                self._set(current_round=max(self._state.current_round, number))
            case Warned(message=message):
                self._warnings.append(message)
            case Intervened() as wish:
                self._wishes.append(wish)
            case Recalled(debates=debates):
                self._set(recalled=debates)
            case (
                WaitStarted() | WaitFinished() | CheckpointOpened() | CheckpointClosed() | CheckpointExpired()
            ):
                self._take_wait(event.key, event.payload)
            case Claimed() | Paused() | Resumed() | DebateFailed() | Concluded():
                self._take_turn(event.payload)
            case _:
                pass

    def _take_outcome(self, event: Envelope, outcome: StepSucceeded | StepFailed) -> None:
        """Let a step's latest outcome stand for it, and count every one."""
        self._contributions.pop(event.key, None)
        self._failures.pop(event.key, None)
        if isinstance(outcome, StepFailed):
            self._failures[event.key] = Failure(event.key, event.attempt, outcome)
            self._count(outcome.usage, by_agent=bool(outcome.work.agent))
        elif outcome.reply is not None:
            made = Contribution(event.key, event.attempt, event.time, outcome.work, outcome.reply)
            self._contributions[event.key] = made
            self._count(outcome.reply.usage, by_agent=True)
        elif outcome.work.activity == FIRST_DRAFT_VOTE:
            self._set(first_draft_vote=_vote(outcome.value))

    def _take_wait(
        self,
        key: str,
        wait: WaitStarted | WaitFinished | CheckpointOpened | CheckpointClosed | CheckpointExpired,
    ) -> None:
        """Wait, or wait no more. A debate that rests meanwhile stays at rest."""
        if self._state.status not in {RUNNING, WAITING}:
            return
        match wait:
            case WaitStarted():
                waiting = Waiting(
                    wait.message, wait.until, reason=wait.reason, agent=wait.agent, phase=wait.phase
                )
                self._set(status=WAITING, waiting=waiting)
            case CheckpointOpened(text=text, until=until):
                self._set(status=WAITING, waiting=Waiting(text, until, checkpoint=key))
            case _:
                self._set(status=RUNNING, waiting=None)

    def _take_turn(self, turn: Claimed | Paused | Resumed | DebateFailed | Concluded) -> None:
        """Move the status. A claim only begins a debate: one that rests or has ended is claimed for its wishes."""
        if self._state.ended:
            return
        match turn:
            case Claimed() if self._state.status == PENDING:
                self._set(status=RUNNING)
            case Resumed():
                self._set(status=RUNNING, failure=None, waiting=None)
            case Paused() if self._state.status != FAILED:
                self._set(status=PAUSED, waiting=None)
            case DebateFailed() as failure:
                self._set(status=FAILED, failure=failure, waiting=None)
            case Concluded(status=status, solution=solution, ended_by=ended_by):
                ended = COMPLETED if status == "completed" else CANCELLED
                self._set(status=ended, solution=solution, ended_by=ended_by, failure=None, waiting=None)

    def _count(self, usage: Usage, *, by_agent: bool) -> None:
        self._usage += usage
        self._calls += by_agent

    def _set(self, **changes: object) -> None:
        self._state = replace(self._state, **changes)  # type: ignore[arg-type]


_VOTE = TypeAdapter(FirstDraftVote)


def _vote(value: Json) -> FirstDraftVote | None:
    """Return the vote that a step recorded, or None where it has a shape that is not known here."""
    try:
        return _VOTE.validate_python(value)
    except ValidationError:
        return None
