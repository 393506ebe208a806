"""Events of a debate as lines: in full for `parley watch`, and the few that show progress."""

from collections.abc import Iterator, Sequence
from typing import Final

from google.protobuf.message import Message

from parley.cli.terminal.checkpoints import Checkpoint, answer_hint, intervention_texts
from parley.cli.terminal.event_texts import (
    assessment_text,
    limit_or_wait_text,
    trickster_line,
    vote_text,
)
from parley.cli.terminal.progress import DebateProgress
from parley.cli.terminal.words import (
    cost_text,
    rounds_text,
    step_text,
    work_phase_text,
)
from parley.client import Event, event_kind, event_payload
from parley.runtime.printable import printable_line
from parley.runtime.work_words import ending_text, phase_text, round_text, utc_time_text, work_text
from parley.v1.analysis_pb2 import CLAIM_GROUNDING_UNSUPPORTED, Analysis
from parley.v1.debate_pb2 import Work
from parley.v1.event_pb2 import (
    AnswerAnalysed,
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
    RequirementsListed,
    Resumed,
    RoundAssessed,
    RoundsEnded,
    RoundStarted,
    Settled,
    SourcesListed,
    StepFailed,
    StepStarted,
    StepSucceeded,
    TeamSelected,
    TimerFired,
    TimerStarted,
    TopologyDrawn,
    TricksterChecked,
    Warned,
)
from parley.v1.source_pb2 import Source

_MAX_SOURCES: Final = 5


def event_lines(event: Event, debate_id: str, server: str | None) -> Iterator[str]:
    """Yield the line of an event, and the command that answers it; nothing for kinds without a line."""
    text = _event_text(event)
    if text is not None:
        yield f"{event.sequence} {printable_line(text)}"
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
        case RoundStarted() | RoundAssessed() | TricksterChecked() | ContributionObserved() | RoundsEnded():
            return _round_event_text(payload)
        case DraftsGrouped(drafts=drafts):
            return f"vote {vote_text(drafts)}"
        case RequirementsListed(requirements=listed):
            hard = sum(each.hard for each in listed)
            return f"{len(listed)} requirement{'' if len(listed) == 1 else 's'}, of which {hard} must be met"
        case SourcesListed(sources=listed):
            return _sources_text(listed)
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
        case AnswerAnalysed(analysis=analysis):
            return analysis_text(analysis)
        case Concluded(ended_by=ended_by) as concluded:
            ended = "completed" if concluded.HasField("outcome") else "cancelled"
            return f"{ended}, {ending_text(ended_by)}" if ended_by else ended
        case Paused() | Resumed() | Closed():
            return event_kind(event)
        case _:
            return limit_or_wait_text(payload)


def _round_event_text(
    payload: RoundStarted | RoundAssessed | TricksterChecked | ContributionObserved | RoundsEnded,
) -> str | None:
    match payload:
        case RoundStarted(number=number, total=total):
            return round_text(number, total)
        case RoundAssessed() as assessed:
            return assessment_text(assessed).strip()
        case TricksterChecked(finding=finding):
            return trickster_line(finding).strip()
        case ContributionObserved() as observed:
            return _observation_text(observed)
        case RoundsEnded(explanation=explanation):
            return f"rounds ended: {explanation}"


def _sources_text(listed: Sequence[Source]) -> str:
    """Return the first of the sources by number and name, and how many more there are."""
    shown = [
        f"S{each.number} {each.title or each.path or each.url or each.tool}" for each in listed[:_MAX_SOURCES]
    ]
    more = len(listed) - len(shown)
    return f"sources: {', '.join(shown)}{f' and {more:,} more' if more else ''}"


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
    """Return the marks in a contribution; None if there are none."""
    fallacies = [f"{each.name} (fallacy)" for each in observed.fallacies]
    marks = [*(each.name for each in observed.patterns), *fallacies]
    return f"{step_text(observed.work)}: {', '.join(marks)}" if marks else None


def analysis_text(analysis: Analysis) -> str:
    """Return what the analysis of the answer found, in one line."""
    if analysis.missing:
        return f"the answer was not analysed: {analysis.missing}"
    bare = sum(each.grounding == CLAIM_GROUNDING_UNSUPPORTED for each in analysis.claims)
    count = len(analysis.claims)
    claims = f"{count} {'claim' if count == 1 else 'claims'}"
    # A local model does not tell which claim is the decision, so that nobody knows on what it depends.
    depends = (
        f"; the decision depends on {len(analysis.cruxes) or 'none'} of them" if analysis.verdict else ""
    )
    return f"analysed: {claims}, {bare} not supported by anything said{depends}"


def _course_text(key: str, payload: Message) -> str | None:
    """Return one line on agents that count or join and on timers; None for any other event."""
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


def status_line(progress: DebateProgress, seconds: float) -> str:
    """Return `Round 2/3 · 1:05 · 3,456 tokens · $0.0123`."""
    place = f"Round {progress.round}/{progress.rounds}" if progress.round else "Starting"
    if any(started.is_answer and not started.work.round for started in progress.working.values()):
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
    """Return what was recorded of a debate when it was resumed: `2 rounds were recorded; resumed in round 3`. The line stays while it runs."""
    if not progress.round:
        return "no round was recorded; resumed before the first"
    whole = f"{rounds_text(progress.completed_rounds)} {'was' if progress.completed_rounds == 1 else 'were'} recorded"
    if progress.completed_rounds < progress.round:
        phases = ", ".join(f"{each.name} {each.count}" for each in progress.phases)
        place = f"resumed in round {progress.round}{f' ({phases})' if phases else ''}"
        return f"{whole}; {place}" if progress.completed_rounds else f"no round was complete; {place}"
    if progress.completed_rounds >= progress.rounds or progress.rounds_ended_by:
        return f"{whole}; resumed with the answer"
    return f"{whole}; resumed in round {progress.completed_rounds + 1}"


def progress_line(before: DebateProgress, event: Event) -> str | None:  # noqa: C901, PLR0911, PLR0912 (a case a kind)
    """Return the line of an event if progress is shown as lines; None if the event has none."""
    payload = event_payload(event)
    match payload:
        case RoundStarted(number=1, total=total) if before.revision_rounds:
            return f"{round_text(1, total)}, {before.revision_rounds} of them for revision"
        case RoundStarted(number=number, total=total):
            return round_text(number, total)
        case PhaseStarted(activity=activity, title=title, round=number, expected=expected):
            begun = any(each.round == number for each in before.phases)
            return None if begun else f"  {title or activity}: {expected} to come"
        case PhaseFinished(activity=activity, title=title, round=number):
            phase = next((each for each in before.phases if each.is_of(activity, number)), None)
            return f"  {phase.name}: {phase.count}" if phase else f"  {title or activity}: done"
        case StepStarted(work=work) if any(event.key in each.failed for each in before.phases):
            return f"  {work.agent_id}: {work_phase_text(work)} is asked for again"
        case StepStarted(is_answer=is_answer, work=work) if is_answer or _is_outside_phases(before, work):
            return work_text(work)
        case StepSucceeded(reply=reply) if (
            reply.prompt_characters_left_out and reply.route not in before.cut_routes
        ):
            return (
                f"warning: {reply.prompt_characters_left_out:,} characters of a prompt were left out to fit "
                f"the context of {reply.route or 'its route'}; that may happen again"
            )
        case StepFailed(work=work, reason=reason, message=message) if work.agent_id:  # else a warning says it
            what = f"  {work.agent_id}: {work_phase_text(work)} failed"
            if (work_phase_text(work), reason, message) in before.failures:
                return f"{what} in the same way"
            return f"{what}: {reason}: {message}"
        case RoundAssessed() as assessed:
            return assessment_text(assessed, before.rounds_ended_by)
        case TricksterChecked(finding=finding):
            return trickster_line(finding)
        case Warned(message=message):
            return f"warning: {message}"
        case Paused():
            return "paused"
        case Resumed():
            return "resumed"
        case _:
            return limit_or_wait_text(payload)


def next_phase_line(before: DebateProgress, event: Event) -> str | None:
    """Return the line of a phase that began while the one that this event ends went on: `progress_line` leaves it out, so that lines stand in order."""
    payload = event_payload(event)
    if not isinstance(payload, PhaseFinished):
        return None
    phases = [each for each in before.phases if each.round == payload.round]
    if len(phases) < 2 or not phases[0].is_of(payload.activity, payload.round):
        return None
    coming = phases[1]
    left = f"{coming.expected - coming.done} of " if coming.done else ""
    return f"  {coming.name}: {left}{coming.expected} to come"


def _is_outside_phases(progress: DebateProgress, work: Work) -> bool:
    """Return whether an agent works outside of every phase, such as on a summary, and no line says so yet: it may be asked twice at once."""
    is_told = any(each.work == work for each in progress.working.values())
    in_phase = any(each.is_of(work.activity, work.round) for each in progress.phases)
    return bool(work.agent_id) and not is_told and not in_phase
