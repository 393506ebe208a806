"""The requests of one route attempt, up to an answer: the prompt as the route can read it, turns with tools, the re-ask."""

import json
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Final

from parley.gateway.answer import Answer
from parley.gateway.failures import (
    CONTEXT_OVERFLOW,
    EMPTY_ANSWER,
    INVALID_ANSWER,
    ONLY_TOOL_CALLS,
    Failure,
)
from parley.gateway.prompt.airlock import MAX_CHARACTERS
from parley.gateway.prompt.document_parts import can_read, listed, quoted
from parley.gateway.prompt.documents import Documents
from parley.gateway.prompt.fitting import Fitted, Unfittable, fit
from parley.gateway.prompt.parts import Message, PromptPart
from parley.gateway.prompt.reasoning import begins_inside, without_reasoning
from parley.gateway.prompt.structured_answers import (
    AnswerShape,
    InvalidAnswer,
    bounded,
    in_words,
    not_satisfied,
    read_answer,
)
from parley.gateway.prompt.tokens import estimate_tokens
from parley.gateway.prompt.toolbox import MIN_TOKENS, Toolbox
from parley.gateway.prompt.tools import ToolTurn
from parley.gateway.routing.call import Call, Progress
from parley.gateway.routing.route import LiveRoute
from parley.gateway.usage import UsageMeter
from parley.gateway.wire.api import ModelRequest
from parley.gateway.wire.endpoint import Reply, ToolsRefused
from parley.gateway.wire.errors import of_empty_answer
from parley.runtime.large_texts import in_thread_if_large

__all__ = ["Exchange"]

_ANSWER_SHOWN_AGAIN: Final = 9
"""How readily an answer that did not satisfy its schema is shortened when it is shown to the model again."""
_RE_ASK_TOKENS: Final = 256
"""Kept for what a model is told of an answer that did not satisfy its schema."""
_CHARACTERS_A_TOKEN: Final = 8
"""More than tokens of any usual text have on average."""
_TOOLS_SHARE: Final = 4
"""One part in so many of a known context is kept for calls of tools and their results."""


class Exchange:
    """What is said to a route, and what it says. `documents` are those of the call's prompt."""

    def __init__(
        self, live: LiveRoute, call: Call, documents: Documents, meter: UsageMeter, progress: Progress
    ) -> None:
        self._live = live
        self._call = call
        self._documents = documents
        self._meter = meter
        self._progress = progress
        self._toolbox: Toolbox | None = None
        self._prompt: tuple[PromptPart, ...] = ()
        self._characters_left_out = 0
        self._tools_told = False

    async def answer(self) -> Answer:
        """Return what the route answers. Raises Failure."""
        texts = [each.text for each in self._call.prompt]
        while True:
            await in_thread_if_large(texts, self._set_out)
            try:
                return await self._accepted()
            except ToolsRefused:  # from now on this route has the documents in its prompts
                continue

    def _set_out(self) -> None:
        """Decide whether tools read the documents, or they stand in the prompt."""
        call = self._call
        self._toolbox, self._tools_told = None, False
        if not (self._may_offer_tools() and self._offered_tools()):
            self._prompt = quoted(call.prompt)

    def _offered_tools(self) -> bool:
        """Offer tools; return whether there is room for what they tell."""
        call = self._call
        toolbox = Toolbox(
            self._documents,
            call.tools,
            call.tool_call_limit,
            call.labels,
            trace_content=self._live.endpoint.traces_content,
        )
        prompt = listed(call.prompt, self._documents, call.tools)
        allowed = self._allowed()
        if allowed is not None:
            share = allowed // _TOOLS_SHARE
            fitted = _fitting(prompt, allowed - share - toolbox.described_tokens)
            if fitted is None or share < MIN_TOKENS:
                return False
            again = _RE_ASK_TOKENS if call.shape is not None else 0
            toolbox.tokens_left = allowed - toolbox.described_tokens - fitted.tokens - again
        self._toolbox, self._prompt = toolbox, prompt
        return True

    def _may_offer_tools(self) -> bool:
        live, shape = self._live, self._call.shape
        capabilities = live.endpoint.capabilities
        return (
            not live.route.local
            and can_read(self._call.tools, self._call.prompt)
            and capabilities.takes_tools(
                live.route.model,
                with_schema=shape is not None and capabilities.takes_schema(live.route.model, shape.text),
            )
        )

    async def _accepted(self) -> Answer:
        if self._call.answer_start and self._live.route.continues_answers:
            return await self._continued(self._call.answer_start)
        text = await self._said()
        shape = self._call.shape
        if shape is None:
            return self._answer(text, text.text)
        try:
            return await self._read(shape, text)
        except InvalidAnswer as error:
            return await self._asked_again(shape, text, error)

    async def _continued(self, start: str) -> Answer:
        """Return the answer that goes on from its start."""
        self._progress.text(start)
        rest = await self._said((PromptPart("assistant", start),))
        # Some servers send the start again where they answer in one piece.
        whole = rest.text if rest.text.startswith(start) else start + rest.text
        return self._answer(rest, whole)

    async def _read(self, shape: AnswerShape, text: Reply) -> Answer:
        """Return a structured answer that satisfies its schema. Raises InvalidAnswer."""
        try:
            return self._answer(text, await read_answer(shape, text.text, truncated=text.truncated))
        except InvalidAnswer as error:
            if not error.is_json and not text.truncated:
                self._live.endpoint.capabilities.schema_was_ignored(self._live.route.model)
            raise

    async def _asked_again(self, shape: AnswerShape, first: Reply, error: InvalidAnswer) -> Answer:
        """Return what the model answers when it is told what was wrong, or else, where that will do, what it gave."""
        again = (
            PromptPart("assistant", first.text, _ANSWER_SHOWN_AGAIN),
            PromptPart("user", self._told_again(error, shape, first)),
        )
        self._meter.reasks += 1
        if self._toolbox is not None:
            self._toolbox.end()  # only the form of the answer is asked for now
        self._void_text()
        given = [(error, first)]
        try:
            second = await self._said(again)
            try:
                return await self._read(shape, second)
            except InvalidAnswer as still:
                given.append((still, second))
                raise Failure(INVALID_ANSWER, f"the answer does not satisfy its schema: {still}") from None
        except Failure as failure:
            # Another route, or the same one later, may do better; where none is to be asked, what was paid for counts.
            no_text = failure.kind in {EMPTY_ANSWER, ONLY_TOOL_CALLS}
            if not shape.accepts_prose or (failure.kind.next_route and not no_text):
                raise
            return self._answer(*_fullest(given))

    async def _said(self, again: tuple[PromptPart, ...] = ()) -> Reply:
        """Return the model's answer, after what it wanted to look up."""
        live, call, toolbox = self._live, self._call, self._toolbox
        while True:
            offered = toolbox is not None and toolbox.offers
            texts = [each.text for each in (*self._prompt, *again)]
            asked = partial(self._request, again, may_use_tools=offered)
            try:
                text = await live.endpoint.complete(
                    await in_thread_if_large(texts, asked),
                    self._meter.of(live.route),
                    call.labels,
                    self._progress,
                )
            except Failure as failure:
                if failure.kind is CONTEXT_OVERFLOW and toolbox is not None and toolbox.take_back():
                    continue
                raise
            text = await self._thought_over(text)
            if toolbox is None or not text.tool_requests or self._tools_told:
                return self._with_text(text)
            if text.text:
                self._void_text()  # what was heard is not the answer
            if offered:
                await toolbox.answer(text.text, text.tool_requests, text.reasoning)
            else:  # it calls tools although it may not: nothing is run, and it is asked once more without any
                self._tools_told = True

    def _with_text(self, reply: Reply) -> Reply:
        """Return a reply that holds an answer. Raises Failure."""
        if reply.text.strip():
            return reply
        if reply.tool_requests:
            raise Failure(
                ONLY_TOOL_CALLS, "the answer holds no text, only calls of tools that it may not use"
            )
        raise of_empty_answer(truncated=reply.truncated, max_output_tokens=self._max_output_tokens)

    async def _thought_over(self, reply: Reply) -> Reply:
        """Return the reply without reasoning that only its whole text shows to be some."""
        capabilities, model = self._live.endpoint.capabilities, self._live.route.model
        answer = await in_thread_if_large([reply.text], partial(without_reasoning, reply.text))
        if answer == reply.text:
            # Where a model's reasoning has an end and no beginning, a text that was cut off before the end is all of it.
            if not (reply.text and reply.truncated and capabilities.reasons_untagged(model)):
                return reply
            answer = ""
        elif await in_thread_if_large([reply.text], partial(begins_inside, reply.text)):
            capabilities.reasoning_was_untagged(model)
        self._void_text()
        if answer:
            self._progress.text(answer)
        return replace(reply, text=answer)

    def _void_text(self) -> None:
        self._progress.route_attempt_started(self._live.route.name)

    def _told_again(self, error: InvalidAnswer, shape: AnswerShape, text: Reply) -> str:
        told = not_satisfied(error, truncated=text.truncated)
        return told if self._live.route.local else f"{told} {in_words(shape)}"

    def _request(self, again: tuple[PromptPart, ...], *, may_use_tools: bool) -> ModelRequest:
        call, live, toolbox = self._call, self._live, self._toolbox
        shape = call.shape
        if shape is not None and live.route.local:
            shape = bounded(shape)
        fitted = self._fitted(again)
        self._characters_left_out = fitted.characters_left_out
        messages: list[Message | ToolTurn] = list(fitted.messages)
        if toolbox is not None:
            before = len(messages) - len(again)  # an answer and what is said of it, each a message of its own
            messages[before:before] = toolbox.told() if self._tools_told else toolbox.turns
        return ModelRequest(
            live.route.model,
            tuple(messages),
            self._max_output_tokens,
            call.temperature,
            shape,
            tools=toolbox.specs if toolbox is not None and not self._tools_told else (),
            may_use_tools=may_use_tools,
            max_characters=self._max_characters,
        )

    @property
    def _max_characters(self) -> int:
        """How long an answer may be: one that is far beyond what its caller can pay for has ignored its bound."""
        if not self._call.affordable_output_tokens:
            return MAX_CHARACTERS
        return min(self._max_output_tokens * _CHARACTERS_A_TOKEN, MAX_CHARACTERS)

    @property
    def _max_output_tokens(self) -> int:
        return self._call.output_tokens_at(self._live.route)

    def _fitted(self, again: tuple[PromptPart, ...]) -> Fitted:
        allowed = self._allowed()
        if allowed is None:
            return fit((*self._prompt, *again), 0)
        if self._toolbox is not None:
            allowed -= self._toolbox.described_tokens + (
                self._toolbox.turn_tokens if again else allowed // _TOOLS_SHARE
            )
        try:
            return fit((*self._prompt, *again), max(allowed, 1))
        except Unfittable as error:
            raise Failure(CONTEXT_OVERFLOW, str(error)) from None

    def _allowed(self) -> int | None:
        """Return tokens that the prompt may have, None where the route's context is unknown."""
        context, shape = self._live.route.served_context_tokens, self._call.shape
        if context == 0:
            return None
        wanted = self._call.max_output_tokens or self._live.route.max_output_tokens or context // 4
        # A schema takes tokens where it has to be said in words; the model on this machine is held to it by grammar.
        words = estimate_tokens(in_words(shape)) if shape is not None and not self._live.route.local else 0
        # An answer may not take so much of a small context that no question is left.
        return max(context - min(wanted, context // 2) - words, 1)

    def _answer(self, text: Reply, accepted: str) -> Answer:
        return Answer(
            accepted,
            self._live.route.name,
            text.model,
            text.truncated,
            self._characters_left_out,
            self._meter.reasks,
            tuple(self._toolbox.used) if self._toolbox is not None else (),
        )


def _fullest(given: Sequence[tuple[InvalidAnswer, Reply]]) -> tuple[Reply, str]:
    """Return the reply that gives the most of what was asked for, or else the most words, and what it gives."""
    error, reply = max(given, key=lambda each: (each[0].properties, len(each[1].text)))
    return reply, json.dumps(error.partial, ensure_ascii=False) if error.partial else reply.text.strip()


def _fitting(prompt: Sequence[PromptPart], allowed: int) -> Fitted | None:
    try:
        return fit(prompt, max(allowed, 1))
    except Unfittable:
        return None
