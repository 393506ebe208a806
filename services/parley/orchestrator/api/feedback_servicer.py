"""The RPC by which people say what they think of a completed debate."""

import grpc

from parley.orchestrator.api.feedback import check_feedback, feedback_of, feedback_to_proto
from parley.orchestrator.api.folded_debates import FoldedDebates
from parley.orchestrator.api.reading import require_completed
from parley.orchestrator.api.store_trouble import map_store_errors
from parley.orchestrator.engine.feedback_reporter import FeedbackReporter
from parley.orchestrator.engine.format import Formats
from parley.orchestrator.engine.intake import Intake
from parley.orchestrator.log.feedback import FeedbackReusedError, FeedbackStore
from parley.runtime.errors import ParleyError
from parley.runtime.identity.identity import current_tenant
from parley.v1 import orchestrator_pb2, orchestrator_pb2_grpc


class FeedbackServicer(orchestrator_pb2_grpc.OrchestratorServiceServicer):
    """Answers for feedback on the caller's debates."""

    __slots__ = ()

    debates: FoldedDebates
    formats: Formats
    intake: Intake
    feedback: FeedbackStore
    reporter: FeedbackReporter

    async def SubmitFeedback(  # noqa: N802
        self,
        request: orchestrator_pb2.SubmitFeedbackRequest,
        _context: object,
    ) -> orchestrator_pb2.SubmitFeedbackResponse:
        """Record a person's feedback on a debate."""
        check_feedback(request)
        debate = require_completed(
            await self.debates.get(current_tenant(), request.debate_id), "takes feedback"
        )
        now = self.intake.clock.now()
        feedback = feedback_of(request, current_tenant(), debate, self.formats.find(debate.spec.format), now)
        with map_store_errors():
            try:
                recorded, existed = await self.feedback.put(feedback)
            except FeedbackReusedError:
                message = f"request id {request.request_id!r} was already used for different feedback on {request.debate_id}"
                resource = ("feedback", request.request_id)
                code = grpc.StatusCode.ALREADY_EXISTS
                raise ParleyError(code, "REQUEST_ID_REUSED", message, resource=resource) from None
        reported = await self.reporter.report_now_or_later(recorded)
        return orchestrator_pb2.SubmitFeedbackResponse(feedback=feedback_to_proto(reported), existed=existed)
