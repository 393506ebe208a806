"""The state that a debate's log records, by key. With it, running the format again is the same as resuming the debate."""

from collections.abc import Iterable, Mapping
from datetime import datetime

from msgspec import Struct, field

from parley.orchestrator.log.bare_spec import hold_documents
from parley.orchestrator.log.envelope import Envelope
from parley.orchestrator.log.events import UnknownEventError
from parley.orchestrator.log.usage import (
    Mode,
    RunningTime,
    UsageMeter,
    add_usage,
    usage_of,
    usage_of_stopped,
)
from parley.orchestrator.model.limits import ROUND_TIMEOUT, TOTAL_TIMEOUT
from parley.orchestrator.model.times import time_of
from parley.runtime.held_texts import HeldText
from parley.v1.agent_pb2 import Agent, Usage
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

Outcome = StepSucceeded | StepFailed

SETTLED = "settled"
"""The reason of a step that fails since a `Settled` left it out."""


class Steering(Struct, frozen=True):
    """What interventions ask of a format: guidance in order, muted agents, and whether the rounds end.

    `limit` is the limit that ends them, such as `total_timeout`; empty if none does.
    """

    guidance: tuple[str, ...] = ()
    muted: frozenset[str] = frozenset()
    end: bool = False
    limit: str = ""


class RecordedState(Struct):
    """The state of a debate for its owner, computed from its events.

    Attributes:
        created: The first event, without the documents of its specification, and when it was recorded; `documents`: their texts by path.
        outcomes: The latest outcome of each step and its attempt.
        started: Each step and attempt that was started.
        notes: Keys of the events that follow from steps.
        settled: Which of several parallel steps counted, by key.
        joined: Agents that joined during the debate, by the key of their event, in order.
        timers: When each timer fires; `fired_timers`: those that have fired.
        control_sequences: For each read of the interventions, the sequence up to which they were read.
        interventions: Each with its sequence, by request id.
        retried: Steps whose recorded failure does not count any more, since the debate was resumed after it.
        pausing: Whether a pause is requested and not undone yet; `stopping`: whether it stops calls in flight.
        stopped_runs: Runs of stopped calls whose usage is counted.
        paused: Whether the debate stopped for that pause.
        end_sequence: That of the latest event with which the debate failed or was concluded; 0 if there is none.
        attempt: How often the debate was started or resumed; `attempt_epoch`: the claim of the latest time.
        claims: Claims since the latest outcome of a step or intervention; `codes`: names of the code that has run the debate.
        time: How long it has run, up to its answer, then after it.
        round_marks: The value of `time.working` when a round started, or when its limit was last reached.
        round_limits: How often each round's limit was reached.
        meter: What its calls used, up to its answer, then after it; `spent`: what they used up to its answer, once there is one.
        usage: What all its calls used.
        ending: The limit after which only the answer may still start; empty if none was reached. `ending_sequence`: that of its event, else 0.
        late: Steps that fail because of a limit or a `Settled`, with the reason, until their failure is recorded.
        answer: Key of the step that creates the answer; empty until it starts.
        wait: The present wait for providers, if any.
        waits: Number of waits for providers; `waited`: their seconds by phase.
        open_checkpoints: Checkpoints that wait for a person, in the order in which they were opened.
        checkpoints: How each closed checkpoint was closed.
        waits_since: When each present wait (for providers or a person) began, by its key.
    """

    created: DebateCreated | None = None
    created_at: datetime | None = None
    documents: Mapping[str, HeldText] = field(default_factory=dict)
    outcomes: dict[str, tuple[int, Outcome]] = field(default_factory=dict)
    started: dict[tuple[str, int], StepStarted] = field(default_factory=dict)
    notes: set[str] = field(default_factory=set)
    settled: dict[str, Settled] = field(default_factory=dict)
    joined: dict[str, Agent] = field(default_factory=dict)
    instructions: dict[str, Mapping[str, str]] = field(default_factory=dict)
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
    end_sequence: int = 0
    closed: bool = False
    attempt: int = 1
    attempt_epoch: int = 1
    claims: int = 0
    codes: set[str] = field(default_factory=set)
    time: RunningTime = field(default_factory=RunningTime)
    round_marks: dict[int, float] = field(default_factory=dict)
    round_limits: dict[int, int] = field(default_factory=dict)
    meter: UsageMeter = field(default_factory=UsageMeter)
    spent: UsageMeter = field(default_factory=UsageMeter)
    usage: Usage = field(default_factory=Usage)
    ending: str = ""
    ending_sequence: int = 0
    late: dict[str, str] = field(default_factory=dict)
    answer: str = ""
    wait: WaitStarted | None = None
    waits: int = 0
    waited: dict[str, float] = field(default_factory=dict)
    open_checkpoints: dict[str, CheckpointOpened] = field(default_factory=dict)
    checkpoints: dict[str, CheckpointClosed] = field(default_factory=dict)
    waits_since: dict[str, datetime] = field(default_factory=dict)

    @classmethod
    def from_events(cls, events: Iterable[Envelope]) -> "RecordedState":
        """Return the state after these events.

        Raises:
            UnknownEventError: this version does not know the kind of an event, and the event is not ignorable.
        """
        recorded = cls()
        recorded.apply(events)
        return recorded

    def apply(self, events: Iterable[Envelope], at: float | None = None) -> None:
        """Apply more events. `at`: when they were recorded, by the monotonic clock of the owner that has just done so.

        Raises:
            UnknownEventError: as `from_events`.
        """
        for event in events:
            self.time.advance(event.epoch, event.owner_seconds if at is None else at)
            self._apply(event)
            self.time.mode = self._mode()

    def steering(self, through: int) -> Steering:
        """Return what the interventions up to a sequence ask for."""
        interventions = [
            each.intervention for sequence, each in self.interventions.values() if sequence <= through
        ]
        acts = [each.WhichOneof("act") for each in interventions]
        limit = self.ending if 0 < self.ending_sequence <= through else ""
        return Steering(
            guidance=tuple(each.guide.text for each in interventions if each.HasField("guide")),
            muted=_collect_muted(interventions),
            end="end" in acts or bool(limit),
            limit=limit,
        )

    @property
    def guidance_bytes(self) -> int:
        """The size of the guidance so far."""
        interventions = (intervened.intervention for _, intervened in self.interventions.values())
        return sum(len(each.guide.text.encode()) for each in interventions if each.HasField("guide"))

    @property
    def muted(self) -> frozenset[str]:
        """The ids of the agents that are muted now, though a format may not have read that yet."""
        return _collect_muted(intervened.intervention for _, intervened in self.interventions.values())

    def last_steering_sequence(self) -> int:
        """Return the sequence of the latest event that `steering` depends on."""
        latest = max((sequence for sequence, _ in self.interventions.values()), default=0)
        return max(latest, self.ending_sequence)

    def steps_without_outcome(self) -> list[tuple[str, int]]:
        """Return the steps and attempts that were started and have no outcome."""
        ended = {key: attempt for key, (attempt, _) in self.outcomes.items()}
        return [(key, attempt) for key, attempt in self.started if attempt > ended.get(key, 0)]

    def list_replies(self) -> dict[str, StepSucceeded]:
        """Return the replies of agents by the keys of their steps, in the order of the log."""
        made = ((key, outcome) for key, (_, outcome) in self.outcomes.items())
        return {key: each for key, each in made if isinstance(each, StepSucceeded) and each.HasField("reply")}

    def find_answer_author(self) -> str:
        """Return the id of the agent that was asked last for the answer; empty before that."""
        started = ((key, each.work.agent_id) for (key, _), each in self.started.items())
        return next((agent for key, agent in started if key == self.answer), "")

    def is_answered(self) -> bool:
        """Return whether the step that creates the answer has succeeded."""
        _, outcome = self.outcomes.get(self.answer, (0, None))
        return isinstance(outcome, StepSucceeded)

    def _apply(self, event: Envelope) -> None:  # noqa: C901, PLR0912 - a case a kind
        match event.payload:
            case DebateCreated() as created:
                self.created, self.documents = hold_documents(created)
                self.created_at = event.time
            case StepStarted() as started:
                self.started[event.key, event.attempt] = started
                self.answer = event.key if started.is_answer else self.answer
            case StepSucceeded() | StepFailed() as outcome:
                self.outcomes[event.key] = (event.attempt, outcome)
                self.meter.add(outcome)
                add_usage(self.usage, usage_of(outcome))
                self.claims = 0
                self.retried.discard(event.key)
                self.late.pop(event.key, None)
            case Claimed(code=code):
                self.claims += 1
                self.codes.add(code)
            case SteeringRead() as seen:
                self.control_sequences[event.key] = seen.through
            case Intervened() as intervened:
                self._apply_intervention(event, intervened)
            case Settled() as settled:
                self.settled[event.key] = settled
                self.late.update(dict.fromkeys(settled.late, SETTLED))
            case ParticipantJoined() as joined:
                self.joined[event.key] = joined.agent
                self.instructions[joined.agent.id] = dict(joined.instructions)
            case TimerStarted() | TimerFired() as timer:
                self._apply_timer(event.key, timer)
            case RoundStarted() | LimitReached() as mark:
                self._apply_mark(event, mark)
            case Paused() | Resumed() | DebateFailed() | Concluded() | Closed() as change:
                self._apply_status_change(change, event)
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

    def _apply_intervention(self, event: Envelope, intervened: Intervened) -> None:
        if intervened.intervention.WhichOneof("act") is None:
            raise UnknownEventError(_unknown_message(event, "holds an intervention"))
        self.interventions[intervened.request_id] = (event.sequence, intervened)
        self.claims = 0
        self.pausing = self.pausing or intervened.intervention.HasField("pause")
        self.stopping = self.stopping or intervened.intervention.pause.stop_calls

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
            self.ending, self.ending_sequence = mark.limit, event.sequence

    def _track_wait(self, event: Envelope, *, begins: bool) -> None:
        if begins:
            self.waits_since[event.key] = event.time
        else:
            self.waits_since.pop(event.key, None)

    def _apply_wait(self, wait: WaitStarted | WaitFinished) -> None:
        if isinstance(wait, WaitStarted):
            self.wait = wait
            self.waits += 1
            total = wait.waited.ToMilliseconds() + wait.length.ToMilliseconds()
            self.waited[wait.phase] = total / 1000
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
        self, change: Paused | Resumed | DebateFailed | Concluded | Closed, event: Envelope
    ) -> None:
        match change:
            case Paused() as paused:
                self.paused = True
                self.stopped_runs |= {each.run for each in paused.stopped if each.run}
                stopped = usage_of_stopped(paused.stopped)
                self.meter.count(stopped)
                add_usage(self.usage, stopped)
            case DebateFailed() as failed:
                self.failure, self.end_sequence = failed, event.sequence
            case Resumed():
                self._resume()
                self.attempt, self.attempt_epoch, self.claims = event.attempt, event.epoch, 0
            case Concluded() as concluded:
                self.end_sequence = event.sequence
                self._conclude(concluded, event.time)
            case Closed() as closed:
                self.closed = True
                add_usage(self.usage, usage_of_stopped(closed.stopped))

    def _resume(self) -> None:
        if self.paused or self.failure is not None:
            self.open_checkpoints.clear()  # they are opened again, with their full time
        if self.wait is not None:
            self._apply_wait(WaitFinished())
        if self.failure is not None:
            self._resume_from(self.failure)
        self.failure = None
        self.pausing = self.stopping = self.paused = False

    def _resume_from(self, failed: DebateFailed) -> None:
        """Retry the steps that the debate failed on; its time limits start again."""
        self.retried.update(failed.failure.steps)
        self.time.restart()
        self.round_marks.clear()
        self.late.clear()
        self.waited.clear()
        if failed.failure.reason == TOTAL_TIMEOUT.upper():
            self.ending, self.ending_sequence = "", 0

    def _conclude(self, concluded: Concluded, at: datetime) -> None:
        """Start time and usage again: what follows the answer has limits of its own."""
        self.concluded, self.concluded_at = concluded, at
        self.ending, self.ending_sequence = "", 0
        self.late.clear()
        self.time.restart()
        self.spent, self.meter = self.meter, UsageMeter()

    def _mode(self) -> Mode:
        if self.concluded is not None:
            return Mode.WORKING
        if self.pausing or self.failure is not None or self.open_checkpoints:
            return Mode.RESTING
        return Mode.WAITING if self.wait is not None else Mode.WORKING


def _collect_muted(interventions: Iterable[Intervention]) -> frozenset[str]:
    muted: set[str] = set()
    for each in interventions:
        if each.HasField("mute"):
            muted.add(each.mute.agent_id)
        elif each.HasField("unmute"):
            muted.discard(each.unmute.agent_id)
    return frozenset(muted)


def _unknown_message(event: Envelope, what: str) -> str:
    return f"event {event.sequence} of {event.debate} {what} that this version does not know"
