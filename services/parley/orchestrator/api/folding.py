"""The fold of a debate's events into the contract's `Debate`."""

from collections.abc import Sequence
from typing import Final

from parley.orchestrator.log.envelope import Envelope
from parley.orchestrator.log.events import CorruptEventError, Payload
from parley.orchestrator.log.usage import add_usage, usage_of, usage_of_stopped
from parley.orchestrator.model.tasks import BALLOT, phase_of
from parley.v1.agent_pb2 import Usage
from parley.v1.arena_pb2 import TRICKSTER_VERDICT_CHALLENGED
from parley.v1.debate_pb2 import (
    DEBATE_STATUS_CANCELLED,
    DEBATE_STATUS_COMPLETED,
    DEBATE_STATUS_FAILED,
    DEBATE_STATUS_PAUSED,
    DEBATE_STATUS_PENDING,
    DEBATE_STATUS_RUNNING,
    DEBATE_STATUS_WAITING,
    STOP_REASON_PERSON,
    Clarification,
    Debate,
    Waiting,
)
from parley.v1.event_pb2 import (
    AnswerAnalysed,
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
    SourcesListed,
    StepFailed,
    StepStarted,
    StepSucceeded,
    TeamSelected,
    TricksterChecked,
    WaitFinished,
    WaitStarted,
    Warned,
)

_ENDED: Final = (DEBATE_STATUS_COMPLETED, DEBATE_STATUS_CANCELLED)


def fold(events: Sequence[Envelope]) -> Debate:
    """Return the debate after all events of a log. Raise CorruptEventError as `DebateFold` does."""
    return DebateFold(events).debate


class DebateFold:
    """Folds the events of one log, all or a part at a time.

    Attributes:
        debate: The debate after the last event, without what is not in its log: the answer as CommonMark, evaluations and
            feedback. It is never changed: `extend` puts another one in its place.
        last: The last event.
        log_bytes: Stored bytes of all events.
    """

    def __init__(self, events: Sequence[Envelope]) -> None:
        """Fold the events of a log from its first on.

        Raise CorruptEventError if the log is empty or does not begin with the debate's creation.
        """
        if not events or not isinstance(created := events[0].payload, DebateCreated):
            raise CorruptEventError("a debate's log begins with its creation, and this one does not")
        self.debate = Debate(
            id=events[0].debate,
            status=DEBATE_STATUS_PENDING,
            spec=created.spec,
            demonstration=created.demonstration,
            judge_reason=created.judge_reason,
            create_time=events[0].message.time,
            usage=Usage(),
            estimate=created.estimate if created.HasField("estimate") else None,
        )
        self.last = events[0]
        self.log_bytes = 0
        self._outcomes: set[str] = set()
        self._open: dict[str, Waiting] = {}
        self._intervened_by: dict[str, str] = {}
        self._answer = ""
        self.extend(events)

    def extend(self, events: Sequence[Envelope]) -> None:
        """Fold in the events that follow in the log; those that were folded in before are passed over."""
        new = [each for each in events if each.sequence > self.debate.last_sequence]
        if not new:
            return
        before, self.debate = self.debate, Debate()
        self.debate.CopyFrom(before)
        for event in new:
            self._apply(event)
        self.last = new[-1]
        self.log_bytes += sum(len(each.entry) for each in new)
        self.debate.update_time.CopyFrom(self.last.message.time)
        self.debate.last_sequence = self.last.sequence

    def _apply(self, event: Envelope) -> None:  # noqa: C901, PLR0912 - a case a kind
        """Fold an event in."""
        debate = self.debate
        match event.payload:
            case StepSucceeded() | StepFailed() as outcome:
                self._apply_outcome(event, outcome)
            case StepStarted() as started:
                debate.phase = phase_of(started.work)
                if started.is_answer and started.work.activity != BALLOT:
                    self._answer = event.key
            case Warned() as warned:
                debate.warnings.append(warned.message)
            case Intervened() as intervened:
                debate.interventions.append(intervened.intervention)
                self._intervened_by[intervened.request_id] = intervened.intervened_by
                if intervened.intervention.HasField("end"):
                    debate.rounds_ended_by = "a person asked for it"
            case ContributionObserved() as observed:
                _apply_marks(debate, observed)
            case RoundStarted() | RoundAssessed() | TricksterChecked() | RoundsEnded() as turn:
                _apply_round(debate, turn)
            case WaitStarted() | WaitFinished() as wait:
                self._apply_wait(event.key, wait)
            case CheckpointOpened() | CheckpointClosed() | CheckpointExpired() as checkpoint:
                if isinstance(checkpoint, CheckpointClosed) and checkpoint.intervention.HasField("approve"):
                    self._add_approval(event, checkpoint)
                self._apply_wait(event.key, checkpoint)
            case Closed() as closed:
                add_usage(debate.usage, usage_of_stopped(closed.stopped))
            case Claimed() | Paused() | Resumed() | DebateFailed() | Concluded() as turn_of_status:
                self._apply_status_change(event, turn_of_status)
            case fact:
                _apply_fact(debate, fact)

    def _apply_outcome(self, event: Envelope, outcome: StepSucceeded | StepFailed) -> None:
        """Let a step's latest outcome stand for it, and count every one."""
        debate = self.debate
        if event.key in self._outcomes:
            _remove_outcome(debate, event.key)
        add_usage(debate.usage, usage_of(outcome))
        debate.calls += bool(outcome.work.agent_id)
        if isinstance(outcome, StepFailed):
            debate.failures.add(
                key=event.key,
                work=outcome.work,
                reason=outcome.reason,
                message=outcome.message,
                attempt=event.attempt,
                partial_text=outcome.partial_text,
                sequence=event.sequence,
            )
        elif outcome.HasField("reply"):
            debate.contributions.add(
                key=event.key,
                work=outcome.work,
                reply=outcome.reply,
                attempt=event.attempt,
                recorded_at=event.message.time,
                is_answer=event.key == self._answer,
                sequence=event.sequence,
            )
        self._outcomes.add(event.key)

    def _apply_wait(
        self,
        key: str,
        wait: WaitStarted | WaitFinished | CheckpointOpened | CheckpointClosed | CheckpointExpired,
    ) -> None:
        """Wait, or wait no more. A debate that rests meanwhile stays at rest."""
        debate = self.debate
        if debate.status not in {DEBATE_STATUS_RUNNING, DEBATE_STATUS_WAITING}:
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
                _set_waiting(debate, waiting)
            case CheckpointOpened():
                self._open[key] = _waiting_at(key, wait)
                self._wait_at_checkpoint()
            case WaitFinished():
                _set_waiting(debate, None)
            case _:
                self._close_checkpoint(key, wait)
                self._wait_at_checkpoint()

    def _add_approval(self, event: Envelope, closed: CheckpointClosed) -> None:
        said = closed.intervention.approve
        self.debate.approvals.add(
            checkpoint=event.key,
            approved=said.approved,
            text=said.text,
            answered_by=self._intervened_by.get(closed.request_id, ""),
            answered_at=event.message.time,
        )

    def _close_checkpoint(self, key: str, closed: CheckpointClosed | CheckpointExpired) -> None:
        waiting = self._open.pop(key, None)
        if waiting is None or not waiting.HasField("questions") or not isinstance(closed, CheckpointClosed):
            return
        act = closed.intervention
        clarification = Clarification(
            checkpoint=key, questions=waiting.questions, answer=act.answer if act.HasField("answer") else None
        )
        self.debate.clarifications.append(clarification)

    def _wait_at_checkpoint(self) -> None:
        """Wait for a person at the checkpoint that was opened first, or for no person."""
        _set_waiting(self.debate, next(iter(self._open.values()), None))

    def _apply_status_change(
        self, event: Envelope, turn: Claimed | Paused | Resumed | DebateFailed | Concluded
    ) -> None:
        """Move the status. A claim only begins a debate: one that rests or has ended is claimed for its interventions."""
        debate = self.debate
        if isinstance(turn, Paused):
            add_usage(debate.usage, usage_of_stopped(turn.stopped))
        if debate.status in _ENDED:
            return
        match turn:
            case Claimed() if debate.status == DEBATE_STATUS_PENDING:
                debate.status = DEBATE_STATUS_RUNNING
            case Resumed():
                if debate.status in {DEBATE_STATUS_PAUSED, DEBATE_STATUS_FAILED}:
                    self._open.clear()  # they are opened again
                debate.ClearField("failure")
                self._wait_at_checkpoint()
            case Paused() if debate.status != DEBATE_STATUS_FAILED:
                debate.ClearField("waiting")
                debate.status = DEBATE_STATUS_PAUSED
            case DebateFailed():
                debate.ClearField("waiting")
                debate.status = DEBATE_STATUS_FAILED
                debate.failure.CopyFrom(turn.failure)
            case Concluded():
                _conclude(debate, turn)
                debate.end_time.CopyFrom(event.message.time)


def _apply_marks(debate: Debate, observed: ContributionObserved) -> None:
    """Set the observer's marks of the contribution that they are of; it is one of the last."""
    work = observed.work
    for made in reversed(debate.contributions):
        of = made.work
        if (of.agent_id, of.activity, of.round, of.target_agent_id) == (
            work.agent_id,
            work.activity,
            work.round,
            work.target_agent_id,
        ):
            del made.patterns[:], made.fallacies[:]
            made.patterns.extend(observed.patterns)
            made.fallacies.extend(observed.fallacies)
            return


def _apply_round(debate: Debate, turn: RoundStarted | RoundAssessed | TricksterChecked | RoundsEnded) -> None:
    match turn:
        case RoundStarted():
            debate.current_round = max(debate.current_round, turn.number)
            debate.begun_rounds[:] = sorted({*debate.begun_rounds, turn.number})
            debate.max_rounds = turn.total
        case RoundsEnded():
            _set_stop(debate, turn)
        case TricksterChecked():
            debate.trickster_findings.append(turn.finding)
            if turn.finding.verdict == TRICKSTER_VERDICT_CHALLENGED:
                debate.rounds_ended_by = ""
        case RoundAssessed() if turn.ends_rounds:
            debate.rounds_ended_by = turn.finding


def _apply_fact(debate: Debate, fact: Payload | None) -> None:
    """Set what an event says of the debate; kinds that are not known, or change nothing here, are passed over."""
    match fact:
        case PhaseEntered():
            debate.phase = fact.name
        case TeamSelected():
            debate.team_agent_ids[:] = fact.agent_ids
            debate.only_joined_debate = not fact.agent_ids
        case ParticipantJoined():
            debate.joined.append(fact.agent)
        case DraftsGrouped() if fact.drafts.certain:
            debate.first_drafts.CopyFrom(fact.drafts)
        case Recalled():
            debate.recalled_debate_ids[:] = fact.debate_ids
        case AnswerAnalysed():
            debate.analysis.CopyFrom(fact.analysis)
        case RequirementsListed():
            del debate.requirements[:]
            debate.requirements.extend(fact.requirements)
        case SourcesListed():
            debate.sources.extend(fact.sources)


def _conclude(debate: Debate, concluded: Concluded) -> None:
    is_early = debate.current_round < debate.max_rounds
    if concluded.ended_by or not is_early:
        debate.rounds_ended_by = ""
    debate.ended_by = concluded.ended_by
    debate.ClearField("failure")
    debate.ClearField("waiting")
    if concluded.HasField("outcome"):
        debate.status = DEBATE_STATUS_COMPLETED
        debate.outcome.CopyFrom(concluded.outcome)
    else:
        debate.status = DEBATE_STATUS_CANCELLED
        _set_stop(debate, RoundsEnded(reason=STOP_REASON_PERSON, explanation="a person cancelled the debate"))


def _set_waiting(debate: Debate, waiting: Waiting | None) -> None:
    """Set what a debate waits for; None: it runs."""
    if waiting is None:
        debate.status = DEBATE_STATUS_RUNNING
        debate.ClearField("waiting")
    else:
        debate.status = DEBATE_STATUS_WAITING
        debate.waiting.CopyFrom(waiting)


def _set_stop(debate: Debate, ended: RoundsEnded) -> None:
    debate.stop_reason, debate.stop_explanation = ended.reason, ended.explanation


def _remove_outcome(debate: Debate, key: str) -> None:
    for made in debate.contributions:
        if made.key == key:
            debate.contributions.remove(made)
            return
    for failed in debate.failures:
        if failed.key == key:
            debate.failures.remove(failed)
            return


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
