"""What a debate's log already holds, looked up by key: the memory that makes running again the same as resuming."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime

from parley.orchestrator.log.envelope import Envelope
from parley.orchestrator.log.events import UnknownEventError
from parley.orchestrator.log.usage import Mode, RunningTime, UsageMeter, usage_of_stopped
from parley.orchestrator.model.conversion import agent_from_proto
from parley.orchestrator.model.limits import ROUND_TIMEOUT, TOTAL_TIMEOUT
from parley.orchestrator.model.spec import AgentSpec
from parley.orchestrator.model.times import time_of
from parley.v1.debate_pb2 import Intervention
from parley.v1.event_pb2 import (
    CheckpointClosed,
    CheckpointExpired,
    CheckpointOpened,
    Claimed,
    Closed,
    Concluded,
    DebateCreated,
    DebateFailed,
    Intervened,
    LimitReached,
    ParticipantJoined,
    Paused,
    Resumed,
    RoundStarted,
    Settled,
    SteeringRead,
    StepFailed,
    StepStarted,
    StepSucceeded,
    TimerFired,
    TimerStarted,
    WaitFinished,
    WaitStarted,
)

__all__ = ["SETTLED", "Outcome", "RecordedState", "Steering"]

Outcome = StepSucceeded | StepFailed

SETTLED = "settled"
"""Why a step fails that was late for a `Settled`."""


@dataclass(frozen=True, slots=True)
class Steering:
    """The interventions that a format goes on with: guidance in order, who is muted, whether the rounds are to end.

    `limit` is the limit that ends them, such as `total_timeout`; empty for none.
    """

    guidance: tuple[str, ...] = ()
    muted: frozenset[str] = frozenset()
    end: bool = False
    limit: str = ""


@dataclass(slots=True)
class RecordedState:
    """A fold of a debate's events for its owner.

    Attributes:
        outcomes: The latest outcome of each step and its attempt.
        started: Each step and attempt that was started.
        notes: Keys of the events that follow from steps.
        settled: What counted where several steps were settled, by key.
        joined: Agents that came into being, by the key of their event, in order.
        timers: When each timer's time comes; `fired_timers`: those whose time has come.
        control_sequences: For each look at the interventions, the sequence it went up to.
        interventions: Each with its sequence, by request id.
        retried: Steps whose recorded failure is void, since the debate was resumed after failing on them.
        pausing: Whether a pause is asked for and not yet undone; `stopping`: whether it stops what is in flight.
        stopped_runs: Runs of calls that were stopped, and are counted.
        paused: Whether the debate came to rest for it.
        attempt: Times the debate was begun or resumed; `attempt_epoch`: the claim that this was under.
        claims: Claims since the latest outcome of a step or intervention.
        time: How long it has been worked on, up to its answer and then after it.
        round_marks: What `time.working` was when a round began, or when its limit was last reached.
        round_limits: How often each round's limit was reached.
        meter: What its calls used, up to its answer and then after it.
        ending: The limit that lets nothing new begin but the answer; empty for none.
        late: Steps that fail for a limit or a `Settled` and whose failure is not recorded yet, with the reason.
        answer: Key of the step that makes the answer; empty before it was begun.
        wait: The wait for providers that goes on.
        waits: Times that providers were waited for; `waited`: seconds of that by phase.
        open_checkpoints: Those a person is waited for at, in the order they were opened.
        checkpoints: How the others were closed.
        waits_since: When each wait began that goes on, by its key: for providers, or for a person.
    """

    created: DebateCreated | None = None
    outcomes: dict[str, tuple[int, Outcome]] = field(default_factory=dict)
    started: dict[tuple[str, int], StepStarted] = field(default_factory=dict)
    notes: set[str] = field(default_factory=set)
    settled: dict[str, Settled] = field(default_factory=dict)
    joined: dict[str, AgentSpec] = field(default_factory=dict)
    timers: dict[str, datetime] = field(default_factory=dict)
    fired_timers: set[str] = field(default_factory=set)
    control_sequences: dict[str, int] = field(default_factory=dict)
    interventions: dict[str, tuple[int, Intervened]] = field(default_factory=dict)
    retried: set[str] = field(default_factory=set)
    failure: DebateFailed | None = None
    pausing: bool = False
    stopping: bool = False
    stopped_runs: set[str] = field(default_factory=set)
    paused: bool = False
    concluded: Concluded | None = None
    concluded_at: datetime | None = None
    closed: bool = False
    attempt: int = 1
    attempt_epoch: int = 1
    claims: int = 0
    time: RunningTime = field(default_factory=RunningTime)
    round_marks: dict[int, float] = field(default_factory=dict)
    round_limits: dict[int, int] = field(default_factory=dict)
    meter: UsageMeter = field(default_factory=UsageMeter)
    ending: str = ""
    late: dict[str, str] = field(default_factory=dict)
    answer: str = ""
    wait: WaitStarted | None = None
    waits: int = 0
    waited: dict[str, float] = field(default_factory=dict)
    open_checkpoints: dict[str, CheckpointOpened] = field(default_factory=dict)
    checkpoints: dict[str, CheckpointClosed] = field(default_factory=dict)
    waits_since: dict[str, datetime] = field(default_factory=dict)
    _ending_sequence: int = 0

    @classmethod
    def from_events(cls, events: Iterable[Envelope]) -> "RecordedState":
        """Fold events into a new memory.

        Raises:
            UnknownEventError: one of them is of a kind that is not known here and may not be passed over.
        """
        recorded = cls()
        recorded.apply(events)
        return recorded

    def apply(self, events: Iterable[Envelope], at: float | None = None) -> None:
        """Fold more events in. `at`: when they were recorded, by the monotonic clock of the owner that did so just now.

        Raises:
            UnknownEventError: as `from_events`.
        """
        for event in events:
            self.time.advance(event.epoch, event.time.timestamp() if at is None else at)
            self._apply(event)
            self.time.mode = self._mode()

    def steering(self, through: int) -> Steering:
        """Return what the interventions recorded up to a sequence come to."""
        made = [each.intervention for sequence, each in self.interventions.values() if sequence <= through]
        acts = [each.WhichOneof("act") for each in made]
        limit = self.ending if 0 < self._ending_sequence <= through else ""
        return Steering(
            guidance=tuple(each.guide.text for each in made if each.HasField("guide")),
            muted=_collect_muted(made),
            end="end" in acts or bool(limit),
            limit=limit,
        )

    @property
    def muted(self) -> frozenset[str]:
        """The ids of those who are muted now, though a format may not have seen it yet."""
        return _collect_muted(intervened.intervention for _, intervened in self.interventions.values())

    def last_steering_sequence(self) -> int:
        """Return the sequence of the latest event that steering is made of."""
        latest = max((sequence for sequence, _ in self.interventions.values()), default=0)
        return max(latest, self._ending_sequence)

    def steps_without_outcome(self) -> list[tuple[str, int]]:
        """Return the steps and attempts that were started and have no outcome."""
        ended = {key: attempt for key, (attempt, _) in self.outcomes.items()}
        return [(key, attempt) for key, attempt in self.started if attempt > ended.get(key, 0)]

    def is_answered(self) -> bool:
        """Return whether the step that makes the answer has succeeded."""
        _, outcome = self.outcomes.get(self.answer, (0, None))
        return isinstance(outcome, StepSucceeded)

    def _apply(self, event: Envelope) -> None:  # noqa: C901, PLR0912 - a case a kind
        match event.payload:
            case DebateCreated() as created:
                self.created = created
            case StepStarted() as started:
                self.started[event.key, event.attempt] = started
                self.answer = event.key if started.is_answer else self.answer
            case StepSucceeded() | StepFailed() as outcome:
                self.outcomes[event.key] = (event.attempt, outcome)
                self.meter.add(outcome)
                self.claims = 0
                self.retried.discard(event.key)
                self.late.pop(event.key, None)
            case Claimed():
                self.claims += 1
            case SteeringRead() as seen:
                self.control_sequences[event.key] = seen.through
            case Intervened(intervention=intervention) if intervention.WhichOneof("act") is None:
                raise UnknownEventError(_unknown_message(event, "holds an intervention"))
            case Intervened() as intervened:
                self.interventions[intervened.request_id] = (event.sequence, intervened)
                self.claims = 0
                self.pausing = self.pausing or intervened.intervention.HasField("pause")
                self.stopping = self.stopping or intervened.intervention.pause.stop_calls
            case Settled() as settled:
                self.settled[event.key] = settled
                self.late.update(dict.fromkeys(settled.late, SETTLED))
            case ParticipantJoined() as joined:
                self.joined[event.key] = agent_from_proto(joined.agent, joined.instructions)
            case TimerStarted() | TimerFired() as timer:
                self._apply_timer(event.key, timer)
            case RoundStarted() | LimitReached() as mark:
                self._apply_mark(event, mark)
            case Paused() | Resumed() | DebateFailed() | Concluded() | Closed() as turn:
                self._apply_status_change(turn, event)
            case WaitStarted() | WaitFinished() as wait:
                self._track_wait(event, begins=isinstance(wait, WaitStarted))
                self._apply_wait(wait)
            case CheckpointOpened() | CheckpointClosed() | CheckpointExpired() as checkpoint:
                self._track_wait(event, begins=isinstance(checkpoint, CheckpointOpened))
                self._apply_checkpoint(event.key, checkpoint)
            case None if not event.message.ignorable:
                raise UnknownEventError(_unknown_message(event, "is of a kind"))
            case _:
                self.notes.add(event.key)

    def _apply_timer(self, key: str, timer: TimerStarted | TimerFired) -> None:
        if isinstance(timer, TimerStarted):
            self.timers[key] = time_of(timer.until)
        else:
            self.fired_timers.add(key)

    def _apply_mark(self, event: Envelope, mark: RoundStarted | LimitReached) -> None:
        self.notes.add(event.key)
        if isinstance(mark, RoundStarted):
            self.round_marks[mark.number] = self.time.working
            return
        self.late.update(dict.fromkeys(mark.late, mark.limit))
        if mark.limit == ROUND_TIMEOUT:
            self.round_marks[mark.round] = self.time.working
            self.round_limits[mark.round] = self.round_limits.get(mark.round, 0) + 1
        else:
            self.ending, self._ending_sequence = mark.limit, event.sequence

    def _track_wait(self, event: Envelope, *, begins: bool) -> None:
        if begins:
            self.waits_since[event.key] = event.time
        else:
            self.waits_since.pop(event.key, None)

    def _apply_wait(self, wait: WaitStarted | WaitFinished) -> None:
        if isinstance(wait, WaitStarted):
            self.wait = wait
            self.waits += 1
            together = wait.waited.ToMilliseconds() + wait.length.ToMilliseconds()
            self.waited[wait.phase] = together / 1000
        elif self.wait is not None:
            self.retried.update(self.wait.steps)
            self.wait = None

    def _apply_checkpoint(
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

    def _apply_status_change(
        self, turn: Paused | Resumed | DebateFailed | Concluded | Closed, event: Envelope
    ) -> None:
        match turn:
            case Paused() as paused:
                self.paused = True
                self.stopped_runs |= {each.run for each in paused.stopped if each.run}
                self.meter.count(usage_of_stopped(paused.stopped))
            case DebateFailed() as failed:
                self.failure = failed
            case Resumed():
                self._resume()
                self.attempt, self.attempt_epoch, self.claims = event.attempt, event.epoch, 0
            case Concluded() as concluded:
                self._conclude(concluded, event.time)
            case Closed():
                self.closed = True

    def _resume(self) -> None:
        if self.paused or self.failure is not None:
            self.open_checkpoints.clear()  # they are opened again, with the whole of their time
        if self.wait is not None:
            self._apply_wait(WaitFinished())
        if self.failure is not None:
            self._resume_from(self.failure)
        self.failure = None
        self.pausing = self.stopping = self.paused = False

    def _resume_from(self, failed: DebateFailed) -> None:
        """Try again what the debate failed on; its time limits begin anew."""
        self.retried.update(failed.failure.steps)
        self.time.restart()
        self.round_marks.clear()
        self.late.clear()
        self.waited.clear()
        if failed.failure.reason == TOTAL_TIMEOUT.upper():
            self.ending, self._ending_sequence = "", 0

    def _conclude(self, concluded: Concluded, at: datetime) -> None:
        """Let what follows the answer have time and budgets of its own."""
        self.concluded, self.concluded_at = concluded, at
        self.ending, self._ending_sequence = "", 0
        self.late.clear()
        self.time.restart()
        self.meter = UsageMeter()

    def _mode(self) -> Mode:
        if self.concluded is not None:
            return Mode.WORKING
        if self.pausing or self.failure is not None or self.open_checkpoints:
            return Mode.RESTING
        return Mode.WAITING if self.wait is not None else Mode.WORKING


def _collect_muted(made: Iterable[Intervention]) -> frozenset[str]:
    muted: set[str] = set()
    for each in made:
        if each.HasField("mute"):
            muted.add(each.mute.agent_id)
        elif each.HasField("unmute"):
            muted.discard(each.unmute.agent_id)
    return frozenset(muted)


def _unknown_message(event: Envelope, what: str) -> str:
    return f"event {event.sequence} of {event.debate} {what} that this version does not know"
