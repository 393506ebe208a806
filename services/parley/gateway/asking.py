"""The requests of one try at a route, up to an answer: the prompt as the route can read it, turns with tools, the re-ask."""

from collections.abc import Sequence
from typing import Final

from parley.gateway.call import Answer, Call, Progress, Tally
from parley.gateway.documents import Documents
from parley.gateway.endpoint import Text, ToolsRefused
from parley.gateway.errors_table import CONTEXT_OVERFLOW, EMPTY_ANSWER, INVALID_ANSWER, AttemptFailed
from parley.gateway.fitting import Fitted, Message, PromptPart, Unfittable, estimate_tokens, fit
from parley.gateway.routes import LiveRoute
from parley.gateway.structured import AnswerShape, InvalidAnswer, bounded, in_words, not_satisfied
from parley.gateway.tooling import LEAST_ROOM, Toolbox, can_read, listed, quoted
from parley.gateway.tools import ToolTurn
from parley.gateway.wire import ModelRequest

__all__ = ["Asking"]

_ANSWER_SHOWN_AGAIN: Final = 9
"""How readily an answer that did not satisfy its schema is shortened when it is shown to the model again."""
_RE_ASK_TOKENS: Final = 256
"""Kept for what a model is told of an answer that did not satisfy its schema."""
_TOOLS_SHARE: Final = 4
"""One part in so many of a known context is kept for calls of tools and their results."""


class Asking:
    """One try at a route. `documents` are those of the call's prompt."""

    def __init__(
        self, live: LiveRoute, call: Call, documents: Documents, tally: Tally, progress: Progress
    ) -> None:
        self._live = live
        self._call = call
        self._documents = documents
        self._tally = tally
        self._progress = progress
        self._toolbox: Toolbox | None = None
        self._prompt: tuple[PromptPart, ...] = ()
        self._characters_left_out = 0

    async def answer(self) -> Answer:
        """What the route answers. Raises AttemptFailed."""
        while True:
            self._set_out()
            try:
                return await self._accepted()
            except ToolsRefused:  # from now on this route has the documents in its prompts
                continue

    def _set_out(self) -> None:
        """Decides whether tools read the documents, or they stand in the prompt."""
        call = self._call
        self._toolbox, self._prompt = None, quoted(call.prompt)
        if not self._may_offer_tools():
            return
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
            if fitted is None or share < LEAST_ROOM:
                return
            again = _RE_ASK_TOKENS if call.shape is not None else 0
            toolbox.room = allowed - toolbox.described_tokens - fitted.tokens - again
        self._toolbox, self._prompt = toolbox, prompt

    def _may_offer_tools(self) -> bool:
        live, shape = self._live, self._call.shape
        memory = live.endpoint.memory
        return (
            not live.route.local
            and can_read(self._call.tools, self._call.prompt)
            and memory.takes_tools(
                live.route.model, with_schema=shape is not None and memory.takes_schema(live.route.model)
            )
        )

    async def _accepted(self) -> Answer:
        shape = self._call.shape
        text = await self._said()
        if shape is None:
            return self._answer(text, text.text)
        again: tuple[PromptPart, ...] = ()
        while True:
            try:
                return self._answer(text, shape.accept(text.text))
            except InvalidAnswer as error:
                if not error.is_json and not text.truncated:
                    self._live.endpoint.memory.schema_was_ignored(self._live.route.model)
                if again:
                    raise AttemptFailed(
                        INVALID_ANSWER, f"the answer does not satisfy its schema: {error}"
                    ) from None
                self._tally.reasks += 1
                again = (
                    PromptPart("assistant", text.text, _ANSWER_SHOWN_AGAIN),
                    PromptPart("user", self._told_again(error, shape, text)),
                )
            if self._toolbox is not None:
                self._toolbox.end()  # only the form of the answer is asked for now
            text = await self._said(again)

    async def _said(self, again: tuple[PromptPart, ...] = ()) -> Text:
        """The model's answer, after what it wanted to look up."""
        live, call, toolbox = self._live, self._call, self._toolbox
        while True:
            offered = toolbox is not None and toolbox.offers
            try:
                text = await live.endpoint.complete(
                    self._request(again, may_use_tools=offered),
                    self._tally.of(live),
                    call.labels,
                    self._progress.text if call.shape is None else None,
                )
            except AttemptFailed as failure:
                if failure.row is CONTEXT_OVERFLOW and toolbox is not None and toolbox.take_back():
                    continue
                raise
            if toolbox is None or not text.tool_requests or not offered:
                if not text.text.strip():  # it asks for tools that it may not use
                    raise AttemptFailed(EMPTY_ANSWER, "the answer holds no text")
                return text
            if text.text and call.shape is None:
                self._progress.attempt_started(live.route.name)  # what was heard is not the answer
            await toolbox.answer(text)

    def _told_again(self, error: InvalidAnswer, shape: AnswerShape, text: Text) -> str:
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
            place = len(messages) - len(again)  # an answer and what is said of it, each a message of its own
            messages[place:place] = toolbox.turns
        return ModelRequest(
            live.route.model,
            tuple(messages),
            call.max_output_tokens or live.route.max_output_tokens,
            call.temperature,
            shape,
            stream=shape is None,
            tools=toolbox.specs if toolbox is not None else (),
            may_use_tools=may_use_tools,
        )

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
            raise AttemptFailed(CONTEXT_OVERFLOW, str(error)) from None

    def _allowed(self) -> int | None:
        """Tokens that the prompt may have, None where the route's context is unknown."""
        context, shape = self._live.route.context_tokens, self._call.shape
        if context == 0:
            return None
        wanted = self._call.max_output_tokens or self._live.route.max_output_tokens or context // 4
        # A schema takes room where it has to be said in words; the model on this machine is held to it by grammar.
        words = estimate_tokens(in_words(shape)) if shape is not None and not self._live.route.local else 0
        # An answer may not take so much of a small context that no question is left.
        return max(context - min(wanted, context // 2) - words, 1)

    def _answer(self, text: Text, accepted: str) -> Answer:
        return Answer(
            accepted,
            self._live.route.name,
            text.model,
            text.truncated,
            self._characters_left_out,
            self._tally.reasks,
            tuple(self._toolbox.used) if self._toolbox is not None else (),
        )


def _fitting(prompt: Sequence[PromptPart], allowed: int) -> Fitted | None:
    try:
        return fit(prompt, max(allowed, 1))
    except Unfittable:
        return None
