"""A call: routes in order, pauses, fallback, and hedging where that is wanted."""

import asyncio
import random
from collections.abc import Coroutine, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from typing import Any, Final

from parley.gateway import metrics
from parley.gateway.call import Answer, Call, Progress, Tally, Timeouts
from parley.gateway.errors_table import CALL_TIMEOUT, NO_ROUTE, AttemptFailed
from parley.gateway.limits import NoPlace, Place
from parley.gateway.racing import Race
from parley.gateway.routes import LiveRoute, RouteTable
from parley.gateway.trying import Trying
from parley.runtime.logs import get_logger

__all__ = ["Calling"]

_TRIES_OF_A_ROUTE: Final = 3
_LONGEST_PAUSE: Final = 8.0
_QUEUE_SHARE: Final = 0.1
"""Of a call's time that is left, how much it waits for a place at a route while another one is free."""
_WORTH_TRYING: Final = 0.1
"""Seconds that must be left for another try."""

_logger = get_logger(__name__)


class Calling:
    """Makes calls over the routes of a table."""

    def __init__(self, table: RouteTable, timeouts: Timeouts, seed: int | None = None) -> None:
        self._table = table
        self._timeouts = timeouts
        self._random = random.Random(seed)  # noqa: S311 (jitter)

    async def run(self, call: Call, tally: Tally, progress: Progress) -> Answer:
        """Answers the call within its time. Raises AttemptFailed with the route that failed last."""
        running = _RunningCall(self, call, tally, progress)
        try:
            async with asyncio.timeout(call.seconds) as timeout:
                running.ends = timeout.when() or 0.0
                return await running.rounds()
        except TimeoutError:
            raise _with_history(
                AttemptFailed(CALL_TIMEOUT, f"no answer within {call.seconds:.3g} s"), running.failures
            ) from None

    def pause(self, number: int) -> float:
        """The pause before going round the routes again, from 1: it grows, and half of it is chance."""
        longest = min(self._timeouts.first_pause_seconds * 2 ** (number - 1), _LONGEST_PAUSE)
        return float(longest * (0.5 + self._random.random() / 2))

    @property
    def timeouts(self) -> Timeouts:
        """What a try may take."""
        return self._timeouts

    @property
    def table(self) -> RouteTable:
        """The routes."""
        return self._table


class _RunningCall:
    def __init__(self, calling: Calling, call: Call, tally: Tally, progress: Progress) -> None:
        self._calling = calling
        self._call = call
        self._tally = tally
        self._progress = progress
        self._loop = asyncio.get_running_loop()
        self._trying = Trying(call, tally, calling.timeouts)
        self._asked_not_before: dict[str, float] = {}
        self.failures: dict[str, AttemptFailed] = {}
        self.ends = 0.0

    async def rounds(self) -> Answer:
        """Goes round the routes until one answers, or none may be asked any more."""
        candidates = list(self._call.routes)
        number = 1
        while True:
            candidates = [live for live in candidates if self._may_be_asked(live)]
            answer, tried = await self._round(candidates)
            if answer is not None:
                return answer
            candidates = [self._calling.table.named(live) for live in candidates]
            if not tried:
                if await self._trial_ended(candidates) or await self._rested(candidates):
                    continue
                break
            if number == _TRIES_OF_A_ROUTE or not await self._paused(number, candidates):
                break
            number += 1
        raise self._final_failure()

    async def _round(self, candidates: Sequence[LiveRoute]) -> tuple[Answer | None, bool]:
        """Each route once, in order: the answer if there is one, and whether any was asked at all."""
        tried: set[str] = set()
        for index, live in enumerate(candidates):
            if live.route.name in tried:
                continue
            following = candidates[index + 1 :]
            if self._calling.timeouts.hedge_seconds is None or not following:
                answer, was_tried = await self._try(live, self._progress, following)
                tried |= {live.route.name} if was_tried else set()
            else:
                answer, asked = await self._hedged(live, following)
                tried |= asked
            if answer is not None:
                return answer, True
        return None, bool(tried)

    async def _hedged(
        self, live: LiveRoute, following: Sequence[LiveRoute]
    ) -> tuple[Answer | None, set[str]]:
        """A try at a route, and one at the next beside it if it stays silent: the answer, and the routes asked."""

        def trying(live: LiveRoute, progress: Progress) -> Coroutine[Any, Any, tuple[Answer | None, bool]]:
            return self._try(live, progress, following)

        race = Race(self._progress, self._calling.timeouts.hedge_seconds or 0.0)
        (answer, tried), other = await race.run(
            live, [each for each in following if self._is_free(each)], trying
        )
        asked = {live.route.name} if tried else set()
        return answer, asked | ({other.route.name} if other is not None else set())

    def _is_free(self, live: LiveRoute) -> bool:
        return live.breaker.would_admit and self._not_before(live) <= self._loop.time()

    def _may_be_asked(self, live: LiveRoute) -> bool:
        failure = self.failures.get(live.route.name)
        return failure is None or failure.row.again

    def _not_before(self, live: LiveRoute) -> float:
        """Until when its endpoint asked to be left alone, by this call or another."""
        return max(self._asked_not_before.get(live.route.name, 0.0), live.queue.rests_until)

    async def _try(
        self, live: LiveRoute, progress: Progress, following: Sequence[LiveRoute]
    ) -> tuple[Answer | None, bool]:
        """One try at a route: the answer if there is one, and whether it was asked at all."""
        if not live.route.model:
            found, asked = await self._listed(live, others_follow=bool(following))
            if found is None:
                return None, asked
            live = found
        if self._not_before(live) > self._loop.time():
            return None, False
        conversation, tokens = self._call.labels.conversation, self._trying.tokens(live)
        waiting_since = self._loop.time()
        async with AsyncExitStack() as stack:
            try:
                waiting = live.queue.place(conversation, tokens, self._patience(live, following))
                place = await stack.enter_async_context(waiting)
            except NoPlace:
                return None, False
            finally:
                waited = self._loop.time() - waiting_since
                self._tally.queued_seconds += waited
                metrics.queued(live.route.name, waited)
            return await self._try_in(place, live, progress, others_follow=bool(following))

    async def _listed(self, live: LiveRoute, *, others_follow: bool) -> tuple[LiveRoute | None, bool]:
        """The route that one without a model stands for, and whether its provider was asked for its models."""
        table = self._calling.table
        known = table.named(live)
        if known is not live:
            return known, False
        if self._not_before(live) > self._loop.time():
            return None, False
        permit = await live.admit()
        if permit is None:
            return None, False
        try:
            limit = self._attempt_seconds(others_follow=others_follow)
            return table.listed(live, await self._trying.first_model(live, permit, limit)), True
        except AttemptFailed as failure:
            self._take_note(live, failure)
            return None, True

    def _patience(self, live: LiveRoute, following: Sequence[LiveRoute]) -> float | None:
        """Seconds to wait for a place at a route while another one could be asked; None: for as long as there is."""
        if any(self._is_free(each) for each in following if each is not live):
            return _QUEUE_SHARE * (self.ends - self._loop.time())
        return None

    async def _try_in(
        self, place: Place, live: LiveRoute, progress: Progress, *, others_follow: bool
    ) -> tuple[Answer | None, bool]:
        name = live.route.name
        if self._not_before(live) > self._loop.time():
            return None, False
        permit = await live.admit()
        if permit is None:
            return None, False
        progress.attempt_started(name)
        spent = self._tally.of(live)
        before = spent.tokens
        try:
            limit = self._attempt_seconds(others_follow=others_follow)
            answer = await self._trying.attempt(live, permit, limit, progress)
        except AttemptFailed as failure:
            self._take_note(live, failure)
            if not failure.row.next_route:
                raise _with_history(failure, self.failures) from None
            return None, True
        finally:
            place.tokens = spent.tokens - before
        return answer, True

    def _take_note(self, live: LiveRoute, failure: AttemptFailed) -> None:
        name = live.route.name
        self.failures.pop(name, None)
        self.failures[name] = failure
        if failure.retry_after is not None:
            self._asked_not_before[name] = self._loop.time() + failure.retry_after
            live.queue.rest(failure.retry_after)
        if failure.row.alarm:
            _logger.error("route needs attention", route=name, what=failure.row.name, said=failure.message)

    def _attempt_seconds(self, *, others_follow: bool) -> float:
        left = self.ends - self._loop.time()
        timeouts = self._calling.timeouts
        share = timeouts.share_before_another_route if others_follow else timeouts.share_alone
        return min(timeouts.attempt_seconds, left * share)

    async def _trial_ended(self, candidates: Sequence[LiveRoute]) -> bool:
        """Waits for a trial that others have out on a half-open breaker; False if there is none to wait for."""
        now = self._loop.time()
        within_reach = [live for live in candidates if self._not_before(live) <= now]
        async with self._calling.table.watching() as watcher:
            if any(live.breaker.would_admit for live in within_reach):
                return True
            if not any(live.breaker.trial_in_flight for live in within_reach):
                return False
            await watcher.wake.wait()
        self._tally.queued_seconds += self._loop.time() - now
        return True

    async def _rested(self, candidates: Sequence[LiveRoute]) -> bool:
        """Waits for an endpoint that asked to be left alone; False if none did, or not within the call's time."""
        now = self._loop.time()
        until = [
            self._not_before(live)
            for live in candidates
            if live.breaker.seconds_until_trial <= 0 and self._not_before(live) > now
        ]
        if not until or min(until) + _WORTH_TRYING >= self.ends:
            return False
        await asyncio.sleep(min(until) - now)
        self._tally.queued_seconds += self._loop.time() - now
        return True

    async def _paused(self, number: int, candidates: Sequence[LiveRoute]) -> bool:
        """Waits until a route may be asked again; False if that is not within the call's time."""
        now = self._loop.time()
        again = [
            self._not_before(live)
            for live in candidates
            if self._may_be_asked(live) and live.breaker.seconds_until_trial <= 0
        ]
        if not again:
            return False
        seconds = max(self._calling.pause(number), min(again) - now)
        if now + seconds + _WORTH_TRYING >= self.ends:
            return False
        await asyncio.sleep(seconds)
        return True

    def _final_failure(self) -> AttemptFailed:
        if self.failures:
            return _with_history(list(self.failures.values())[-1], self.failures)
        waits = [self._seconds_until_free(live) for live in self._call.routes]
        shown = "; ".join(self._why_not(live) for live in self._call.routes)
        return AttemptFailed(
            NO_ROUTE,
            f"no route lets a call through; {shown}",
            retry_after=max(min(waits, default=0.0), 1.0),
            route=self._call.routes[0].route.name if self._call.routes else "",
        )

    def _seconds_until_free(self, live: LiveRoute) -> float:
        return max(live.breaker.seconds_until_trial, self._not_before(live) - self._loop.time())

    def _why_not(self, live: LiveRoute) -> str:
        rests = self._not_before(live) - self._loop.time()
        if rests > 0 and live.breaker.would_admit:
            return f"{live.route.name} asked to be left alone for {rests:.3g} s more"
        return f"{live.route.name} failed with: {live.breaker.snapshot().last_failure}"


def _with_history(failure: AttemptFailed, failures: dict[str, AttemptFailed]) -> AttemptFailed:
    """The failure with what the other routes said before it."""
    said = [f"{name}: {each.message}" for name, each in failures.items()]
    if not said:
        return failure
    if failure.route:
        return replace(failure, message="; ".join(said))
    last = list(failures.values())[-1]
    return replace(
        failure, message=f"{failure.message}; {'; '.join(said)}", route=last.route, status=last.status
    )
