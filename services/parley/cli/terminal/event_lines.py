"""Events of a debate as lines for a person who follows it, and what was contributed."""

from collections.abc import Iterator

from google.protobuf.message import Message

from parley.cli.terminal.checkpoints import Checkpoint, answer_hint, intervention_texts
from parley.cli.terminal.limits_and_waits import ending_text, limit_or_wait_text
from parley.cli.terminal.rounds import assessment_text, trickster_text, vote_text
from parley.cli.terminal.words import phase_text, step_text, utc_time_text, work_text
from parley.client import Event, event_kind, event_payload
from parley.runtime.printable import printable_line
from parley.v1.event_pb2 import (
    CheckpointOpened,
    Closed,
    Concluded,
    ContributionObserved,
    DebateFailed,
    DraftsGrouped,
    Intervened,
    JudgeChosen,
    ParticipantJoined,
    Paused,
    PhaseEntered,
    PhaseFinished,
    PhaseStarted,
    RequirementsDrawnUp,
    Resumed,
    RoundAssessed,
    RoundsEnded,
    RoundStarted,
    Settled,
    StepFailed,
    StepStarted,
    StepSucceeded,
    TeamSelected,
    TimerFired,
    TimerStarted,
    TopologyDrawn,
    TricksterLooked,
    Warned,
)

__all__ = ["contribution_text", "event_lines"]


def event_lines(event: Event, debate_id: str, server: str | None) -> Iterator[str]:
    """Yield the line of an event, and the command that answers it; none for a kind that says nothing to a person."""
    said = _event_text(event)
    if said is not None:
        yield f"{event.sequence} {printable_line(said)}"
    payload = event_payload(event)
    if isinstance(payload, CheckpointOpened):
        yield f"    answer with: {answer_hint(debate_id, Checkpoint(event.key, payload), server)}"


def contribution_text(event: Event) -> str:
    """Return what an agent contributed, as people read it; empty for any other event."""
    payload = event_payload(event)
    if not isinstance(payload, StepSucceeded) or not payload.HasField("reply"):
        return ""
    return (payload.reply.rendered or payload.reply.text).strip("\n")


def _event_text(event: Event) -> str | None:  # noqa: C901, PLR0911, PLR0912 (a case a kind)
    payload = event_payload(event)
    match payload:
        case RoundStarted(number=number, total=total):
            return f"round {number}/{total}"
        case RoundAssessed() as assessed:
            return assessment_text(assessed).strip()
        case TricksterLooked(finding=finding):
            return trickster_text(finding).strip()
        case ContributionObserved() as observed:
            return _observation_text(observed)
        case RoundsEnded(explanation=explanation):
            return f"rounds ended: {explanation}"
        case DraftsGrouped(drafts=drafts):
            return f"vote {vote_text(drafts)}"
        case RequirementsDrawnUp(requirements=listed):
            hard = sum(each.hard for each in listed)
            return f"{len(listed)} requirement{'' if len(listed) == 1 else 's'}, of which {hard} must be met"
        case PhaseStarted(activity=activity, title=title, round=number, expected=expected):
            return f"{phase_text(title or activity, number)}: {expected} to come"
        case PhaseFinished(activity=activity, title=title, round=number):
            return f"{phase_text(title or activity, number)}: done"
        case PhaseEntered(name=name):
            return f"phase {name}"
        case TopologyDrawn() as drawn:
            return f"{drawn.topology}: {', '.join(f'{each.critic_agent_id} of {each.target_agent_id}' for each in drawn.edges)}"
        case TeamSelected(agent_ids=team):
            return f"team: {', '.join(team)}" if team else "the agents lend their routes to those who join"
        case JudgeChosen(agent_id=judge, reason=reason):
            return f"judge: {judge}: {reason}"
        case Settled() | ParticipantJoined() | TimerStarted() | TimerFired():
            return _course_text(event.key, payload)
        case StepStarted() | StepSucceeded() | StepFailed():
            return _step_text(payload)
        case Warned(message=message):
            return f"warning: {message}"
        case Intervened(intervention=intervention):
            return " ".join(part for part in ("asked to", *intervention_texts(intervention)) if part)
        case DebateFailed(failure=failure):
            return f"failed: {failure.reason}: {failure.message}"
        case Concluded(ended_by=ended_by) as concluded:
            ended = "completed" if concluded.HasField("outcome") else "cancelled"
            return f"{ended}, {ending_text(ended_by)}" if ended_by else ended
        case Paused() | Resumed() | Closed():
            return event_kind(event)
        case _:
            return limit_or_wait_text(payload)


def _step_text(payload: StepStarted | StepSucceeded | StepFailed) -> str:
    match payload:
        case StepStarted(work=work):
            return work_text(work)
        case StepFailed(work=work, reason=reason, message=message, partial_text=partial):
            kept = f" ({len(partial):,} characters were written, and are kept)" if partial else ""
            return f"{step_text(work)}: failed: {reason}: {message}{kept}"
        case StepSucceeded(work=work, reply=reply):
            if not payload.HasField("reply"):
                return f"{step_text(work)}: done"
            seconds = reply.latency.ToNanoseconds() / 1e9
            tokens = reply.usage.input_tokens + reply.usage.output_tokens
            return f"{step_text(work)}: done ({seconds:.1f} s, {tokens:,} tokens)"


def _observation_text(observed: ContributionObserved) -> str | None:
    """Return the marks in a contribution; None where there are none."""
    fallacies = [f"{each.name} (fallacy)" for each in observed.fallacies]
    marks = [*(each.name for each in observed.patterns), *fallacies]
    return f"{step_text(observed.work)}: {', '.join(marks)}" if marks else None


def _course_text(key: str, payload: Message) -> str | None:
    """Return one line on how the debate takes its course: who counts, who joins, what it waits for by itself."""
    match payload:
        case Settled(counted=counted, left_out=left_out):
            without = f"; without {', '.join(left_out)}" if left_out else ""
            return f"going on with {', '.join(counted) or 'none'}{without}"
        case ParticipantJoined(agent=agent):
            return f"{agent.id} joins ({agent.role})"
        case TimerStarted(until=until):
            return f"timer {key}: until {utc_time_text(until)}"
        case TimerFired():
            return f"timer {key}: its time has come"
        case _:
            return None
