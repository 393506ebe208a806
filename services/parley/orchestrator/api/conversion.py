"""What the edge answers, as the contract's messages. Nothing is decided here."""

from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

from parley.orchestrator.api.answer import answer_markdown
from parley.orchestrator.api.state import DebateState
from parley.orchestrator.engine.format import Format
from parley.orchestrator.log.index import DebateRecord
from parley.orchestrator.model.labels import labels_of
from parley.orchestrator.model.times import timestamp
from parley.v1 import debate_pb2, orchestrator_pb2
from parley.v1.debate_pb2 import DebateSpec

__all__ = [
    "debate_to_proto",
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
    debate.contributions.extend(state.contributions)
    debate.failures.extend(state.failures)
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
        waiting=state.waiting,
        ended_by=state.ended_by,
        demonstration=state.is_demonstration,
        clarifications=state.clarifications,
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


def _stamp(time: str) -> Timestamp:
    stamp = Timestamp()
    stamp.FromJsonString(time.replace("+00:00", "Z"))
    return stamp
