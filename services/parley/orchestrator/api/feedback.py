"""People's feedback on completed debates, between the contract and the store."""

from datetime import datetime
from typing import Final

from parley.orchestrator.api.requests import check_debate_id, check_request_id
from parley.orchestrator.engine.format import Format
from parley.orchestrator.log.feedback import Feedback
from parley.orchestrator.model.spec import participants_of
from parley.orchestrator.model.times import timestamp
from parley.runtime.errors import failed_precondition
from parley.runtime.validation import Violations
from parley.v1 import debate_pb2, orchestrator_pb2

_MAX_MESSAGE_BYTES: Final = 8 * 1024


def check_feedback(request: orchestrator_pb2.SubmitFeedbackRequest) -> None:
    """Refuse a request with bad fields. Raise ParleyError: INVALID_ARGUMENT with every bad field."""
    violations = Violations()
    check_request_id(violations, request.request_id)
    check_debate_id(violations, request.debate_id)
    violations.check(that=request.value in (1, -1), field="value", otherwise="must be 1 or -1")
    fits = len(request.message.encode()) <= _MAX_MESSAGE_BYTES and "\0" not in request.message
    violations.check(that=fits, field="message", otherwise="must be at most 8 KiB, without a NUL character")
    violations.refuse()


def feedback_of(
    request: orchestrator_pb2.SubmitFeedbackRequest,
    tenant: str,
    debate: debate_pb2.Debate,
    debate_format: Format | None,
    now: datetime,
) -> Feedback:
    """Return the feedback in a request, on a debate. Raise ParleyError if the debate is of another system."""
    if debate.HasField("imported"):
        message = f"debate {debate.id} was imported; give feedback where it was held"
        raise failed_precondition("DEBATE_IMPORTED", message)
    is_recorded = debate_format is None or debate_format.is_recorded
    is_rated = is_recorded and not debate.demonstration
    agents = tuple(each.id for each in participants_of(debate)) if is_rated else ()
    time = now.isoformat(timespec="microseconds")
    return Feedback(
        tenant=tenant,
        debate=request.debate_id,
        request_id=request.request_id,
        value=request.value,
        message=request.message.strip(),
        given_at=f"{time}/{tenant}/{request.debate_id}/{request.request_id}",
        agents=agents,
        domain=debate.spec.domain,
        is_reported=not agents,
    )


def feedback_to_proto(feedback: Feedback) -> debate_pb2.Feedback:
    """Return feedback as the contract has it."""
    return debate_pb2.Feedback(
        value=feedback.value,
        message=feedback.message,
        given_at=timestamp(datetime.fromisoformat(feedback.given_at.partition("/")[0])),
        number=feedback.number,
        agent_ids=feedback.agents,
        rated=feedback.is_rated,
    )
