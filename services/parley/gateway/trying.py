"""One try at a route: within its time, and told to the route's breaker."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, Final, TypeVar

from parley.gateway import metrics
from parley.gateway.asking import Asking
from parley.gateway.breaker import Permit
from parley.gateway.call import Answer, Call, Progress, Tally, Timeouts
from parley.gateway.endpoint import Spent
from parley.gateway.errors_table import INVALID_ANSWER, TIMEOUT, UNFORESEEN, UNKNOWN_MODEL, AttemptFailed
from parley.gateway.fitting import estimate_tokens
from parley.gateway.routes import LiveRoute
from parley.gateway.tooling import documents_of
from parley.runtime.logs import get_logger

__all__ = ["Trying"]

_FAIR_SECONDS: Final = 1.0
"""A caller who gives an answer less time than this has its own impatience to blame."""

_logger = get_logger(__name__)

T = TypeVar("T")


class Trying:
    """Tries of one call."""

    def __init__(self, call: Call, tally: Tally, timeouts: Timeouts) -> None:
        self._call = call
        self._tally = tally
        self._timeouts = timeouts
        self._asked_tokens = 0
        self._documents = documents_of(call.prompt)

    def tokens(self, live: LiveRoute) -> int:
        """About how many tokens a try at this route takes; counted only where the route has a bound on them."""
        if not live.route.limits.tokens_per_minute:
            return 0
        if not self._asked_tokens:
            self._asked_tokens = sum(estimate_tokens(part.text) for part in self._call.prompt)
        return self._asked_tokens + (self._call.max_output_tokens or live.route.max_output_tokens)

    async def attempt(self, live: LiveRoute, permit: Permit, limit: float, progress: Progress) -> Answer:
        """The answer of a route within `limit` seconds. Raises AttemptFailed; the permit is given back in any case."""
        spent = self._tally.of(live)
        before = Spent(spent.requests, spent.input_tokens, spent.output_tokens)
        outcome = "cancelled"
        try:
            asking = Asking(live, self._call, self._documents, self._tally, progress)
            answer = await self._judged(live, permit, limit, asking.answer())
            outcome = "answered"
        except AttemptFailed as failure:
            failure.route = live.route.name
            outcome = failure.row.name
            raise
        else:
            return answer
        finally:
            took = spent.since(before)
            metrics.attempt_ended(live.route.name, outcome, took, live.route.cost_micros(took))

    async def first_model(self, live: LiveRoute, permit: Permit, limit: float) -> str:
        """The model that the provider of a default route lists first, within `limit` seconds.

        Raises AttemptFailed, always with a row that goes on to the next route; the permit is given back in any case.
        """
        try:
            return await self._judged(live, permit, limit, _first_model(live))
        except AttemptFailed as failure:
            failure.route = live.route.name
            raise

    async def _judged(self, live: LiveRoute, permit: Permit, limit: float, work: Coroutine[Any, Any, T]) -> T:
        # The local model is slow by nature and has nobody to fall back to: it gets what time there is.
        timeout = asyncio.timeout(None if live.route.local else limit)
        try:
            async with timeout:
                found = await work
        except AttemptFailed as failure:
            if failure.row.counts:
                live.breaker.failed(permit, failure.message)
            elif failure.row is INVALID_ANSWER:
                live.breaker.succeeded(permit)  # it answered, if not well
            else:
                live.breaker.release(permit)
            raise
        except TimeoutError:
            if not timeout.expired():
                live.breaker.release(permit)
                raise
            late = AttemptFailed(TIMEOUT, f"no answer within {limit:.3g} s")
            if limit >= min(_FAIR_SECONDS, self._timeouts.attempt_seconds):
                live.breaker.failed(permit, late.message)
            else:
                live.breaker.release(permit)
            raise late from None
        except Exception as error:
            # Whatever an endpoint came up with that nobody thought of is its failure, and must not keep others from
            # answering; the log has what is needed to find it.
            _logger.exception("an attempt ended in an unforeseen error", route=live.route.name)
            unforeseen = AttemptFailed(UNFORESEEN, f"an unforeseen error: {type(error).__name__}")
            live.breaker.failed(permit, unforeseen.message)
            raise unforeseen from error
        except BaseException:  # cancelled: says nothing of the route
            live.breaker.release(permit)
            raise
        live.breaker.succeeded(permit)
        return found


async def _first_model(live: LiveRoute) -> str:
    try:
        return await live.endpoint.first_model()
    except AttemptFailed as failure:
        if failure.row.next_route:
            raise
        raise replace(failure, row=UNKNOWN_MODEL) from None  # the call itself was not what it refused
