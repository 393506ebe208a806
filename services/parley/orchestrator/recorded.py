"""What a debate's log already holds, looked up by key: the memory that makes running again the same as resuming."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from parley.orchestrator.envelope import Envelope
from parley.orchestrator.events import (
    CheckpointClosed,
    CheckpointExpired,
    CheckpointOpened,
    Closed,
    Concluded,
    ControlSeen,
    DebateCreated,
    DebateFailed,
    Intervened,
    LimitReached,
    Paused,
    Resumed,
    RoundStarted,
    StepFailed,
    StepStarted,
    StepSucceeded,
    WaitFinished,
    WaitStarted,
)
from parley.orchestrator.limits import ROUND_TIMEOUT, TOTAL_TIMEOUT, Mode, RunningTime, Spent

__all__ = ["Outcome", "Recorded", "Wishes"]

Outcome = StepSucceeded | StepFailed


@dataclass(frozen=True, slots=True)
class Wishes:
    """The wishes that a format goes on with: guidance in order, who is muted, whether the rounds are to end."""

    guidance: tuple[str, ...] = ()
    muted: frozenset[str] = frozenset()
    end: bool = False


@dataclass(slots=True)
class Recorded:
    """A fold of a debate's events for its owner.

    Attributes:
        outcomes: The latest outcome of each step and its attempt.
        started: Digest of each step and attempt that was started.
        notes: Keys of the events that follow from steps.
        seen: For each look at the wishes, the sequence it went up to.
        retried: Steps whose recorded failure is void, since the debate was resumed after failing on them.
        pausing: Whether a pause is wished and not yet undone.
        paused: Whether the debate came to rest for it.
        attempt: Times the debate was begun or resumed.
        time: How long it has been worked on.
        marks: What `time.working` was when a round began or a limit of one was reached, by the event's key.
        spent: What its calls used.
        ending: The limit that lets nothing new begin but the answer; empty for none.
        late: Steps that a limit was reached for and whose failure is not recorded yet, with that limit.
        answering: Whether the answer was asked for.
        wait: The wait for providers that goes on.
        waits: Times that providers were waited for; `waited`: seconds of that by phase.
        open_checkpoints: Those a person is waited for at, in the order they were opened.
        checkpoints: How the others were ended.
    """

    created: DebateCreated | None = None
    outcomes: dict[str, tuple[int, Outcome]] = field(default_factory=dict)
    started: dict[tuple[str, int], str] = field(default_factory=dict)
    notes: set[str] = field(default_factory=set)
    seen: dict[str, int] = field(default_factory=dict)
    interventions: dict[str, tuple[int, Intervened]] = field(default_factory=dict)
    retried: set[str] = field(default_factory=set)
    failure: DebateFailed | None = None
    pausing: bool = False
    paused: bool = False
    concluded: Concluded | None = None
    concluded_at: datetime | None = None
    closed: bool = False
    attempt: int = 1
    time: RunningTime = field(default_factory=RunningTime)
    marks: dict[str, float] = field(default_factory=dict)
    spent: Spent = field(default_factory=Spent)
    ending: str = ""
    late: dict[str, str] = field(default_factory=dict)
    answering: bool = False
    wait: WaitStarted | None = None
    waits: int = 0
    waited: dict[str, float] = field(default_factory=dict)
    open_checkpoints: dict[str, CheckpointOpened] = field(default_factory=dict)
    checkpoints: dict[str, CheckpointClosed] = field(default_factory=dict)
    _ending_sequence: int = 0

    @classmethod
    def of(cls, events: Iterable[Envelope]) -> "Recorded":
        """Fold events into a new memory."""
        recorded = cls()
        recorded.take(events)
        return recorded

    def take(self, events: Iterable[Envelope], at: float | None = None) -> None:
        """Fold more events in. `at`: when they were recorded, by the monotonic clock of the owner that did so just now."""
        for event in events:
            self.time.pass_on(event.epoch, event.time.timestamp() if at is None else at)
            self._take(event)
            self.time.mode = self._mode()

    def wishes(self, through: int) -> Wishes:
        """Return the wishes recorded up to a sequence."""
        made = [wish for sequence, wish in self.interventions.values() if sequence <= through]
        return Wishes(
            guidance=tuple(wish.text for wish in made if wish.wish == "guide"),
            muted=frozenset(wish.agent for wish in made if wish.wish == "mute"),
            end=any(wish.wish == "end" for wish in made) or 0 < self._ending_sequence <= through,
        )

    def wishes_through(self) -> int:
        """Return the sequence of the latest event that wishes are made of."""
        latest = max((sequence for sequence, _ in self.interventions.values()), default=0)
        return max(latest, self._ending_sequence)

    def unfinished(self) -> list[tuple[str, int]]:
        """Return the steps and attempts that were started and have no outcome."""
        ended = {key: attempt for key, (attempt, _) in self.outcomes.items()}
        return [(key, attempt) for key, attempt in self.started if attempt > ended.get(key, 0)]

    def _take(self, event: Envelope) -> None:
        match event.payload:
            case DebateCreated() as created:
                self.created = created
            case StepStarted(work=work, digest=digest):
                self.started[event.key, event.attempt] = digest
                self.answering = self.answering or work.activity == "synthesis"
            case StepSucceeded() | StepFailed() as outcome:
                self.outcomes[event.key] = (event.attempt, outcome)
                self.spent.add(outcome)
                self.retried.discard(event.key)
                self.late.pop(event.key, None)
            case ControlSeen(through=through):
                self.seen[event.key] = through
            case Intervened() as wish:
                self.interventions[wish.request_id] = (event.sequence, wish)
                self.pausing = self.pausing or wish.wish == "pause"
            case Paused() | Resumed() | DebateFailed() | Concluded() | Closed() as turn:
                self._turn(turn, event)
            case WaitStarted() | WaitFinished() as wait:
                self._take_wait(wait)
            case CheckpointOpened() | CheckpointClosed() | CheckpointExpired() as checkpoint:
                self._take_checkpoint(event.key, checkpoint)
            case _:
                self._note(event)

    def _note(self, event: Envelope) -> None:
        self.notes.add(event.key)
        if isinstance(event.payload, RoundStarted | LimitReached):
            self.marks[event.key] = self.time.working
        if isinstance(event.payload, LimitReached):
            self.late.update(dict.fromkeys(event.payload.late, event.payload.limit))
            if event.payload.limit != ROUND_TIMEOUT:
                self.ending, self._ending_sequence = event.payload.limit, event.sequence

    def _take_wait(self, wait: WaitStarted | WaitFinished) -> None:
        if isinstance(wait, WaitStarted):
            self.wait = wait
            self.waits += 1
            self.waited[wait.phase] = wait.waited + wait.seconds
        elif self.wait is not None:
            self.retried.update(self.wait.steps)
            self.wait = None

    def _take_checkpoint(
        self, key: str, checkpoint: CheckpointOpened | CheckpointClosed | CheckpointExpired
    ) -> None:
        if isinstance(checkpoint, CheckpointOpened):
            self.open_checkpoints[key] = checkpoint
        elif key in self.open_checkpoints:
            del self.open_checkpoints[key]
            if isinstance(checkpoint, CheckpointClosed):
                self.checkpoints[key] = checkpoint
            else:
                self.pausing = True

    def _turn(self, turn: Paused | Resumed | DebateFailed | Concluded | Closed, event: Envelope) -> None:
        match turn:
            case Paused():
                self.paused = True
            case DebateFailed() as failure:
                self.failure = failure
            case Resumed():
                self._resume()
                self.attempt = event.attempt
            case Concluded() as concluded:
                self.concluded, self.concluded_at = concluded, event.time
            case Closed():
                self.closed = True

    def _resume(self) -> None:
        if self.paused or self.failure is not None:
            self.open_checkpoints.clear()  # they are opened again, with the whole of their time
        if self.wait is not None:
            self._take_wait(WaitFinished())
        if self.failure is not None:
            self._resume_from(self.failure)
        self.failure = None
        self.pausing = self.paused = False

    def _resume_from(self, failure: DebateFailed) -> None:
        """Try again what the debate failed on; its time limits begin anew."""
        self.retried.update(failure.steps)
        self.time.restart()
        self.marks.clear()
        self.late.clear()
        self.waited.clear()
        if failure.reason == TOTAL_TIMEOUT.upper():
            self.ending, self._ending_sequence = "", 0

    def _mode(self) -> Mode:
        if self.pausing or self.failure is not None or self.concluded is not None or self.open_checkpoints:
            return Mode.RESTING
        return Mode.WAITING if self.wait is not None else Mode.WORKING
