"""What the edge answers, as the contract's messages. Nothing is decided here."""

from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

from parley.orchestrator.api.answer import answer_markdown
from parley.orchestrator.api.state import Clarification, Contribution, DebateState, Failure, Waiting
from parley.orchestrator.engine.format import Format
from parley.orchestrator.log.index import DebateRecord
from parley.orchestrator.model.labels import labels_of
from parley.orchestrator.model.times import timestamp
from parley.v1 import debate_pb2, orchestrator_pb2
from parley.v1.debate_pb2 import DebateSpec
from parley.v1.event_pb2 import CheckpointOpened

__all__ = [
    "contribution_to_proto",
    "debate_to_proto",
    "failure_to_proto",
    "status_from_proto",
    "status_to_proto",
    "summary_to_proto",
]

_STATUS: Final = "DEBATE_STATUS_"


def status_to_proto(status: str) -> debate_pb2.DebateStatus.ValueType:
    """Return a state of the index as the contract names it."""
    return debate_pb2.DebateStatus.Value(_STATUS + status)


def status_from_proto(status: debate_pb2.DebateStatus.ValueType) -> str:
    """Return a state as the index names it. Raises ValueError for a number that is no state."""
    if status == debate_pb2.DEBATE_STATUS_UNSPECIFIED:
        raise ValueError("the status is not set")
    return debate_pb2.DebateStatus.Name(status).removeprefix(_STATUS)


def debate_to_proto(
    state: DebateState, debate_format: Format | None, *, is_whole: bool = True
) -> debate_pb2.Debate:
    """Return a debate, completely or without its large parts.

    Its format, if it is known here, defines how its answer is shown.
    """
    if not is_whole:
        return _summary_of(state, _without_texts(state.spec))
    debate = _summary_of(state, state.spec)
    debate.contributions.extend(map(contribution_to_proto, state.contributions))
    debate.failures.extend(map(failure_to_proto, state.failures))
    if state.outcome is not None:
        debate.outcome.CopyFrom(state.outcome)
        debate.answer = answer_markdown(state.outcome, debate_format, is_demonstration=state.is_demonstration)
    return debate


def _without_texts(spec: DebateSpec) -> DebateSpec:
    """Return a copy of a specification with the paths of its documents alone."""
    bare = DebateSpec()
    bare.CopyFrom(spec)
    for each in bare.context:
        each.ClearField("text")
    return bare


def _summary_of(state: DebateState, spec: DebateSpec) -> debate_pb2.Debate:
    return debate_pb2.Debate(
        id=state.debate,
        status=status_to_proto(state.status),
        phase=state.phase,
        spec=spec,
        joined=state.joined,
        team_agent_ids=state.team or (),
        only_joined_debate=state.team == (),
        failure=state.failure,
        usage=state.usage,
        calls=state.calls,
        create_time=timestamp(state.created_at),
        update_time=timestamp(state.updated_at),
        last_sequence=state.last_sequence,
        warnings=state.warnings,
        current_round=state.current_round,
        max_rounds=state.max_rounds,
        rounds_ended_by=state.rounds_ended_by,
        first_drafts=state.first_drafts,
        requirements=state.requirements,
        trickster_findings=state.trickster,
        recalled_debate_ids=state.recalled,
        waiting=_waiting_to_proto(state.waiting) if state.waiting else None,
        ended_by=state.ended_by,
        demonstration=state.is_demonstration,
        clarifications=map(_clarification_to_proto, state.clarifications),
        stop_reason=state.rounds_ended.reason,
        stop_explanation=state.rounds_ended.explanation,
    )


def summary_to_proto(record: DebateRecord) -> orchestrator_pb2.DebateSummary:
    """Return a debate as a list shows it."""
    created, updated = _stamp(record.created.removesuffix(f"/{record.debate}")), _stamp(record.updated)
    return orchestrator_pb2.DebateSummary(
        id=record.debate,
        status=status_to_proto(record.status),
        question=record.question,
        format=record.format,
        labels=labels_of(record.labels),
        create_time=created,
        update_time=updated,
    )


def contribution_to_proto(made: Contribution) -> debate_pb2.Contribution:
    """Return an agent's answer with what it took."""
    return debate_pb2.Contribution(
        key=made.key,
        work=made.work,
        reply=made.reply,
        attempt=made.attempt,
        recorded_at=timestamp(made.recorded_at),
        is_answer=made.is_answer,
        patterns=made.marks.patterns,
        fallacies=made.marks.fallacies,
    )


def failure_to_proto(failed: Failure) -> debate_pb2.FailedContribution:
    """Return a contribution that failed."""
    return debate_pb2.FailedContribution(
        key=failed.key,
        work=failed.step.work,
        reason=failed.step.reason,
        message=failed.step.message,
        attempt=failed.attempt,
        partial_text=failed.step.partial_text,
    )


def _clarification_to_proto(made: Clarification) -> debate_pb2.Clarification:
    return debate_pb2.Clarification(checkpoint=made.checkpoint, questions=made.questions, answer=made.answer)


def _waiting_to_proto(waiting: Waiting) -> debate_pb2.Waiting:
    opened = waiting.opened or CheckpointOpened()
    kind = opened.WhichOneof("request")
    return debate_pb2.Waiting(
        questions=opened.questions if kind == "questions" else None,
        direction=opened.direction if kind == "direction" else None,
        approval=opened.approval if kind == "approval" else None,
        checkpoint=waiting.checkpoint,
        message=waiting.message,
        until=timestamp(waiting.until),
        reason=waiting.reason,
        agent_id=waiting.agent,
        phase=waiting.phase,
    )


def _stamp(time: str) -> Timestamp:
    stamp = Timestamp()
    stamp.FromJsonString(time.replace("+00:00", "Z"))
    return stamp
