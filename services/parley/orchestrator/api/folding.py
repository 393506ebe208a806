"""The fold of a debate's events into its state."""

from collections.abc import Iterable
from dataclasses import replace
from datetime import datetime
from typing import Final

from parley.orchestrator.api.state import DebateState
from parley.orchestrator.log.envelope import Envelope
from parley.orchestrator.log.events import CorruptEventError
from parley.orchestrator.log.index import CANCELLED, COMPLETED, FAILED, PAUSED, PENDING, RUNNING, WAITING
from parley.orchestrator.log.usage import add_usage, usage_of, usage_of_stopped
from parley.orchestrator.model.tasks import phase_of
from parley.v1.arena_pb2 import TRICKSTER_VERDICT_CHALLENGED
from parley.v1.debate_pb2 import (
    STOP_REASON_PERSON,
    Clarification,
    Contribution,
    FailedContribution,
    Waiting,
)
from parley.v1.event_pb2 import (
    CheckpointClosed,
    CheckpointExpired,
    CheckpointOpened,
    Claimed,
    Closed,
    Concluded,
    ContributionObserved,
    DebateCreated,
    DebateFailed,
    DraftsGrouped,
    Intervened,
    ParticipantJoined,
    Paused,
    PhaseEntered,
    Recalled,
    RequirementsListed,
    Resumed,
    RoundAssessed,
    RoundsEnded,
    RoundStarted,
    StepFailed,
    StepStarted,
    StepSucceeded,
    TeamSelected,
    TricksterChecked,
    WaitFinished,
    WaitStarted,
    Warned,
)

__all__ = ["advance", "fold"]

_CANCELLED: Final = RoundsEnded(reason=STOP_REASON_PERSON, explanation="a person cancelled the debate")


def fold(events: Iterable[Envelope]) -> DebateState:
    """Return the state after all events of a log.

    Raises:
        CorruptEventError: the log is empty or does not begin with the debate's creation.
    """
    rest = iter(events)
    first = next(rest, None)
    if first is None or not isinstance(first.payload, DebateCreated):
        raise CorruptEventError("a debate's log begins with its creation, and this one does not")
    begun = DebateState(
        debate=first.debate,
        spec=first.payload.spec,
        is_demonstration=first.payload.demonstration,
        created_at=first.time,
        updated_at=first.time,
        last_sequence=first.sequence,
    )
    return advance(begun, rest)


def advance(state: DebateState, events: Iterable[Envelope]) -> DebateState:
    """Return the state after the events that follow it in the log."""
    folding = _StateBuilder(state)
    for event in events:
        folding.apply(event)
    return folding.build()


_Fact = PhaseEntered | TeamSelected | ParticipantJoined | DraftsGrouped | Recalled | RequirementsListed


class _StateBuilder:
    """A state while events are folded in: what grows with the log is kept by key, so that each event is cheap."""

    def __init__(self, state: DebateState) -> None:
        self._state = state
        self._contributions = {made.key: made for made in state.contributions}
        self._failures = {failed.key: failed for failed in state.failures}
        self._sequences = dict(state.sequences)
        self._warnings = list(state.warnings)
        self._interventions = list(state.interventions)
        self._usage, self._calls = state.usage, state.calls
        self._open = {each.checkpoint: each for each in state.open_checkpoints}
        self._answer = state.answer_key
        self._last: Envelope | None = None

    def build(self) -> DebateState:
        last = self._last
        return replace(
            self._state,
            contributions=tuple(self._contributions.values()),
            failures=tuple(self._failures.values()),
            sequences=self._sequences,
            warnings=tuple(self._warnings),
            interventions=tuple(self._interventions),
            open_checkpoints=tuple(self._open.values()),
            usage=self._usage,
            calls=self._calls,
            answer_key=self._answer,
            updated_at=last.time if last else self._state.updated_at,
            last_sequence=last.sequence if last else self._state.last_sequence,
        )

    def apply(self, event: Envelope) -> None:  # noqa: C901, PLR0912 - a case a kind
        """Fold an event in; kinds that are not known, or change nothing here, are passed over."""
        self._last = event
        match event.payload:
            case StepSucceeded() | StepFailed() as outcome:
                self._apply_outcome(event, outcome)
            case StepStarted() as started:
                self._set(phase=phase_of(started.work))
                self._answer = event.key if started.is_answer else self._answer
            case Warned() as warned:
                self._warnings.append(warned.message)
            case Intervened() as intervened:
                self._interventions.append(intervened)
                if intervened.intervention.HasField("end"):
                    self._set(rounds_ended_by="a person asked for it")
            case ContributionObserved() as observed:
                self._apply_marks(observed)
            case RoundStarted() | RoundAssessed() | TricksterChecked() | RoundsEnded() as turn:
                self._apply_round(turn)
            case fact if isinstance(fact, _Fact):
                self._apply_fact(fact)
            case WaitStarted() | WaitFinished() as wait:
                self._apply_wait(event.key, wait)
            case CheckpointOpened() | CheckpointClosed() | CheckpointExpired() as checkpoint:
                self._apply_wait(event.key, checkpoint)
            case Closed() as closed:
                self._usage = add_usage(self._usage, usage_of_stopped(closed.stopped))
            case Claimed() | Paused() | Resumed() | DebateFailed() | Concluded() as turn_of_status:
                self._apply_status_change(turn_of_status, event.time)
            case _:
                pass

    def _apply_outcome(self, event: Envelope, outcome: StepSucceeded | StepFailed) -> None:
        """Let a step's latest outcome stand for it, and count every one."""
        self._contributions.pop(event.key, None)
        self._failures.pop(event.key, None)
        self._sequences.pop(event.key, None)
        self._usage = add_usage(self._usage, usage_of(outcome))
        self._calls += bool(outcome.work.agent_id)
        if isinstance(outcome, StepFailed):
            self._failures[event.key] = FailedContribution(
                key=event.key,
                work=outcome.work,
                reason=outcome.reason,
                message=outcome.message,
                attempt=event.attempt,
                partial_text=outcome.partial_text,
            )
            self._sequences[event.key] = event.sequence
        elif outcome.HasField("reply"):
            self._contributions[event.key] = Contribution(
                key=event.key,
                work=outcome.work,
                reply=outcome.reply,
                attempt=event.attempt,
                recorded_at=event.message.time,
                is_answer=event.key == self._answer,
            )
            self._sequences[event.key] = event.sequence

    def _apply_marks(self, observed: ContributionObserved) -> None:
        """Add the observer's marks to the contribution they are of; it is one of the last."""
        work = observed.work
        for key, made in reversed(self._contributions.items()):
            of = made.work
            if (of.agent_id, of.activity, of.round, of.target_agent_id) == (
                work.agent_id,
                work.activity,
                work.round,
                work.target_agent_id,
            ):
                self._contributions[key] = _with_marks(made, observed)
                return

    def _apply_round(self, turn: RoundStarted | RoundAssessed | TricksterChecked | RoundsEnded) -> None:
        if isinstance(turn, RoundStarted):
            current = max(self._state.current_round, turn.number)
            begun = tuple(sorted({*self._state.begun_rounds, turn.number}))
            self._set(
                current_round=current, begun_rounds=begun, max_rounds=turn.total, rounds_ended=RoundsEnded()
            )
        elif isinstance(turn, RoundsEnded):
            self._set(rounds_ended=turn)
        elif isinstance(turn, TricksterChecked):
            is_challenged = turn.finding.verdict == TRICKSTER_VERDICT_CHALLENGED
            ended_by = "" if is_challenged else self._state.rounds_ended_by
            self._set(trickster=(*self._state.trickster, turn.finding), rounds_ended_by=ended_by)
        elif turn.ends_rounds:
            self._set(rounds_ended_by=turn.finding)

    def _apply_fact(self, fact: _Fact) -> None:
        match fact:
            case PhaseEntered():
                self._set(phase=fact.name)
            case TeamSelected():
                self._set(team=tuple(fact.agent_ids))
            case ParticipantJoined():
                self._set(joined=(*self._state.joined, fact.agent))
            case DraftsGrouped() if fact.drafts.certain:
                self._set(first_drafts=fact.drafts)
            case Recalled():
                self._set(recalled=tuple(fact.debate_ids))
            case RequirementsListed():
                self._set(requirements=tuple(fact.requirements))

    def _apply_wait(
        self,
        key: str,
        wait: WaitStarted | WaitFinished | CheckpointOpened | CheckpointClosed | CheckpointExpired,
    ) -> None:
        """Wait, or wait no more. A debate that rests meanwhile stays at rest."""
        if self._state.status not in {RUNNING, WAITING}:
            return
        match wait:
            case WaitStarted():
                waiting = Waiting(
                    message=wait.message,
                    until=wait.until,
                    reason=wait.reason,
                    agent_id=wait.agent_id,
                    phase=wait.phase,
                )
                self._set(status=WAITING, waiting=waiting)
            case CheckpointOpened():
                self._open[key] = _waiting_at(key, wait)
                self._wait_at_checkpoint()
            case WaitFinished():
                self._set(status=RUNNING, waiting=None)
            case _:
                self._close_checkpoint(key, wait)
                self._wait_at_checkpoint()

    def _close_checkpoint(
        self, key: str, closed: CheckpointClosed | CheckpointExpired | WaitFinished
    ) -> None:
        waiting = self._open.pop(key, None)
        if waiting is None or not waiting.HasField("questions") or not isinstance(closed, CheckpointClosed):
            return
        act = closed.intervention
        clarification = Clarification(
            checkpoint=key,
            questions=waiting.questions,
            answer=act.answer if act.HasField("answer") else None,
        )
        self._set(clarifications=(*self._state.clarifications, clarification))

    def _wait_at_checkpoint(self) -> None:
        """Wait for a person at the checkpoint that was opened first, or for no person."""
        waiting = next(iter(self._open.values()), None)
        self._set(status=WAITING if waiting else RUNNING, waiting=waiting)

    def _apply_status_change(
        self, turn: Claimed | Paused | Resumed | DebateFailed | Concluded, time: datetime
    ) -> None:
        """Move the status. A claim only begins a debate: one that rests or has ended is claimed for its interventions."""
        if isinstance(turn, Paused):
            self._usage = add_usage(self._usage, usage_of_stopped(turn.stopped))
        if self._state.has_ended:
            return
        match turn:
            case Claimed() if self._state.status == PENDING:
                self._set(status=RUNNING)
            case Resumed():
                if self._state.status in {PAUSED, FAILED}:
                    self._open.clear()  # they are opened again
                self._set(failure=None)
                self._wait_at_checkpoint()
            case Paused() if self._state.status != FAILED:
                self._set(status=PAUSED, waiting=None)
            case DebateFailed():
                self._set(status=FAILED, failure=turn.failure, waiting=None)
            case Concluded():
                self._conclude(turn, time)

    def _conclude(self, concluded: Concluded, time: datetime) -> None:
        is_answered = concluded.HasField("outcome")
        early = bool(self._state.max_rounds) and self._state.current_round < self._state.max_rounds
        self._set(
            status=COMPLETED if is_answered else CANCELLED,
            outcome=concluded.outcome if is_answered else None,
            ended_by=concluded.ended_by,
            rounds_ended_by=self._state.rounds_ended_by if early and not concluded.ended_by else "",
            rounds_ended=self._state.rounds_ended if is_answered else _CANCELLED,
            failure=None,
            waiting=None,
            concluded_at=time,
        )

    def _set(self, **changes: object) -> None:
        self._state = replace(self._state, **changes)  # type: ignore[arg-type]


def _with_marks(made: Contribution, observed: ContributionObserved) -> Contribution:
    """Return a copy of a contribution with the observer's marks: states before this one hold it without."""
    marked = Contribution()
    marked.CopyFrom(made)
    del marked.patterns[:], marked.fallacies[:]
    marked.patterns.extend(observed.patterns)
    marked.fallacies.extend(observed.fallacies)
    return marked


def _waiting_at(key: str, opened: CheckpointOpened) -> Waiting:
    kind = opened.WhichOneof("request")
    return Waiting(
        checkpoint=key,
        message=_request_text(opened),
        until=opened.until,
        questions=opened.questions if kind == "questions" else None,
        direction=opened.direction if kind == "direction" else None,
        approval=opened.approval if kind == "approval" else None,
    )


def _request_text(checkpoint: CheckpointOpened) -> str:
    """Return what is put to a person, as text."""
    match checkpoint.WhichOneof("request"):
        case "questions":
            asked = checkpoint.questions
            return "\n".join([asked.text, *(f"- {each.text}" for each in asked.questions)]).strip()
        case "direction":
            return checkpoint.direction.text
        case _:
            return checkpoint.approval.text
