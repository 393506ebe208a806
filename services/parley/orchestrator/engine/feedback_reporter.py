"""Reports feedback to the ratings: at once if they are available, else again until they have it.

Feedback is in the store before it is reported, and the ratings count it once however often it is reported. So neither a crash
nor a second replica loses it or counts it twice.
"""

import asyncio

from parley.orchestrator.log.feedback import Feedback, FeedbackStore
from parley.orchestrator.model.errors import ServiceUnavailableError, StepError
from parley.orchestrator.peers.services import Ratings
from parley.runtime.backoff import Backoff
from parley.runtime.clock import Clock
from parley.runtime.labels import label_scope
from parley.runtime.logs import get_logger
from parley.storage.ports import StorageError
from parley.v1.ratings_pb2 import RecordFeedbackRequest

_BACKOFF = Backoff(first=0.5, maximum=60.0)
_POLL_SECONDS = 60.0
"""How often feedback is looked for that another replica recorded and could not report."""
_REPORT_NOW_SECONDS = 2.0
"""How long the caller waits until the ratings have the feedback."""

_logger = get_logger(__name__)


class FeedbackReporter:
    """Reports all feedback to the ratings."""

    def __init__(self, store: FeedbackStore, ratings: Ratings, clock: Clock) -> None:
        """Report the feedback in `store`."""
        self._store = store
        self._ratings = ratings
        self._clock = clock
        self._wake = asyncio.Event()

    async def report_now_or_later(self, feedback: Feedback) -> Feedback:
        """Report feedback now, or else later in `run`. Return it with its present state."""
        try:
            async with asyncio.timeout(_REPORT_NOW_SECONDS):
                feedback = await self._report(feedback)
        except (TimeoutError, StorageError) as error:
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
            await self._wait(pause)

    async def _wait(self, seconds: float) -> None:
        """Wait so long, or until there is new feedback to report."""
        sleeping = asyncio.create_task(self._clock.sleep(seconds))
        woken = asyncio.create_task(self._wake.wait())
        try:
            await asyncio.wait({sleeping, woken}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            sleeping.cancel()
            woken.cancel()
            await asyncio.wait({sleeping, woken})
        self._wake.clear()

    async def _report_all(self) -> bool:
        """Report all feedback. Return whether the ratings have everything now."""
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
        """Report feedback, unless it was reported. Return it with its present state."""
        if feedback.is_reported:
            return feedback
        request = RecordFeedbackRequest(
            debate_id=feedback.debate,
            number=feedback.number,
            value=feedback.value,
            domain=feedback.domain,
            agent_ids=feedback.agents,
        )
        with label_scope(tenant=feedback.tenant, debate=feedback.debate):
            try:
                await self._ratings.record_feedback(request)
            except ServiceUnavailableError as unavailable:
                _logger.info("feedback is reported later", error=str(unavailable))
                return feedback
            except StepError as refused:
                # Every retry would be refused. The feedback stays with the debate.
                _logger.error("the ratings refuse feedback", reason=refused.reason, error=str(refused))  # noqa: TRY400
                return await self._store.mark_reported(feedback, is_rated=False)
            return await self._store.mark_reported(feedback, is_rated=True)
