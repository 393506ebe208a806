"""How far a debate is, as a fold of its events."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from parley.cli.early import RoundEnds
from parley.cli.halts import halt_text
from parley.cli.words import doing, phase_words, rounds_words
from parley.client.events import (
    CheckpointClosed,
    CheckpointExpired,
    CheckpointOpened,
    Claimed,
    Concluded,
    DebateEvent,
    DebateFailed,
    Paused,
    PhaseFinished,
    PhaseStarted,
    Resumed,
    RoundFinished,
    RoundStarted,
    StepFailed,
    StepStarted,
    StepSucceeded,
    Usage,
    WaitFinished,
    WaitStarted,
    Warned,
    Work,
)

__all__ = ["Phase", "Progress", "advance", "news", "resumed_text", "working_text"]


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
        complete: Rounds that are complete.
        ends: What was decided after rounds.
        failures: Phase, reason and message of steps that failed since the debate was last taken up.
        checkpoint: Key of the checkpoint at which a person is waited for; empty for none.
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
    complete: int = 0
    ends: RoundEnds = field(default_factory=RoundEnds)
    failures: frozenset[tuple[str, str, str]] = frozenset()
    checkpoint: str = ""


def advance(progress: Progress, event: DebateEvent) -> Progress:
    """The progress after an event. Kinds that change nothing are passed over."""
    ends = progress.ends.after(event)
    return _advance(progress if ends is progress.ends else replace(progress, ends=ends), event)


def _advance(progress: Progress, event: DebateEvent) -> Progress:  # noqa: C901, PLR0911, PLR0912 (a case a kind)
    match event.payload:
        case Claimed():  # what an earlier owner had in flight is void
            state = "waiting" if progress.checkpoint else "running"
            return replace(progress, state=state, working={}, failures=frozenset())
        case Resumed():
            return replace(progress, state="running", working={}, failures=frozenset(), checkpoint="")
        case RoundStarted(number=number, total=total):
            return replace(progress, round=number, rounds=total)
        case RoundFinished():
            return replace(progress, complete=progress.complete + 1)
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
        case StepFailed(work=work, reason=reason, message=message, usage=usage):
            failures = progress.failures | {(work.phase, reason, message)}
            return replace(_ended(progress, event.key, work, usage), failures=failures)
        case WaitStarted():
            return replace(progress, state="waiting", working={})
        case CheckpointOpened():
            return replace(progress, state="waiting", checkpoint=event.key)
        case WaitFinished() | CheckpointClosed() | CheckpointExpired():
            return replace(progress, state="running", checkpoint="")
        case Paused():
            return replace(progress, state="paused", working={}, checkpoint="")
        case DebateFailed():
            return replace(progress, state="failed", working={}, checkpoint="")
        case Concluded(status=status):
            return replace(progress, state=status, working={}, phases=(), checkpoint="")
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
    return " ".join(part for part in (work.agent, doing(work.activity), work.target) if part)


def resumed_text(progress: Progress) -> str:
    """What is there already where a debate is taken up again: `2 rounds are recorded; going on in round 3`."""
    if not progress.round:
        return "no round is recorded; beginning with the first"
    whole = f"{rounds_words(progress.complete)} {'is' if progress.complete == 1 else 'are'} recorded"
    if progress.complete < progress.round:
        phases = ", ".join(f"{each.name} {each.done}/{each.expected}" for each in progress.phases)
        place = f"going on in round {progress.round}{f' ({phases})' if phases else ''}"
        return f"{whole}; {place}" if progress.complete else f"no round is complete; {place}"
    if progress.complete >= progress.rounds or progress.ends.why:
        return f"{whole}; going on with the answer"
    return f"{whole}; going on in round {progress.complete + 1}"


def news(before: Progress, event: DebateEvent) -> str | None:  # noqa: C901, PLR0911 (a case a kind)
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
        case StepSucceeded(work=Work(activity="convergence" | "assessment")):
            ends = before.ends.after(event)
            place = f"ended after round {ends.round}" if ends.why else f"  after round {ends.round}"
            return f"{place}: {ends.why or ends.verdict}"
        case StepFailed(work=work, reason=reason, message=message):
            who = f"{work.agent}: " if work.agent else ""
            what = f"  {who}{phase_words(work.phase)} failed"
            if (work.phase, reason, message) in before.failures:
                return f"{what} in the same way"
            return f"{what}: {reason}: {message}"
        case Warned(message=message):
            return f"warning: {message}"
        case Paused():
            return "paused"
        case Resumed():
            return "resumed"
        case _:
            return halt_text(event)
