"""One try at a route: within its time, with one re-ask of a structured answer, and told to the route's breaker."""

import asyncio
from collections.abc import Sequence
from typing import Final

from parley.gateway import metrics
from parley.gateway.breaker import Permit
from parley.gateway.call import Answer, Call, Progress, Tally, Timeouts
from parley.gateway.endpoint import Spent, Text
from parley.gateway.errors_table import CONTEXT_OVERFLOW, INVALID_ANSWER, TIMEOUT, AttemptFailed
from parley.gateway.fitting import Fitted, PromptPart, Unfittable, estimate_tokens, fit
from parley.gateway.routes import LiveRoute
from parley.gateway.structured import AnswerShape, InvalidAnswer, bounded, in_words, not_satisfied
from parley.gateway.wire import ModelRequest

__all__ = ["Trying"]

_FAIR_SECONDS: Final = 1.0
"""A caller who gives an answer less time than this has its own impatience to blame."""
_ANSWER_SHOWN_AGAIN: Final = 9
"""How readily an answer that did not satisfy its schema is shortened when it is shown to the model again."""


class Trying:
    """Tries of one call."""

    def __init__(self, call: Call, tally: Tally, timeouts: Timeouts) -> None:
        self._call = call
        self._tally = tally
        self._timeouts = timeouts
        self._asked_tokens = 0

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
            answer = await self._judged(live, permit, limit, progress)
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

    async def _judged(self, live: LiveRoute, permit: Permit, limit: float, progress: Progress) -> Answer:
        # The local model is slow by nature and has nobody to fall back to: it gets what time there is.
        timeout = asyncio.timeout(None if live.route.local else limit)
        try:
            async with timeout:
                answer = await self._asked(live, progress)
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
        except BaseException:  # cancelled: says nothing of the route
            live.breaker.release(permit)
            raise
        live.breaker.succeeded(permit)
        return answer

    async def _asked(self, live: LiveRoute, progress: Progress) -> Answer:
        call = self._call
        parts = call.prompt
        if call.shape is None:
            fitted = self._fitted(live, parts)
            text = await live.endpoint.complete(
                self._request(live, fitted), self._tally.of(live), call.labels, progress.text
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
