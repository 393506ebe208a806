"""A call: routes in order, pauses, fallback, and hedging if that is wanted."""

import asyncio
import random
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import replace
from typing import Any, Final

from parley.gateway.failures import (
    AUTH,
    CALL_TIMEOUT,
    NO_ROUTE,
    QUOTA,
    UNKNOWN_MODEL,
    UNREACHABLE,
    Failure,
    FailureKind,
    format_seconds,
)
from parley.gateway.routing import metrics
from parley.gateway.routing.breaker import Flight
from parley.gateway.routing.call import Call, Progress, Timeouts
from parley.gateway.routing.hedge import Hedge
from parley.gateway.routing.queue import NoSlot, Slot
from parley.gateway.routing.route import LiveRoute
from parley.gateway.routing.route_attempts import RouteAttempts
from parley.gateway.routing.table import RouteTable
from parley.gateway.usage import UsageMeter
from parley.runtime.backoff import Backoff
from parley.runtime.logs import get_logger
from parley.v1.gateway_pb2 import GenerateCompleted

_MAX_ATTEMPTS_AT_A_ROUTE: Final = 3
_MAX_PAUSE_SECONDS: Final = 8.0
_QUEUE_SHARE: Final = 0.1
"""Of a call's time that is left, how much it waits for a slot at a route while another one is free."""
_MIN_SECONDS: Final = 0.1
"""Seconds that must be left for another route attempt."""

_LASTING: Final = (AUTH, QUOTA, UNKNOWN_MODEL, UNREACHABLE)
"""What a person has to mend."""
_logger = get_logger(__name__)


class Fallback:
    """Makes calls over the routes of a table."""

    def __init__(self, table: RouteTable, timeouts: Timeouts) -> None:
        self._table = table
        self._timeouts = timeouts
        self._random = random.Random()  # noqa: S311 (jitter)

    async def answer(
        self, call: Call, ends: float, meter: UsageMeter, progress: Progress
    ) -> GenerateCompleted:
        """Return the answer of one of the call's routes until `ends`, in the loop's time.

        Raise Failure with the route that failed last.
        """
        routes = self._table.choose(call.request.agent.routes)
        await self._table.learn_prices(routes)
        seconds = max(ends - asyncio.get_running_loop().time(), 0.0)
        running = _RoutedCall(self, call, routes, meter, progress)
        try:
            async with asyncio.timeout(seconds) as timeout:
                running.ends = timeout.when() or 0.0
                return await running.answer()
        except TimeoutError:
            raise _add_history(
                Failure(CALL_TIMEOUT, f"no answer within {format_seconds(seconds)}"), running.failures
            ) from None

    def pauses(self) -> Iterator[float]:
        """Yield the pauses of one call before it goes round the routes again: they grow, and half of each is chance."""
        first = min(self._timeouts.first_pause_seconds, _MAX_PAUSE_SECONDS)
        return Backoff(first, _MAX_PAUSE_SECONDS, jitter=0.5).pauses(self._random.random)

    @property
    def timeouts(self) -> Timeouts:
        """What a route attempt may take."""
        return self._timeouts

    @property
    def table(self) -> RouteTable:
        """The routes."""
        return self._table


class _RoutedCall:
    def __init__(
        self,
        fallback: Fallback,
        call: Call,
        routes: Sequence[LiveRoute],
        meter: UsageMeter,
        progress: Progress,
    ) -> None:
        self._fallback = fallback
        self._routes = routes
        self._conversation = call.labels.conversation
        self._meter = meter
        self._progress = progress
        self._loop = asyncio.get_running_loop()
        self._attempts = RouteAttempts(call, meter, fallback.timeouts)
        self._pauses = fallback.pauses()
        self._asked_not_before: dict[str, float] = {}
        self._flight, self._flies_at = Flight(), ""
        self.failures: dict[str, Failure] = {}
        self.ends = 0.0

    async def answer(self) -> GenerateCompleted:
        """Return what the first of the routes to answer says. Raise Failure."""
        try:
            return await self._try_rounds()
        finally:
            self._flight.end()

    async def _try_rounds(self) -> GenerateCompleted:
        """Go round the routes until one answers, or none may be asked any more."""
        candidates = list(self._routes)
        number = 1
        while True:
            candidates = [live for live in candidates if self._may_be_asked(live)]
            answer, asked = await self._try_round(candidates)
            if answer is not None:
                return answer
            candidates = [self._fallback.table.resolve(live) for live in candidates]
            if not asked:
                if await self._wait_for_trial(candidates) or await self._wait_for_rest(candidates):
                    continue
                break
            if number == _MAX_ATTEMPTS_AT_A_ROUTE or not await self._pause(candidates):
                break
            number += 1
        raise self._final_failure()

    async def _try_round(self, candidates: Sequence[LiveRoute]) -> tuple[GenerateCompleted | None, bool]:
        """Ask each route once, in order: the answer if there is one, and whether any was asked at all."""
        asked: set[str] = set()
        for index, live in enumerate(candidates):
            if live.route.name in asked:
                continue
            following = candidates[index + 1 :]
            if self._fallback.timeouts.hedge_seconds is None or not following:
                answer, was_asked = await self._ask(live, self._progress, following)
                asked |= {live.route.name} if was_asked else set()
            else:
                answer, names = await self._ask_hedged(live, following)
                asked |= names
            if answer is not None:
                return answer, True
        return None, bool(asked)

    async def _ask_hedged(
        self, live: LiveRoute, following: Sequence[LiveRoute]
    ) -> tuple[GenerateCompleted | None, set[str]]:
        """Make a route attempt, and a concurrent one at the next route if it stays silent: the answer, and the routes asked."""

        def ask(
            live: LiveRoute, progress: Progress
        ) -> Coroutine[Any, Any, tuple[GenerateCompleted | None, bool]]:
            return self._ask(live, progress, following)

        hedge = Hedge(self._progress, self._fallback.timeouts.hedge_seconds or 0.0)
        (answer, was_asked), other = await hedge.run(
            live, [each for each in following if self._is_free(each)], ask
        )
        asked = {live.route.name} if was_asked else set()
        return answer, asked | ({other.route.name} if other is not None else set())

    def _is_free(self, live: LiveRoute) -> bool:
        return live.breaker.would_admit and self._not_before(live) <= self._loop.time()

    def _may_be_asked(self, live: LiveRoute) -> bool:
        failure = self.failures.get(live.route.name)
        return failure is None or failure.kind.again

    def _not_before(self, live: LiveRoute) -> float:
        """Return until when its endpoint asked to be left alone, by this call or another."""
        return max(self._asked_not_before.get(live.route.name, 0.0), live.queue.rests_until)

    async def _ask(
        self, live: LiveRoute, progress: Progress, following: Sequence[LiveRoute]
    ) -> tuple[GenerateCompleted | None, bool]:
        """Make one route attempt: the answer if there is one, and whether it was asked at all."""
        if not live.route.model:
            found, asked = await self._resolve_model(live, others_follow=bool(following))
            if found is None:
                return None, asked
            live = found
        if self._not_before(live) > self._loop.time():
            return None, False
        conversation, tokens = self._conversation, self._attempts.tokens(live)
        waiting_since = self._loop.time()
        try:
            slot = await live.queue.take_slot(conversation, tokens, self._queue_seconds(live, following))
        except NoSlot:
            return None, False
        finally:
            waited = self._loop.time() - waiting_since
            self._meter.queued_seconds += waited
            metrics.record_wait(live.route.name, waited)
        with slot:
            return await self._ask_in_slot(slot, live, progress, others_follow=bool(following))

    async def _resolve_model(self, live: LiveRoute, *, others_follow: bool) -> tuple[LiveRoute | None, bool]:
        """Return the route that one without a model stands for, and whether its provider was asked for its models."""
        table = self._fallback.table
        known = table.resolve(live)
        if known is not live:
            return known, False
        if self._not_before(live) > self._loop.time():
            return None, False
        permit = await live.admit()
        if permit is None:
            return None, False
        try:
            limit = self._route_attempt_seconds(others_follow=others_follow)
            return table.take_listed(live, await self._attempts.list_models(live, permit, limit)), True
        except Failure as failure:
            self._record_failure(live, failure)
            return None, True

    def _queue_seconds(self, live: LiveRoute, following: Sequence[LiveRoute]) -> float | None:
        """Return seconds to wait for a slot at a route while another one could be asked; None: for as long as there is."""
        if any(self._is_free(each) for each in following if each is not live):
            return _QUEUE_SHARE * (self.ends - self._loop.time())
        return None

    async def _ask_in_slot(
        self, slot: Slot, live: LiveRoute, progress: Progress, *, others_follow: bool
    ) -> tuple[GenerateCompleted | None, bool]:
        name = live.route.name
        if self._not_before(live) > self._loop.time():
            return None, False
        permit = await live.admit(self._flight_at(name))
        if permit is None:
            return None, False
        progress.start_route_attempt(name)
        used = self._meter.of(live.route)
        before = used.tokens
        try:
            limit = self._route_attempt_seconds(others_follow=others_follow)
            answer = await self._attempts.answer(live, permit, limit, progress)
        except Failure as failure:
            self._record_failure(live, failure)
            if not failure.kind.next_route:
                raise _add_history(failure, self.failures) from None
            return None, True
        finally:
            slot.tokens = used.tokens - before
        live.last_failure = None
        return answer, True

    def _flight_at(self, route: str) -> Flight:
        """Return this call's stay at a route, which ends the one at another: pauses between two attempts belong to it."""
        if route != self._flies_at:
            self._flight.end()
            self._flight, self._flies_at = Flight(), route
        return self._flight

    def _record_failure(self, live: LiveRoute, failure: Failure) -> None:
        name = live.route.name
        self.failures.pop(name, None)
        self.failures[name] = failure
        live.last_failure = failure.kind
        if failure.retry_after is not None:
            self._asked_not_before[name] = self._loop.time() + failure.retry_after
            live.queue.rest(failure.retry_after)
        if failure.kind.alarm:
            _logger.error("route needs attention", route=name, what=failure.kind.name, said=failure.message)

    def _route_attempt_seconds(self, *, others_follow: bool) -> float:
        left = self.ends - self._loop.time()
        timeouts = self._fallback.timeouts
        share = timeouts.share_before_another_route if others_follow else timeouts.share_alone
        return min(timeouts.route_attempt_seconds, left * share)

    async def _wait_for_trial(self, candidates: Sequence[LiveRoute]) -> bool:
        """Wait for a trial that others have out on a half-open breaker; False if there is none to wait for."""
        now = self._loop.time()
        within_reach = [live for live in candidates if self._not_before(live) <= now]
        async with self._fallback.table.watch() as watcher:
            if any(live.breaker.would_admit for live in within_reach):
                return True
            if not any(live.breaker.trial_in_flight for live in within_reach):
                return False
            await watcher.wake.wait()
        self._meter.queued_seconds += self._loop.time() - now
        return True

    async def _wait_for_rest(self, candidates: Sequence[LiveRoute]) -> bool:
        """Wait for an endpoint that asked to be left alone; False if none did, or not within the call's time."""
        now = self._loop.time()
        until = [
            self._not_before(live)
            for live in candidates
            if live.breaker.seconds_until_trial <= 0 and self._not_before(live) > now
        ]
        if not until or min(until) + _MIN_SECONDS >= self.ends:
            return False
        await asyncio.sleep(min(until) - now)
        self._meter.queued_seconds += self._loop.time() - now
        return True

    async def _pause(self, candidates: Sequence[LiveRoute]) -> bool:
        """Wait until a route may be asked again; False if that is not within the call's time."""
        now = self._loop.time()
        again = [
            self._not_before(live)
            for live in candidates
            if self._may_be_asked(live) and live.breaker.seconds_until_trial <= 0
        ]
        if not again:
            return False
        seconds = max(next(self._pauses), min(again) - now)
        if now + seconds + _MIN_SECONDS >= self.ends:
            return False
        await asyncio.sleep(seconds)
        return True

    def _final_failure(self) -> Failure:
        kinds = [self._latest_failure(self._fallback.table.resolve(live)) for live in self._routes]
        lasting = [kind for kind in kinds if kind in _LASTING]
        lasts = 0 < len(lasting) == len(kinds)
        # What may pass goes before what lasts: then a later call may have an answer.
        failures = sorted(
            self.failures.values(), key=lambda each: (each.kind.again, each.kind not in _LASTING)
        )
        if failures and (lasts or failures[-1].kind not in _LASTING):
            return _add_history(failures[-1], self.failures)
        waits = [self._seconds_until_free(live) for live in self._routes]
        shown = "; ".join(self._explain(live) for live in self._routes)
        return Failure(
            # So a debate does not wait for it.
            lasting[-1] if lasts else NO_ROUTE,
            f"no route lets a call through; {shown}",
            retry_after=max(min(waits, default=0.0), 1.0),
            route=self._routes[0].route.name if self._routes else "",
        )

    def _latest_failure(self, live: LiveRoute) -> FailureKind | None:
        failure = self.failures.get(live.route.name)
        return live.last_failure if failure is None else failure.kind

    def _seconds_until_free(self, live: LiveRoute) -> float:
        return max(live.breaker.seconds_until_trial, self._not_before(live) - self._loop.time())

    def _explain(self, live: LiveRoute) -> str:
        rests = self._not_before(live) - self._loop.time()
        if rests > 0 and live.breaker.would_admit:
            return f"{live.route.name} asked to be left alone for {format_seconds(rests)} more"
        return f"{live.route.name} failed with: {live.breaker.snapshot().last_failure}"


def _add_history(failure: Failure, failures: dict[str, Failure]) -> Failure:
    """Return the failure with what the other routes said before it."""
    said = [f"{name}: {each.message}" for name, each in failures.items()]
    if not said:
        return failure
    if failure.route:
        return replace(failure, message="; ".join(said))
    last = list(failures.values())[-1]
    return replace(
        failure, message=f"{failure.message}; {'; '.join(said)}", route=last.route, status=last.status
    )
