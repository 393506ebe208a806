"""A call: routes in order, tries with a timeout of their own, pauses, and fallback."""

import asyncio
import random
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Final, Protocol

from parley.gateway.breaker import Permit
from parley.gateway.endpoint import Spent, Text, TraceLabels
from parley.gateway.errors_table import (
    CALL_TIMEOUT,
    CONTEXT_OVERFLOW,
    INVALID_ANSWER,
    NO_ROUTE,
    TIMEOUT,
    AttemptFailed,
)
from parley.gateway.fitting import Fitted, PromptPart, Unfittable, estimate_tokens, fit
from parley.gateway.routes import LiveRoute, RouteTable
from parley.gateway.structured import AnswerShape, InvalidAnswer, bounded, in_words, not_satisfied
from parley.gateway.wire import ModelRequest
from parley.runtime.logs import get_logger

__all__ = ["Answer", "Call", "Calling", "Progress", "Tally", "Timeouts", "Usage"]

_TRIES_OF_A_ROUTE: Final = 3
_LONGEST_PAUSE: Final = 8.0
_WORTH_TRYING: Final = 0.1
"""Seconds that must be left for another try."""
_FAIR_SECONDS: Final = 1.0
"""A caller who gives an answer less time than this has its own impatience to blame."""
_ANSWER_SHOWN_AGAIN: Final = 9
"""How readily an answer that did not satisfy its schema is shortened when it is shown to the model again."""

_NO_LABELS: Final = TraceLabels()

_logger = get_logger(__name__)


@dataclass(frozen=True, slots=True)
class Timeouts:
    """How long a try at a route may take: seconds at most, and shares of what is left of the call's time.

    `first_pause_seconds` is the longest first pause before the routes are gone round again.
    """

    attempt_seconds: float = 60.0
    first_pause_seconds: float = 0.5
    share_before_another_route: float = 0.5
    share_alone: float = 0.75


@dataclass(frozen=True, slots=True)
class Call:
    """One question of an agent. `seconds` is the time for all of it."""

    routes: tuple[LiveRoute, ...]
    prompt: tuple[PromptPart, ...]
    seconds: float
    shape: AnswerShape | None = None
    max_output_tokens: int = 0
    temperature: float | None = None
    labels: TraceLabels = _NO_LABELS


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of a route. Times are in seconds."""

    text: str
    route: str
    model: str
    truncated: bool
    characters_left_out: int
    reasks: int


class Progress(Protocol):
    """Who hears how a call is doing."""

    def attempt_started(self, route: str) -> None:
        """A try at a route begins; text of earlier ones is void."""
        ...

    def text(self, piece: str) -> None:
        """More text of the present try."""
        ...


@dataclass(frozen=True, slots=True)
class Usage:
    """What a call has used. `cost_micros` is in millionths of a US dollar, None where a price is unknown."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cost_micros: int | None = 0
    queued_seconds: float = 0.0


@dataclass(slots=True)
class Tally:
    """What a call has used so far, route by route, and how long it waited in queues."""

    by_route: dict[str, tuple[LiveRoute, Spent]] = field(default_factory=dict)
    queued_seconds: float = 0.0
    reasks: int = 0

    def of(self, live: LiveRoute) -> Spent:
        """The account of one route."""
        return self.by_route.setdefault(live.route.name, (live, Spent()))[1]

    def usage(self) -> Usage:
        """The sum over all routes."""
        spent = [each for _, each in self.by_route.values()]
        costs = [live.route.cost_micros(each) for live, each in self.by_route.values()]
        known = [cost for cost in costs if cost is not None]
        return Usage(
            sum(each.requests for each in spent),
            sum(each.input_tokens for each in spent),
            sum(each.output_tokens for each in spent),
            sum(known) if len(known) == len(costs) else None,
            self.queued_seconds,
        )


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
                AttemptFailed(CALL_TIMEOUT, f"no answer within {call.seconds:g} s"), running.failures
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
        self._not_before: dict[str, float] = {}
        self.failures: dict[str, AttemptFailed] = {}
        self.ends = 0.0

    async def rounds(self) -> Answer:
        """Goes round the routes until one answers, or none may be asked any more."""
        candidates = list(self._call.routes)
        number = 1
        while True:
            candidates = [live for live in candidates if self._may_be_asked(live)]
            admitted = False
            for index, live in enumerate(candidates):
                answer, tried = await self._try(live, others_follow=index + 1 < len(candidates))
                if answer is not None:
                    return answer
                admitted = admitted or tried
            if not admitted:
                if await self._trial_ended(candidates):
                    continue
                break
            if number == _TRIES_OF_A_ROUTE or not await self._paused(number, candidates):
                break
            number += 1
        raise self._final_failure()

    def _may_be_asked(self, live: LiveRoute) -> bool:
        failure = self.failures.get(live.route.name)
        return failure is None or failure.row.again

    async def _try(self, live: LiveRoute, *, others_follow: bool) -> tuple[Answer | None, bool]:
        """One try at a route: the answer if there is one, and whether it was asked at all."""
        name = live.route.name
        if self._not_before.get(name, 0.0) > self._loop.time():
            return None, False
        waiting_since = self._loop.time()
        async with live.slot():
            self._tally.queued_seconds += self._loop.time() - waiting_since
            permit = await live.admit()
            if permit is None:
                return None, False
            self._progress.attempt_started(name)
            try:
                answer = await self._attempt(live, permit, others_follow=others_follow)
            except AttemptFailed as failure:
                failure.route = name
                self.failures.pop(name, None)
                self.failures[name] = failure
                if failure.retry_after is not None:
                    self._not_before[name] = self._loop.time() + failure.retry_after
                if failure.row.alarm:
                    _logger.error(  # noqa: TRY400 (an operator needs no traceback)
                        "route needs attention", route=name, what=failure.row.name, said=failure.message
                    )
                if not failure.row.next_route:
                    raise _with_history(failure, self.failures) from None
                return None, True
            return answer, True

    async def _attempt(self, live: LiveRoute, permit: Permit, *, others_follow: bool) -> Answer:
        # The local model is slow by nature and has nobody to fall back to: it gets what time there is.
        limit = self._attempt_seconds(others_follow=others_follow)
        timeout = asyncio.timeout(None if live.route.local else limit)
        try:
            async with timeout:
                answer = await self._asked(live)
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
            if limit >= min(_FAIR_SECONDS, self._calling.timeouts.attempt_seconds):
                live.breaker.failed(permit, late.message)
            else:
                live.breaker.release(permit)
            raise late from None
        except BaseException:  # cancelled: says nothing of the route
            live.breaker.release(permit)
            raise
        live.breaker.succeeded(permit)
        return answer

    def _attempt_seconds(self, *, others_follow: bool) -> float:
        left = self.ends - self._loop.time()
        timeouts = self._calling.timeouts
        share = timeouts.share_before_another_route if others_follow else timeouts.share_alone
        return min(timeouts.attempt_seconds, left * share)

    async def _asked(self, live: LiveRoute) -> Answer:
        call = self._call
        parts = call.prompt
        if call.shape is None:
            fitted = self._fitted(live, parts)
            text = await live.endpoint.complete(
                self._request(live, fitted), self._tally.of(live), call.labels, self._progress.text
            )
            return self._answer(live, text, text.text, fitted)
        while True:
            fitted = self._fitted(live, parts)
            text = await live.endpoint.complete(
                self._request(live, fitted), self._tally.of(live), call.labels
            )
            try:
                return self._answer(live, text, call.shape.accept(text.text), fitted)
            except InvalidAnswer as error:
                if not error.is_json and not text.truncated:
                    live.endpoint.memory.schema_was_ignored(live.route.model)
                if self._tally.reasks:
                    raise AttemptFailed(
                        INVALID_ANSWER, f"the answer does not satisfy its schema: {error}"
                    ) from None
                self._tally.reasks += 1
                parts = (
                    *parts,
                    PromptPart("assistant", text.text, _ANSWER_SHOWN_AGAIN),
                    PromptPart("user", self._told_again(live, error, call.shape, text)),
                )

    def _told_again(self, live: LiveRoute, error: InvalidAnswer, shape: AnswerShape, text: Text) -> str:
        told = not_satisfied(error, truncated=text.truncated)
        return told if live.route.local else f"{told} {in_words(shape)}"

    def _request(self, live: LiveRoute, fitted: Fitted) -> ModelRequest:
        call = self._call
        shape = call.shape
        if shape is not None and live.route.local:
            shape = bounded(shape)
        return ModelRequest(
            live.route.model,
            fitted.messages,
            call.max_output_tokens or live.route.max_output_tokens,
            call.temperature,
            shape,
            stream=shape is None,
        )

    def _fitted(self, live: LiveRoute, parts: Sequence[PromptPart]) -> Fitted:
        context = live.route.context_tokens
        if context == 0:
            return fit(parts, 0)
        wanted = self._call.max_output_tokens or live.route.max_output_tokens or context // 4
        shape = self._call.shape
        # A schema takes room where it has to be said in words; the model on this machine is held to it by grammar.
        words = estimate_tokens(in_words(shape)) if shape is not None and not live.route.local else 0
        # An answer may not take so much of a small context that no question is left.
        allowed = context - min(wanted, context // 2) - words
        try:
            return fit(parts, max(allowed, 1))
        except Unfittable as error:
            raise AttemptFailed(CONTEXT_OVERFLOW, str(error)) from None

    def _answer(self, live: LiveRoute, text: Text, accepted: str, fitted: Fitted) -> Answer:
        return Answer(
            accepted,
            live.route.name,
            text.model,
            text.truncated,
            fitted.characters_left_out,
            self._tally.reasks,
        )

    async def _trial_ended(self, candidates: Sequence[LiveRoute]) -> bool:
        """Waits for a trial that others have out on a half-open breaker; False if there is none to wait for."""
        now = self._loop.time()
        within_reach = [live for live in candidates if self._not_before.get(live.route.name, now) <= now]
        async with self._calling.table.watching() as watcher:
            if any(live.breaker.would_admit for live in within_reach):
                return True
            if not any(live.breaker.trial_in_flight for live in within_reach):
                return False
            await watcher.wake.wait()
        self._tally.queued_seconds += self._loop.time() - now
        return True

    async def _paused(self, number: int, candidates: Sequence[LiveRoute]) -> bool:
        """Waits until a route may be asked again; False if that is not within the call's time."""
        now = self._loop.time()
        again = [
            self._not_before.get(live.route.name, now)
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
        waits = [live.breaker.seconds_until_trial for live in self._call.routes]
        shown = "; ".join(
            f"{live.route.name} failed with: {live.breaker.snapshot().last_failure}"
            for live in self._call.routes
        )
        return AttemptFailed(
            NO_ROUTE,
            f"no route lets a call through; {shown}",
            retry_after=max(min(waits, default=0.0), 1.0),
            route=self._call.routes[0].route.name if self._call.routes else "",
        )


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
