"""What a debate's log already holds, looked up by key: the memory that makes running again the same as resuming."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from parley.orchestrator.envelope import Envelope
from parley.orchestrator.events import (
    Closed,
    Concluded,
    ControlSeen,
    DebateCreated,
    DebateFailed,
    Intervened,
    Paused,
    Resumed,
    StepFailed,
    StepStarted,
    StepSucceeded,
)

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

    @classmethod
    def of(cls, events: Iterable[Envelope]) -> "Recorded":
        """Fold events into a new memory."""
        recorded = cls()
        recorded.take(events)
        return recorded

    def take(self, events: Iterable[Envelope]) -> None:
        """Fold more events in."""
        for event in events:
            self._take(event)

    def wishes(self, through: int) -> Wishes:
        """Return the wishes recorded up to a sequence."""
        made = [wish for sequence, wish in self.interventions.values() if sequence <= through]
        return Wishes(
            guidance=tuple(wish.text for wish in made if wish.wish == "guide"),
            muted=frozenset(wish.agent for wish in made if wish.wish == "mute"),
            end=any(wish.wish == "end" for wish in made),
        )

    def unfinished(self) -> list[tuple[str, int]]:
        """Return the steps and attempts that were started and have no outcome."""
        ended = {key: attempt for key, (attempt, _) in self.outcomes.items()}
        return [(key, attempt) for key, attempt in self.started if attempt > ended.get(key, 0)]

    def _take(self, event: Envelope) -> None:
        match event.payload:
            case DebateCreated() as created:
                self.created = created
            case StepStarted(digest=digest):
                self.started[event.key, event.attempt] = digest
            case StepSucceeded() | StepFailed() as outcome:
                self.outcomes[event.key] = (event.attempt, outcome)
                self.retried.discard(event.key)
            case ControlSeen(through=through):
                self.seen[event.key] = through
            case Intervened() as wish:
                self.interventions[wish.request_id] = (event.sequence, wish)
                self.pausing = self.pausing or wish.wish == "pause"
            case Paused() | Resumed() | DebateFailed() | Concluded() | Closed() as turn:
                self._turn(turn, event)
            case _:
                self.notes.add(event.key)

    def _turn(self, turn: Paused | Resumed | DebateFailed | Concluded | Closed, event: Envelope) -> None:
        match turn:
            case Paused():
                self.paused = True
            case DebateFailed() as failure:
                self.failure = failure
            case Resumed():
                self.retried.update(self.failure.steps if self.failure else ())
                self.attempt, self.failure = event.attempt, None
                self.pausing = self.paused = False
            case Concluded() as concluded:
                self.concluded, self.concluded_at = concluded, event.time
            case Closed():
                self.closed = True
