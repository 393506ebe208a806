"""How far a debate is, as a fold of its events."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Final

from parley.client.events import (
    Claimed,
    Concluded,
    DebateEvent,
    DebateFailed,
    Paused,
    PhaseFinished,
    PhaseStarted,
    Resumed,
    RoundStarted,
    StepFailed,
    StepStarted,
    StepSucceeded,
    Usage,
    Warned,
    Work,
)

__all__ = ["Phase", "Progress", "advance", "news", "working_text"]

_DOING: Final[Mapping[str, str]] = {
    "proposal": "proposes",
    "critique": "criticizes",
    "refinement": "refines",
    "summary": "summarizes",
    "synthesis": "writes the answer",
    "assessment": "scores the work",
}


@dataclass(frozen=True, slots=True)
class Phase:
    """A phase that has begun and not finished."""

    name: str
    round: int
    expected: int
    done: int = 0


@dataclass(frozen=True, slots=True)
class Progress:
    """A debate at a moment.

    Attributes:
        state: `waiting`, `running`, `paused`, `failed`, `completed` or `cancelled`.
        round: The latest round begun; 0 before the first.
        rounds: Rounds at most; 0 before the first.
        working: What is in flight, by step key, in the order it began.
        calls: Steps of agents that ended.
        cost_micros: Millionths of a US dollar; None once a price is unknown.
    """

    state: str = "waiting"
    round: int = 0
    rounds: int = 0
    phases: tuple[Phase, ...] = ()
    working: Mapping[str, Work] = field(default_factory=dict)
    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_micros: int | None = 0


def advance(progress: Progress, event: DebateEvent) -> Progress:  # noqa: C901, PLR0911 (a case a kind)
    """The progress after an event. Kinds that change nothing are passed over."""
    match event.payload:
        case Claimed() | Resumed():  # what an earlier owner had in flight is void
            return replace(progress, state="running", working={})
        case RoundStarted(number=number, total=total):
            return replace(progress, round=number, rounds=total)
        case PhaseStarted(name=name, round=number, expected=expected):
            kept = tuple(each for each in progress.phases if (each.name, each.round) != (name, number))
            return replace(progress, phases=(*kept, Phase(name, number, expected)))
        case PhaseFinished(name=name, round=number):
            kept = tuple(each for each in progress.phases if (each.name, each.round) != (name, number))
            return replace(progress, phases=kept)
        case StepStarted(work=work):
            return replace(progress, working={**progress.working, event.key: work})
        case StepSucceeded(work=work, reply=reply):
            return _ended(progress, event.key, work, reply.usage if reply else None)
        case StepFailed(work=work, usage=usage):
            return _ended(progress, event.key, work, usage)
        case Paused():
            return replace(progress, state="paused", working={})
        case DebateFailed():
            return replace(progress, state="failed", working={})
        case Concluded(status=status):
            return replace(progress, state=status, working={}, phases=())
        case _:
            return progress


def _ended(progress: Progress, key: str, work: Work, usage: Usage | None) -> Progress:
    phases = tuple(
        replace(each, done=each.done + 1) if (each.name, each.round) == (work.activity, work.round) else each
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
        cost_micros=_cost(progress.cost_micros, usage),
    )


def _cost(before: int | None, usage: Usage) -> int | None:
    if usage.attempts == 0 and usage.cost_micros is None:
        return before
    return None if before is None or usage.cost_micros is None else before + usage.cost_micros


def working_text(work: Work) -> str:
    """`ada criticizes bo`."""
    doing = _DOING.get(work.activity, work.activity)
    return " ".join(part for part in (work.agent, doing, work.target) if part)


def news(before: Progress, event: DebateEvent) -> str | None:  # noqa: PLR0911 (a case a kind)
    """An event worth a line where the progress cannot be shown in place."""
    match event.payload:
        case RoundStarted(number=number, total=total):
            return f"round {number}/{total}"
        case PhaseStarted(name=name, expected=expected):
            return f"  {name}: {expected} to come"
        case PhaseFinished(name=name, round=number):
            phase = next((each for each in before.phases if (each.name, each.round) == (name, number)), None)
            return f"  {name}: {phase.done}/{phase.expected}" if phase else f"  {name}: done"
        case StepStarted(work=Work(activity="synthesis") as work):
            return working_text(work)
        case StepFailed(work=work, reason=reason, message=message):
            who = f"{work.agent}: " if work.agent else ""
            return f"  {who}{work.phase} failed: {reason}: {message}"
        case Warned(message=message):
            return f"warning: {message}"
        case Paused():
            return "paused"
        case Resumed():
            return "resumed"
        case _:
            return None
