"""How far a debate is, as a fold of its events."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from google.protobuf.message import Message

from parley.cli.terminal.checkpoints import Checkpoint
from parley.cli.terminal.words import work_phase_text
from parley.client import Event, event_payload
from parley.v1.agent_pb2 import Usage
from parley.v1.debate_pb2 import Intervention, Work
from parley.v1.event_pb2 import (
    CheckpointClosed,
    CheckpointExpired,
    CheckpointOpened,
    Claimed,
    Concluded,
    DebateFailed,
    Intervened,
    Paused,
    PhaseFinished,
    PhaseStarted,
    Resumed,
    RoundAssessed,
    RoundFinished,
    RoundStarted,
    StepFailed,
    StepStarted,
    StepSucceeded,
    WaitFinished,
    WaitStarted,
)

__all__ = ["DebateProgress", "PhaseProgress", "advance"]


@dataclass(frozen=True, slots=True)
class PhaseProgress:
    """A phase that has begun and not finished.

    Attributes:
        activity: What its steps are for, a word for programs.
        title: The same for people; empty where `activity` says it.
    """

    activity: str
    round: int
    expected: int
    done: int = 0
    title: str = ""

    @property
    def name(self) -> str:
        """What people call it."""
        return self.title or self.activity

    def is_of(self, activity: str, number: int) -> bool:
        """Return whether steps of this activity in this round belong to it."""
        return (self.activity, self.round) == (activity, number)


@dataclass(frozen=True, slots=True)
class DebateProgress:
    """A debate at a moment.

    Attributes:
        state: `waiting`, `running`, `paused`, `failed`, `completed` or `cancelled`.
        round: The latest round begun; 0 before the first.
        rounds: Rounds at most; 0 before the first.
        working: What is in flight, by step key, in the order it began.
        calls: Steps of agents that ended.
        cost_micros: Millionths of a US dollar; None once a price is unknown.
        completed_rounds: Rounds that are complete.
        rounds_ended_by: Why the rounds end early; empty where they do not, as far as is known.
        failures: Phase, reason and message of steps that failed since the debate was last taken up.
        checkpoint: The checkpoint at which a person is waited for.
        cut_routes: Routes for whose context a prompt was cut.
    """

    state: str = "waiting"
    round: int = 0
    rounds: int = 0
    phases: tuple[PhaseProgress, ...] = ()
    working: Mapping[str, StepStarted] = field(default_factory=dict)
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_micros: int | None = 0
    completed_rounds: int = 0
    rounds_ended_by: str = ""
    failures: frozenset[tuple[str, str, str]] = frozenset()
    checkpoint: Checkpoint | None = None
    cut_routes: frozenset[str] = frozenset()


def advance(progress: DebateProgress, event: Event) -> DebateProgress:
    """Return the progress after an event. Kinds that change nothing are passed over."""
    payload = event_payload(event)
    match payload:
        case StepStarted() as started:
            return replace(progress, working={**progress.working, event.key: started})
        case StepSucceeded(work=work) as succeeded:
            usage = succeeded.reply.usage if succeeded.HasField("reply") else None
            ended = _finish_step(progress, event.key, work, usage)
            is_cut = succeeded.reply.prompt_characters_left_out > 0
            return replace(ended, cut_routes=ended.cut_routes | {succeeded.reply.route}) if is_cut else ended
        case StepFailed(work=work, reason=reason, message=message, usage=usage):
            failures = progress.failures | {(work_phase_text(work), reason, message)}
            ended = _finish_step(progress, event.key, work, usage if work.agent_id else None)
            return replace(ended, failures=failures)
        case CheckpointOpened() as opened:
            return replace(progress, state="waiting", checkpoint=Checkpoint(event.key, opened))
        case _:
            return _apply_to_rounds(_apply_to_state(progress, payload), payload)


def _apply_to_state(progress: DebateProgress, payload: Message | None) -> DebateProgress:  # noqa: PLR0911 (a case a kind)
    match payload:
        case Claimed():  # what an earlier owner had in flight is void
            state = "waiting" if progress.checkpoint else "running"
            return replace(progress, state=state, working={}, failures=frozenset())
        case Resumed():
            return replace(progress, state="running", working={}, failures=frozenset(), checkpoint=None)
        case WaitStarted():
            return replace(progress, state="waiting", working={})
        case WaitFinished() | CheckpointClosed() | CheckpointExpired():
            return replace(progress, state="running", checkpoint=None)
        case Paused():
            return replace(progress, state="paused", working={}, checkpoint=None)
        case DebateFailed():
            return replace(progress, state="failed", working={}, checkpoint=None)
        case Concluded() as concluded:
            state = "completed" if concluded.HasField("outcome") else "cancelled"
            return replace(progress, state=state, working={}, phases=(), checkpoint=None)
        case _:
            return progress


def _apply_to_rounds(progress: DebateProgress, payload: Message | None) -> DebateProgress:  # noqa: PLR0911 (a case a kind)
    match payload:
        case RoundStarted(number=number, total=total):
            return replace(progress, round=number, rounds=total, rounds_ended_by="")
        case RoundFinished():
            return replace(progress, completed_rounds=progress.completed_rounds + 1)
        case RoundAssessed(ends_rounds=True, finding=finding):
            return replace(progress, rounds_ended_by=finding or "no reason is given")
        case Intervened(intervention=asked) | CheckpointClosed(intervention=asked) if _ends_rounds(asked):
            return replace(progress, rounds_ended_by="a person asked for it")
        case PhaseStarted(activity=activity, title=title, round=number, expected=expected):
            begun = PhaseProgress(activity, number, expected, title=title)
            return replace(progress, phases=(*_remove_phase(progress.phases, activity, number), begun))
        case PhaseFinished(activity=activity, round=number):
            return replace(progress, phases=_remove_phase(progress.phases, activity, number))
        case _:
            return progress


def _ends_rounds(intervention: Intervention) -> bool:
    return intervention.HasField("end")


def _remove_phase(phases: tuple[PhaseProgress, ...], activity: str, number: int) -> tuple[PhaseProgress, ...]:
    return tuple(each for each in phases if not each.is_of(activity, number))


def _finish_step(progress: DebateProgress, key: str, work: Work, usage: Usage | None) -> DebateProgress:
    phases = tuple(
        replace(each, done=each.done + 1) if each.is_of(work.activity, work.round) else each
        for each in progress.phases
    )
    working = {other: each for other, each in progress.working.items() if other != key}
    if usage is None:
        return replace(progress, phases=phases, working=working)
    return replace(
        progress,
        phases=phases,
        working=working,
        calls=progress.calls + 1,
        input_tokens=progress.input_tokens + usage.input_tokens,
        output_tokens=progress.output_tokens + usage.output_tokens,
        cost_micros=_add_cost(progress.cost_micros, usage),
    )


def _add_cost(before: int | None, usage: Usage) -> int | None:
    is_priced = usage.HasField("cost_micros")
    if usage.requests == 0 and not is_priced:
        return before
    return before + usage.cost_micros if before is not None and is_priced else None
