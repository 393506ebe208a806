"""How far a debate is, as lines for a person."""

from parley.cli.terminal.limits_and_waits import limit_or_wait_text
from parley.cli.terminal.progress import DebateProgress
from parley.cli.terminal.rounds import assessment_text, trickster_text
from parley.cli.terminal.words import cost_text, rounds_text, work_phase_text, work_text
from parley.client import Event, event_payload
from parley.v1.debate_pb2 import Work
from parley.v1.event_pb2 import (
    Paused,
    PhaseFinished,
    PhaseStarted,
    Resumed,
    RoundAssessed,
    RoundStarted,
    StepFailed,
    StepStarted,
    StepSucceeded,
    TricksterLooked,
    Warned,
)

__all__ = ["progress_line", "resumed_text", "status_line"]


def status_line(progress: DebateProgress, seconds: float) -> str:
    """Return `Round 2/3 · 1:05 · 3,456 tokens · $0.0123`."""
    place = f"Round {progress.round}/{progress.rounds}" if progress.round else "Starting"
    if any(started.is_answer for started in progress.working.values()):
        place = "Answer"
    if progress.checkpoint is not None:
        place = "Waiting for a person"
    if progress.state in {"paused", "failed", "completed", "cancelled"}:
        place = progress.state.capitalize()
    parts = [place, f"{int(seconds) // 60}:{int(seconds) % 60:02}"]
    parts.append(f"{progress.input_tokens + progress.output_tokens:,} tokens")
    if progress.cost_micros:
        parts.append(cost_text(progress.cost_micros))
    return " · ".join(parts)


def resumed_text(progress: DebateProgress) -> str:
    """Return what is there where a debate is taken up again: `2 rounds are recorded; going on in round 3`."""
    if not progress.round:
        return "no round is recorded; beginning with the first"
    whole = f"{rounds_text(progress.completed_rounds)} {'is' if progress.completed_rounds == 1 else 'are'} recorded"
    if progress.completed_rounds < progress.round:
        phases = ", ".join(f"{each.name} {each.done}/{each.expected}" for each in progress.phases)
        place = f"going on in round {progress.round}{f' ({phases})' if phases else ''}"
        return f"{whole}; {place}" if progress.completed_rounds else f"no round is complete; {place}"
    if progress.completed_rounds >= progress.rounds or progress.rounds_ended_by:
        return f"{whole}; going on with the answer"
    return f"{whole}; going on in round {progress.completed_rounds + 1}"


def progress_line(before: DebateProgress, event: Event) -> str | None:  # noqa: C901, PLR0911, PLR0912 (a case a kind)
    """Return the line of an event that is worth one where the progress cannot be shown in place."""
    payload = event_payload(event)
    match payload:
        case RoundStarted(number=number, total=total):
            return f"round {number}/{total}"
        case PhaseStarted(activity=activity, title=title, expected=expected):
            return f"  {title or activity}: {expected} to come"
        case PhaseFinished(activity=activity, title=title, round=number):
            phase = next((each for each in before.phases if each.is_of(activity, number)), None)
            return (
                f"  {phase.name}: {phase.done}/{phase.expected}" if phase else f"  {title or activity}: done"
            )
        case StepStarted(is_answer=is_answer, work=work) if is_answer or _is_outside_phases(before, work):
            return work_text(work)
        case StepSucceeded(reply=reply) if (
            reply.prompt_characters_left_out and reply.route not in before.cut_routes
        ):
            return (
                f"warning: {reply.prompt_characters_left_out:,} characters of a prompt were left out to fit "
                f"the context of {reply.route or 'its route'}; that may happen again"
            )
        case StepFailed(work=work, reason=reason, message=message):
            who = f"{work.agent_id}: " if work.agent_id else ""
            what = f"  {who}{work_phase_text(work)} failed"
            if (work_phase_text(work), reason, message) in before.failures:
                return f"{what} in the same way"
            return f"{what}: {reason}: {message}"
        case RoundAssessed() as assessed:
            return assessment_text(assessed, before.rounds_ended_by)
        case TricksterLooked(finding=finding):
            return trickster_text(finding)
        case Warned(message=message):
            return f"warning: {message}"
        case Paused():
            return "paused"
        case Resumed():
            return "resumed"
        case _:
            return limit_or_wait_text(payload)


def _is_outside_phases(progress: DebateProgress, work: Work) -> bool:
    """Return whether an agent works outside of every phase, as where it summarizes: nothing else would tell of it."""
    return bool(work.agent_id) and not any(each.is_of(work.activity, work.round) for each in progress.phases)
