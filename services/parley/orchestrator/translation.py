"""Between the orchestrator's own types and protobuf. Nothing is decided here but what an unset field means."""

from collections.abc import Mapping
from datetime import datetime
from typing import Final

from google.protobuf.duration_pb2 import Duration
from google.protobuf.timestamp_pb2 import Timestamp

from parley.orchestrator.agent_translation import agent_to_proto, summaries_to_proto, tool_call_to_proto
from parley.orchestrator.envelope import Envelope
from parley.orchestrator.events import DebateFailed, Solution, Usage
from parley.orchestrator.rows import Row
from parley.orchestrator.spec import Concurrency, DebateSpec, Limits, Termination
from parley.orchestrator.state import Contribution, DebateState, Failure, FirstDraftVote, Waiting
from parley.v1 import agent_pb2, orchestrator_pb2

__all__ = [
    "concurrency_from_proto",
    "debate_to_proto",
    "event_to_proto",
    "limits_from_proto",
    "seconds_of",
    "spec_to_proto",
    "status_from_proto",
    "status_to_proto",
    "summary",
    "synthesis_method_from_proto",
    "termination_from_proto",
    "usage_from_proto",
    "usage_to_proto",
]

_STATUS: Final = "DEBATE_STATUS_"
_RULE: Final = "TERMINATION_RULE_"
_METHOD: Final = "SYNTHESIS_METHOD_"

_KINDS: Final[Mapping[str, orchestrator_pb2.ContributionKind.ValueType]] = {
    "proposal": orchestrator_pb2.CONTRIBUTION_KIND_PROPOSAL,
    "critique": orchestrator_pb2.CONTRIBUTION_KIND_CRITIQUE,
    "refinement": orchestrator_pb2.CONTRIBUTION_KIND_REFINEMENT,
    "summary": orchestrator_pb2.CONTRIBUTION_KIND_SUMMARY,
    "synthesis": orchestrator_pb2.CONTRIBUTION_KIND_SYNTHESIS,
    "assessment": orchestrator_pb2.CONTRIBUTION_KIND_ASSESSMENT,
}


def status_to_proto(status: str) -> orchestrator_pb2.DebateStatus.ValueType:
    """Return a state of rows.py as the contract names it."""
    return orchestrator_pb2.DebateStatus.Value(_STATUS + status)


def status_from_proto(status: orchestrator_pb2.DebateStatus.ValueType) -> str:
    """Return a state as rows.py names it. Raises ValueError for a number that is no state."""
    if status == orchestrator_pb2.DEBATE_STATUS_UNSPECIFIED:
        raise ValueError("the status is not said")
    return orchestrator_pb2.DebateStatus.Name(status).removeprefix(_STATUS)


def usage_from_proto(usage: agent_pb2.Usage) -> Usage:
    """Return usage; a cost that is not set is unknown."""
    return Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cost_micros=usage.cost_micros if usage.HasField("cost_micros") else None,
        attempts=usage.attempts,
    )


def usage_to_proto(usage: Usage) -> agent_pb2.Usage:
    """Return usage; a cost that is unknown stays unset."""
    return agent_pb2.Usage(
        input_tokens=usage.input_tokens,
        output_tokens=usage.output_tokens,
        cost_micros=usage.cost_micros,
        attempts=usage.attempts,
    )


def termination_from_proto(termination: orchestrator_pb2.Termination) -> Termination:
    """Return when the rounds end, with the defaults in place of what is unset.

    Raises:
        ValueError: the rule is a number that names none.
    """
    default = Termination()
    rule = orchestrator_pb2.TerminationRule.Name(termination.rule).removeprefix(_RULE).lower()
    return Termination(
        rule=rule if termination.rule else default.rule,
        threshold_percent=termination.threshold_percent or default.threshold_percent,
    )


def synthesis_method_from_proto(method: orchestrator_pb2.SynthesisMethod.ValueType) -> str:
    """Return how the answer is made, by default `judge`. Raises ValueError for a number that names no method."""
    name = orchestrator_pb2.SynthesisMethod.Name(method).removeprefix(_METHOD).lower()
    return name if method else "judge"


def spec_to_proto(spec: DebateSpec) -> orchestrator_pb2.DebateSpec:
    """Return a specification with its agents inline and every setting said."""
    return orchestrator_pb2.DebateSpec(
        question=spec.question,
        context=[orchestrator_pb2.ContextDocument(path=read.path, text=read.text) for read in spec.context],
        format=spec.format,
        agents=[orchestrator_pb2.Participant(agent=agent_to_proto(agent)) for agent in spec.agents],
        judge=orchestrator_pb2.Participant(agent=agent_to_proto(spec.judge)),
        rounds=spec.rounds,
        include_full_history=spec.include_full_history,
        carry_forward=spec.carry_forward,
        summaries=summaries_to_proto(spec.summaries),
        limits=_limits_to_proto(spec),
        max_output_tokens=spec.max_output_tokens,
        termination=orchestrator_pb2.Termination(
            rule=orchestrator_pb2.TerminationRule.Value(_RULE + spec.termination.rule.upper()),
            threshold_percent=spec.termination.threshold_percent,
        ),
        synthesis_method=orchestrator_pb2.SynthesisMethod.Value(_METHOD + spec.synthesis_method.upper()),
        history_limit=spec.history_limit,
        domain=spec.domain,
        max_concurrent_proposals=spec.concurrency.proposals,
        max_concurrent_critiques=spec.concurrency.critiques,
        max_concurrent_revisions=spec.concurrency.revisions,
    )


def seconds_of(limits: orchestrator_pb2.DebateLimits, name: str, default: float) -> float:
    """Return a time limit in seconds, or the default where it is unset."""
    return getattr(limits, name).ToMilliseconds() / 1000 if limits.HasField(name) else default  # type: ignore[arg-type]


def limits_from_proto(limits: orchestrator_pb2.DebateLimits) -> Limits:
    """Return the limits of a debate, with the defaults in place of what is unset."""
    default = Limits()
    return Limits(
        round_seconds=seconds_of(limits, "round", default.round_seconds),
        total_seconds=seconds_of(limits, "total", default.total_seconds),
        checkpoint_seconds=seconds_of(limits, "checkpoint", default.checkpoint_seconds),
        waiting_seconds=seconds_of(limits, "waiting", default.waiting_seconds),
        max_tokens=limits.max_tokens,
        max_cost_micros=limits.max_cost_micros,
    )


def _limits_to_proto(spec: DebateSpec) -> orchestrator_pb2.DebateLimits:
    limits = spec.limits
    return orchestrator_pb2.DebateLimits(
        call=_seconds(spec.call_seconds),
        round=_seconds(limits.round_seconds),
        total=_seconds(limits.total_seconds) if limits.total_seconds else None,
        checkpoint=_seconds(limits.checkpoint_seconds),
        waiting=_seconds(limits.waiting_seconds),
        max_tokens=limits.max_tokens,
        max_cost_micros=limits.max_cost_micros,
    )


def concurrency_from_proto(spec: orchestrator_pb2.DebateSpec) -> Concurrency:
    """Return how many calls run at a time."""
    return Concurrency(
        spec.max_concurrent_proposals, spec.max_concurrent_critiques, spec.max_concurrent_revisions
    )


def event_to_proto(event: Envelope) -> orchestrator_pb2.Event:
    """Return an event with its payload as stored."""
    return orchestrator_pb2.Event(
        sequence=event.sequence,
        epoch=event.epoch,
        key=event.key,
        attempt=event.attempt,
        kind=event.kind,
        schema_version=event.schema,
        time=_timestamp(event.time),
        payload_json=event.payload_text,
        hash=event.hash,
    )


def debate_to_proto(state: DebateState) -> orchestrator_pb2.Debate:
    """Return a debate as its log tells it."""
    vote = state.first_draft_vote
    return orchestrator_pb2.Debate(
        id=state.debate,
        status=status_to_proto(state.status),
        phase=state.phase,
        spec=spec_to_proto(state.spec),
        contributions=[_contribution(made) for made in state.contributions],
        failures=[_failed_contribution(failed) for failed in state.failures],
        solution=_solution(state.solution) if state.solution else None,
        failure=_debate_failure(state.failure) if state.failure else None,
        usage=usage_to_proto(state.usage),
        calls=state.calls,
        created_at=_timestamp(state.created_at),
        updated_at=_timestamp(state.updated_at),
        last_sequence=state.last_sequence,
        warnings=state.warnings,
        current_round=state.current_round,
        first_draft_vote=_vote(vote) if vote else None,
        recalled_debate_ids=state.recalled,
        waiting=_waiting(state.waiting) if state.waiting else None,
        ended_by=state.ended_by,
    )


def summary(row: Row) -> orchestrator_pb2.DebateSummary:
    """Return a debate as a list shows it."""
    created = row.created.removesuffix(f"/{row.debate}")
    return orchestrator_pb2.DebateSummary(
        id=row.debate,
        status=status_to_proto(row.status),
        question=row.question,
        format=row.format,
        created_at=_timestamp(datetime.fromisoformat(created)),
        updated_at=_timestamp(datetime.fromisoformat(row.updated)),
    )


def _contribution(made: Contribution) -> orchestrator_pb2.Contribution:
    return orchestrator_pb2.Contribution(
        key=made.key,
        agent_id=made.work.agent,
        kind=_KINDS.get(made.work.activity, orchestrator_pb2.CONTRIBUTION_KIND_UNSPECIFIED),
        round=made.work.round,
        target_agent_id=made.work.target,
        summarized_characters=made.work.summarized,
        text=made.reply.text,
        position=made.reply.position,
        usage=usage_to_proto(made.reply.usage),
        latency=_duration(made.reply.latency_ms),
        route=made.reply.route,
        model=made.reply.model,
        attempt=made.attempt,
        recorded_at=_timestamp(made.recorded_at),
        tool_calls=map(tool_call_to_proto, made.reply.tool_calls),
    )


def _failed_contribution(failed: Failure) -> orchestrator_pb2.FailedContribution:
    work = failed.step.work
    return orchestrator_pb2.FailedContribution(
        key=failed.key,
        agent_id=work.agent,
        kind=_KINDS.get(work.activity, orchestrator_pb2.CONTRIBUTION_KIND_UNSPECIFIED),
        round=work.round,
        reason=failed.step.reason,
        message=failed.step.message,
        attempt=failed.attempt,
    )


def _waiting(waiting: Waiting) -> orchestrator_pb2.Waiting:
    return orchestrator_pb2.Waiting(
        checkpoint=waiting.checkpoint,
        message=waiting.message,
        until=_timestamp(waiting.until),
        reason=waiting.reason,
        agent_id=waiting.agent,
        phase=waiting.phase,
    )


def _debate_failure(failure: DebateFailed) -> orchestrator_pb2.DebateFailure:
    return orchestrator_pb2.DebateFailure(
        reason=failure.reason,
        message=failure.message,
        agent_id=failure.agent,
        phase=failure.phase,
        steps=failure.steps,
    )


def _solution(solution: Solution) -> orchestrator_pb2.Solution:
    return orchestrator_pb2.Solution(
        description=solution.description,
        implementation=solution.implementation,
        tradeoffs=solution.tradeoffs,
        recommendations=solution.recommendations,
        unfulfilled_requirements=[
            orchestrator_pb2.UnfulfilledRequirement(text=unmet.text, hard=unmet.hard)
            for unmet in solution.unfulfilled_requirements
        ],
        open_questions=solution.open_questions,
        confidence=solution.confidence,
        synthesized_by=solution.synthesized_by,
        scores=[
            orchestrator_pb2.AgentScore(agent_id=agent, score=score)
            for agent, score in sorted(solution.scores.items())
        ],
    )


def _vote(vote: FirstDraftVote) -> orchestrator_pb2.FirstDraftVote:
    groups = [
        orchestrator_pb2.DraftGroup(agent_ids=group.agents, position=group.position) for group in vote.groups
    ]
    return orchestrator_pb2.FirstDraftVote(groups=groups, majority=vote.majority)


def _timestamp(time: datetime) -> Timestamp:
    stamp = Timestamp()
    stamp.FromDatetime(time)
    return stamp


def _seconds(seconds: float) -> Duration:
    return _duration(round(seconds * 1000))


def _duration(milliseconds: int) -> Duration:
    duration = Duration()
    duration.FromMilliseconds(milliseconds)
    return duration
