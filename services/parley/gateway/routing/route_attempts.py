"""One route attempt: within its time, and told to the route's breaker."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, TypeVar

from parley.gateway.answer import Answer
from parley.gateway.failures import (
    INVALID_ANSWER,
    TIMEOUT,
    TRUNCATED,
    UNFORESEEN,
    UNKNOWN_MODEL,
    Failure,
)
from parley.gateway.prompt.document_parts import documents_of
from parley.gateway.prompt.tokens import estimate_tokens
from parley.gateway.routing import metrics
from parley.gateway.routing.breaker import Permit
from parley.gateway.routing.call import Call, Progress, Timeouts
from parley.gateway.routing.exchange import Exchange
from parley.gateway.routing.route import LiveRoute
from parley.gateway.usage import RouteUsage, UsageMeter
from parley.gateway.wire.listed_models import ListedModel
from parley.runtime.logs import get_logger

__all__ = ["RouteAttempts"]

_logger = get_logger(__name__)

T = TypeVar("T")


class RouteAttempts:
    """The route attempts of one call."""

    def __init__(self, call: Call, meter: UsageMeter, timeouts: Timeouts) -> None:
        self._call = call
        self._meter = meter
        self._timeouts = timeouts
        self._asked_tokens = 0
        self._documents = documents_of(call.prompt)

    def tokens(self, live: LiveRoute) -> int:
        """Return about how many tokens an attempt at this route takes; counted only where the route has a bound on them."""
        if not live.route.limits.tokens_per_minute:
            return 0
        if not self._asked_tokens:
            self._asked_tokens = sum(estimate_tokens(part.text) for part in self._call.prompt)
        return self._asked_tokens + self._call.output_tokens_at(live.route)

    async def answer(self, live: LiveRoute, permit: Permit, limit: float, progress: Progress) -> Answer:
        """Return the answer of a route within `limit` seconds. Raises Failure; the permit is given back in any case."""
        used = self._meter.of(live.route)
        before = RouteUsage(used.requests, used.input_tokens, used.output_tokens)
        outcome = "cancelled"
        try:
            asking = Exchange(live, self._call, self._documents, self._meter, progress)
            answer = await self._judged(live, permit, limit, asking.answer())
            outcome = "answered"
        except Failure as failure:
            failure.route = live.route.name
            outcome = failure.kind.name
            raise
        else:
            return answer
        finally:
            took = used.since(before)
            metrics.route_attempt_ended(live.route.name, outcome, took, live.route.cost_micros(took))

    async def models(self, live: LiveRoute, permit: Permit, limit: float) -> tuple[ListedModel, ...]:
        """Return the models that the provider of a default route lists, at least one, within `limit` seconds.

        Raises Failure, always of a kind that goes on to the next route; the permit is given back in any case.
        """
        try:
            return await self._judged(live, permit, limit, _models(live))
        except Failure as failure:
            failure.route = live.route.name
            raise

    async def _judged(self, live: LiveRoute, permit: Permit, limit: float, work: Coroutine[Any, Any, T]) -> T:
        # The local model is slow by nature and has nobody to fall back to: it gets what time there is.
        timeout = asyncio.timeout(None if live.route.local else limit)
        try:
            async with timeout:
                found = await work
        except Failure as failure:
            if failure.kind.counts:
                live.breaker.failed(permit, failure.message)
            elif failure.kind in {INVALID_ANSWER, TRUNCATED}:
                live.breaker.succeeded(permit)  # it answered, if not well
            else:
                live.breaker.release(permit)
            raise
        except TimeoutError:
            if not timeout.expired():
                live.breaker.release(permit)
                raise
            late = Failure(TIMEOUT, f"no answer within {limit:.3g} s")
            if limit >= self._timeouts.full_attempt_seconds:
                live.breaker.failed(permit, late.message)
            else:  # its caller gave it less time than anybody else may want to
                live.breaker.release(permit)
            raise late from None
        except Exception as error:
            # Whatever an endpoint came up with that nobody thought of is its failure, and must not keep others from
            # answering; the log has what is needed to find it.
            _logger.exception("a route attempt ended in an unforeseen error", route=live.route.name)
            unforeseen = Failure(UNFORESEEN, f"an unforeseen error: {type(error).__name__}")
            live.breaker.failed(permit, unforeseen.message)
            raise unforeseen from error
        except BaseException:  # cancelled: says nothing of the route
            live.breaker.release(permit)
            raise
        live.breaker.succeeded(permit)
        return found


async def _models(live: LiveRoute) -> tuple[ListedModel, ...]:
    try:
        return await live.endpoint.models()
    except Failure as failure:
        if failure.kind.next_route:
            raise
        raise replace(failure, kind=UNKNOWN_MODEL) from None  # the call itself was not what it refused
