"""Reports feedback to ratings and memory: to the ratings at once if they are available, else again until both have it.

Feedback is in the store before it is reported, and both count it once however often it is reported. So neither a crash
nor a second replica loses it or counts it twice.
"""

import asyncio

from parley.orchestrator.log.feedback import Feedback, FeedbackStore
from parley.orchestrator.model.errors import ServiceUnavailableError, StepError
from parley.orchestrator.peers.services import Memory, Ratings
from parley.runtime.backoff import Backoff
from parley.runtime.clock import Clock, wait_or_timeout
from parley.runtime.labels import label_scope
from parley.runtime.logs import get_logger
from parley.storage.ports import StorageError
from parley.v1.memory_pb2 import RateDebateRequest
from parley.v1.ratings_pb2 import RecordFeedbackRequest

_BACKOFF = Backoff(first=0.5, maximum=60.0)
_POLL_SECONDS = 60.0
"""How often feedback is looked for that another replica recorded and could not report."""
_REPORT_NOW_SECONDS = 2.0
"""How long the caller waits until the ratings have the feedback; memory, which answers nothing of it, gets it later."""

_logger = get_logger(__name__)


class FeedbackReporter:
    """Reports all feedback to ratings and memory."""

    def __init__(self, store: FeedbackStore, ratings: Ratings, memory: Memory, clock: Clock) -> None:
        """Report the feedback in `store`."""
        self._store = store
        self._ratings = ratings
        self._memory = memory
        self._clock = clock
        self._wake = asyncio.Event()

    async def report_now_or_later(self, feedback: Feedback) -> Feedback:
        """Report feedback to the ratings now, or else later in `run`. Return it with its present state."""
        try:
            async with asyncio.timeout(_REPORT_NOW_SECONDS):
                with label_scope(tenant=feedback.tenant, debate=feedback.debate):
                    feedback = await self._rate_agents(feedback)
        except (TimeoutError, StorageError, ServiceUnavailableError) as error:
            _logger.info("feedback is reported later", error=str(error))
        if not feedback.is_reported:
            self._wake.set()
        return feedback

    async def run(self) -> None:
        """Report what is not reported yet, until cancelled."""
        pauses = _BACKOFF.pauses()
        while True:
            if await self._report_all():
                pauses, pause = _BACKOFF.pauses(), _POLL_SECONDS
            else:
                pause = next(pauses)
            await wait_or_timeout(self._wake, self._clock, pause)
            self._wake.clear()

    async def _report_all(self) -> bool:
        """Report all feedback. Return whether ratings and memory have everything now."""
        try:
            reported = [await self._report(each) for each in await self._store.list_unreported()]
        except StorageError as error:
            _logger.warning("store unavailable; feedback is reported later", error=str(error))
            return False
        except Exception:
            # One unreadable feedback must not end the orchestrator.
            _logger.exception("feedback could not be reported; trying again later")
            return False
        return all(each.is_reported for each in reported)

    async def _report(self, feedback: Feedback) -> Feedback:
        """Report feedback to ratings and memory. Return it with its present state."""
        with label_scope(tenant=feedback.tenant, debate=feedback.debate):
            try:
                feedback = await self._rate_agents(feedback)
                await self._rate_memory(feedback)
            except ServiceUnavailableError as unavailable:
                _logger.info("feedback is reported later", error=str(unavailable))
                return feedback
            return await self._store.mark_reported(feedback)

    async def _rate_agents(self, feedback: Feedback) -> Feedback:
        """Report feedback to the ratings, unless they have it. Return it with its present state."""
        if feedback.is_rated or feedback.is_reported:
            return feedback
        request = RecordFeedbackRequest(
            debate_id=feedback.debate,
            number=feedback.number,
            value=feedback.value,
            domain=feedback.domain,
            agent_ids=feedback.agents,
        )
        try:
            await self._ratings.record_feedback(request)
        except StepError as refused:
            # Every retry would be refused. The feedback stays with the debate.
            _logger.error("the ratings refuse feedback", reason=refused.reason, error=str(refused))  # noqa: TRY400
            return feedback
        return await self._store.mark_rated(feedback)

    async def _rate_memory(self, feedback: Feedback) -> None:
        request = RateDebateRequest(debate_id=feedback.debate, number=feedback.number, value=feedback.value)
        try:
            await self._memory.rate_debate(request)
        except StepError as refused:
            _logger.error("memory refuses feedback", reason=refused.reason, error=str(refused))  # noqa: TRY400
