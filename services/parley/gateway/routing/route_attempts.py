"""One route attempt: within its time, and with its outcome recorded at the route's breaker."""

import asyncio
from collections.abc import Coroutine
from dataclasses import replace
from typing import Any, TypeVar

from parley.gateway.failures import (
    INVALID_ANSWER,
    TIMEOUT,
    TRUNCATED,
    UNFORESEEN,
    UNKNOWN_MODEL,
    Failure,
    format_seconds,
)
from parley.gateway.prompt.documents import Documents, numbers_in
from parley.gateway.prompt.fitting import estimate_tokens
from parley.gateway.routing import metrics
from parley.gateway.routing.breaker import Permit
from parley.gateway.routing.call import Call, Progress, Timeouts
from parley.gateway.routing.exchange import Exchange
from parley.gateway.routing.route import LiveRoute
from parley.gateway.usage import RouteUsage, UsageMeter
from parley.gateway.wire.endpoint import ListedModel
from parley.runtime.logs import get_logger
from parley.v1.gateway_pb2 import GenerateCompleted

_logger = get_logger(__name__)

T = TypeVar("T")


class RouteAttempts:
    """The route attempts of one call."""

    def __init__(self, call: Call, meter: UsageMeter, timeouts: Timeouts) -> None:
        self._call = call
        self._meter = meter
        self._timeouts = timeouts
        self._asked_tokens = 0
        self._documents = Documents(call.documents, numbers_in(call.request.prompt) if call.documents else {})

    def tokens(self, live: LiveRoute) -> int:
        """Return about how many tokens an attempt at this route takes; counted only if the route has a bound on them."""
        if not live.route.limits.tokens_per_minute:
            return 0
        if not self._asked_tokens:
            self._asked_tokens = self._call.count(estimate_tokens)
        return self._asked_tokens + self._call.output_tokens_at(live.route)

    async def answer(
        self, live: LiveRoute, permit: Permit, limit: float, progress: Progress
    ) -> GenerateCompleted:
        """Return the answer of a route within `limit` seconds. Raise Failure; the permit is given back in any case."""
        used = self._meter.of(live.route)
        before = RouteUsage(used.requests, used.input_tokens, used.output_tokens)
        outcome = "cancelled"
        try:
            asking = Exchange(live, self._call, self._documents, self._meter, progress)
            answer = await self._run_attempt(live, permit, limit, asking.answer())
            outcome = "answered"
        except Failure as failure:
            failure.route = live.route.name
            outcome = failure.kind.name
            raise
        else:
            return answer
        finally:
            took = used.since(before)
            metrics.record_route_attempt(live.route.name, outcome, took, live.route.cost_micros(took))

    async def list_models(self, live: LiveRoute, permit: Permit, limit: float) -> tuple[ListedModel, ...]:
        """Return the models that the provider of a default route lists, at least one, within `limit` seconds.

        Raise Failure, always of a kind that goes on to the next route; the permit is given back in any case.
        """
        try:
            return await self._run_attempt(live, permit, limit, _list_models(live))
        except Failure as failure:
            failure.route = live.route.name
            raise

    async def _run_attempt(
        self, live: LiveRoute, permit: Permit, limit: float, work: Coroutine[Any, Any, T]
    ) -> T:
        # The local model is slow by nature and has no other route to fall back to: it gets what time there is.
        timeout = asyncio.timeout(None if live.route.local else limit)
        try:
            async with timeout:
                found = await work
        except Failure as failure:
            if failure.kind.counts:
                live.breaker.record_failure(permit, failure.message)
            elif failure.kind in {INVALID_ANSWER, TRUNCATED}:
                live.breaker.record_success(permit)  # it answered, if not well
            else:
                live.breaker.release(permit)
            raise
        except TimeoutError:
            if not timeout.expired():
                live.breaker.release(permit)
                raise
            late = Failure(TIMEOUT, f"no answer within {format_seconds(limit)}")
            if limit >= self._timeouts.full_attempt_seconds:
                live.breaker.record_failure(permit, late.message)
            else:  # its caller gave it less time than other callers may
                live.breaker.release(permit)
            raise late from None
        except Exception as error:
            # Whatever an endpoint came up with that was not foreseen is its failure, and must not keep others from
            # answering; the log has what is needed to find it.
            _logger.exception("a route attempt ended in an unforeseen error", route=live.route.name)
            unforeseen = Failure(UNFORESEEN, f"an unforeseen error: {type(error).__name__}")
            live.breaker.record_failure(permit, unforeseen.message)
            raise unforeseen from error
        except BaseException:  # cancelled: says nothing of the route
            live.breaker.release(permit)
            raise
        live.breaker.record_success(permit)
        return found


async def _list_models(live: LiveRoute) -> tuple[ListedModel, ...]:
    try:
        return await live.endpoint.list_models()
    except Failure as failure:
        if failure.kind.next_route:
            raise
        raise replace(failure, kind=UNKNOWN_MODEL) from None  # the call itself was not what it refused
