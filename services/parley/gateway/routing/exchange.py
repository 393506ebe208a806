"""The requests of one route attempt, up to an answer: the prompt as the route can read it, turns with tools, the re-ask."""

import json
import secrets
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Final

from msgspec.structs import replace

from parley.gateway.failures import (
    CONTEXT_OVERFLOW,
    EMPTY_ANSWER,
    INVALID_ANSWER,
    ONLY_TOOL_CALLS,
    Failure,
)
from parley.gateway.prompt.documents import Documents, list_documents, quote_in_slots
from parley.gateway.prompt.fitting import Unfittable, count_tokens, estimate_tokens, fit
from parley.gateway.prompt.reasoning import drop_stray_end, starts_inside_reasoning, strip_reasoning
from parley.gateway.prompt.sanitizer import MAX_CHARACTERS
from parley.gateway.prompt.structured_answers import (
    InvalidAnswer,
    bound_shape,
    is_accepted,
    problem_instruction,
    read_answer,
    schema_instruction,
)
from parley.gateway.prompt.toolbox import MIN_TOKENS, Toolbox
from parley.gateway.prompt.tools import ToolTurn, can_read
from parley.gateway.routing.call import Call, Progress
from parley.gateway.routing.route import LiveRoute
from parley.gateway.usage import UsageMeter
from parley.gateway.wire.api import MAX_KEPT, LateMessages, ModelRequest
from parley.gateway.wire.endpoint import Reply, ToolsRefused
from parley.gateway.wire.errors import of_empty_answer
from parley.runtime.large_texts import in_thread_if_large
from parley.v1.gateway_pb2 import PROMPT_ROLE_ASSISTANT, PROMPT_ROLE_USER, GenerateCompleted, PromptPart

_ANSWER_SHOWN_AGAIN: Final = 9
"""How readily an answer that did not satisfy its schema is shortened when it is shown to the model again."""
_RE_ASK_TOKENS: Final = 256
"""Kept for the message to a model about an answer that did not satisfy its schema."""
_NO_TEXT: Final = "You were asked this before, and your answer held no text. Write the answer now."
_CHARACTERS_A_TOKEN: Final = 8
"""More than tokens of any usual text have on average."""
_LONG_DOCUMENT: Final = 16 * 1024
"""Bytes of a document from which on prompts hold no copy of it."""
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
        self._listed: Sequence[PromptPart] | None = None
        # No text of a caller can hold such a word: it is drawn for this exchange.
        self._own_slots = {
            path: f"slot-{secrets.token_hex(16)}"
            for path, held in call.documents.items()
            if len(held.utf8) > _LONG_DOCUMENT
        }
        self._characters_left_out = 0
        self._tools_told = False

    async def answer(self) -> GenerateCompleted:
        """Return what the route answers. Raise Failure."""
        while True:
            await in_thread_if_large(self._call.size, self._choose_prompt)
            try:
                return await self._ask()
            except ToolsRefused:  # from now on this route has the documents in its prompts
                continue

    def _choose_prompt(self) -> None:
        """Decide whether tools read the documents, or they stand in the prompt."""
        self._toolbox, self._listed, self._tools_told = None, None, False
        if self._may_offer_tools():
            self._offer_tools()

    def _offer_tools(self) -> None:
        """Offer tools if there is room for their results."""
        call = self._call
        toolbox = Toolbox(
            self._documents,
            call.tools,
            call.tool_call_limit,
            call.labels,
            trace_content=self._live.endpoint.traces_content,
        )
        prompt = list_documents(call.request.prompt, self._documents, call.tools)
        allowed = self._token_limit()
        if allowed is not None:
            share = allowed // _TOOLS_SHARE
            messages = _fit_or_none(prompt, allowed - share - toolbox.described_tokens)
            if messages is None or share < MIN_TOKENS:
                return
            again = _RE_ASK_TOKENS if call.shape is not None else 0
            toolbox.tokens_left = allowed - toolbox.described_tokens - count_tokens(messages) - again
        self._toolbox, self._listed = toolbox, prompt

    def _create_prompt(self) -> Sequence[PromptPart]:
        """Return the prompt, with its documents listed or quoted. It is created anew if it is long. Do not keep it."""
        if self._listed is not None:
            return self._listed
        if not self._call.documents:
            return self._call.request.prompt
        slots = self._slots
        return quote_in_slots(self._call.create_prompt(left_out=slots), self._call.documents, slots)

    @property
    def _slots(self) -> Mapping[str, str]:
        """What stands for long documents in prompts, by their paths; nothing if documents are listed or may have to be shortened."""
        return self._own_slots if self._listed is None and self._token_limit() is None else {}

    def _may_offer_tools(self) -> bool:
        live, shape = self._live, self._call.shape
        capabilities = live.endpoint.capabilities
        return (
            not live.route.local
            and can_read(self._call.tools, self._call.request.prompt)
            and capabilities.takes_tools(
                live.route.model,
                with_schema=shape is not None and capabilities.takes_schema(live.route.model, shape.text),
            )
        )

    async def _ask(self) -> GenerateCompleted:
        start = self._call.request.answer_start
        if start and self._live.route.continues_answers:
            return await self._continue_answer(start)
        try:
            text = await self._send_request()
        except Failure as failure:
            if failure.kind is not EMPTY_ANSWER:
                raise
            return await self._ask_again(self._ask_for_text(), [])
        try:
            return await self._read(text)
        except InvalidAnswer as error:
            again = (
                PromptPart(role=PROMPT_ROLE_ASSISTANT, text=text.text, shrink_priority=_ANSWER_SHOWN_AGAIN),
                PromptPart(role=PROMPT_ROLE_USER, text=self._explain_problem(error, text)),
            )
            return await self._ask_again(again, [(error, text)])

    async def _continue_answer(self, start: str) -> GenerateCompleted:
        """Return the answer that goes on from its start."""
        self._progress.add_text(start)
        rest = await self._send_request((PromptPart(role=PROMPT_ROLE_ASSISTANT, text=start),))
        # Some servers send the start again if they answer in one piece.
        whole = rest.text if rest.text.startswith(start) else start + rest.text
        return self._build_answer(rest, whole)

    async def _read(self, text: Reply) -> GenerateCompleted:
        """Return the answer; a structured one satisfies its schema. Raise InvalidAnswer."""
        shape = self._call.shape
        if shape is None:
            return self._build_answer(text, text.text)
        try:
            return self._build_answer(text, await read_answer(shape, text.text, truncated=text.truncated))
        except InvalidAnswer as error:
            if not error.is_json and not text.truncated:
                self._live.endpoint.capabilities.learn_schema_ignored(self._live.route.model)
            raise

    async def _ask_again(
        self, again: tuple[PromptPart, ...], given: list[tuple[InvalidAnswer, Reply]]
    ) -> GenerateCompleted:
        """Return the answer to a second request, or else, if prose is accepted, the best of all that was `given`."""
        shape = self._call.shape
        self._meter.reasks += 1
        if self._toolbox is not None:
            self._toolbox.end()  # only the form of the answer is asked for now
        self._void_text()
        try:
            second = await self._send_request(again)
            try:
                return await self._read(second)
            except InvalidAnswer as still:
                given.append((still, second))
                raise Failure(INVALID_ANSWER, f"the answer does not satisfy its schema: {still}") from None
        except Failure as failure:
            # Another route, or the same one later, may do better; if none is asked, what was paid for counts.
            no_text = failure.kind in {EMPTY_ANSWER, ONLY_TOOL_CALLS}
            accepts_prose = shape is not None and shape.accepts_prose
            if not (given and accepts_prose) or (failure.kind.next_route and not no_text):
                raise
            return self._build_answer(*_choose_fullest(given))

    async def _send_request(self, again: tuple[PromptPart, ...] = ()) -> Reply:
        """Return the model's answer, after what it wanted to look up."""
        live, call, toolbox = self._live, self._call, self._toolbox
        used = self._meter.of(live.route)
        while True:
            offered = toolbox is not None and toolbox.offers
            read_before = used.input_tokens
            asked = partial(self._build_request, again, may_use_tools=offered)
            try:
                text = await live.endpoint.complete(
                    await in_thread_if_large(self._call.size, asked),
                    used,
                    call.labels,
                    self._progress,
                )
            except Failure as failure:
                if failure.kind is CONTEXT_OVERFLOW and toolbox is not None and toolbox.take_back():
                    continue
                raise
            text = await self._strip_reasoning(text)
            if toolbox is None or not text.tool_requests or self._tools_told:
                return self._require_text(text)
            if text.text:
                self._void_text()  # what was heard is not the answer
            if offered:
                turn_tokens = toolbox.turn_tokens
                await toolbox.answer(text.text, text.tool_requests, text.reasoning)
                next_read = used.input_tokens - read_before + toolbox.turn_tokens - turn_tokens
                if not self._can_afford(used.tokens + 2 * next_read):
                    toolbox.end()
            else:  # it calls tools although it may not: nothing is run, and it is asked once more without any
                self._tools_told = True

    def _can_afford(self, tokens: int) -> bool:
        """Return whether the requests of the call at this route may take so many tokens."""
        affordable = self._call.request.affordable_input_tokens
        return not affordable or tokens <= affordable

    def _require_text(self, reply: Reply) -> Reply:
        """Return a reply that holds an answer, in reasoning without an end too if it is whole. Raise Failure."""
        shape = self._call.shape
        if reply.text.strip():
            return reply
        if reply.unclosed and shape is not None and is_accepted(shape, reply.unclosed):
            return replace(reply, text=reply.unclosed)
        if reply.tool_requests:
            raise Failure(
                ONLY_TOOL_CALLS, "the answer holds no text, only calls of tools that it may not use"
            )
        raise of_empty_answer(truncated=reply.truncated, max_output_tokens=self._max_output_tokens)

    async def _strip_reasoning(self, reply: Reply) -> Reply:
        """Return the reply without reasoning that only its whole text shows to be some."""
        capabilities, model = self._live.endpoint.capabilities, self._live.route.model
        was_untagged = capabilities.reasons_untagged(model)
        text = reply.text if was_untagged else drop_stray_end(reply.text)
        answer = await in_thread_if_large(len(text), partial(strip_reasoning, text))
        if reply.text and not reply.truncated:
            begins_inside = answer != text and await in_thread_if_large(
                len(text), partial(starts_inside_reasoning, text)
            )
            capabilities.note_reasoning(model, untagged=begins_inside)
        elif answer == text and was_untagged:
            answer = ""  # a text that was cut off before the end of its reasoning is all reasoning
        if answer == reply.text:
            return reply
        self._void_text()
        if answer:
            self._progress.add_text(answer)
        return replace(reply, text=answer)

    def _void_text(self) -> None:
        self._progress.start_route_attempt(self._live.route.name)

    def _explain_problem(self, error: InvalidAnswer, text: Reply) -> str:
        return self._with_schema(problem_instruction(error, truncated=text.truncated))

    def _ask_for_text(self) -> tuple[PromptPart, ...]:
        """Return what is said after an answer without text; nothing if turns with tools end the messages."""
        if self._toolbox is not None and self._toolbox.turns:
            return ()
        return (PromptPart(role=PROMPT_ROLE_USER, text=self._with_schema(_NO_TEXT)),)

    def _with_schema(self, instruction: str) -> str:
        shape = self._call.shape
        if shape is None or self._live.route.local:
            return instruction
        return f"{instruction} {schema_instruction(shape)}"

    def _build_request(self, again: tuple[PromptPart, ...], *, may_use_tools: bool) -> ModelRequest:
        call, live, toolbox = self._call, self._live, self._toolbox
        shape = call.shape
        if shape is not None and live.route.local:
            shape = bound_shape(shape)
        slots = {slot: call.documents[path] for path, slot in self._slots.items()}
        in_slots = sum(len(held.utf8) for held in slots.values())
        is_long = call.size - in_slots > MAX_KEPT
        messages = LateMessages(partial(self._create_messages, again), is_long=is_long)
        size = call.size + sum(len(each.text) for each in again)
        if toolbox is not None or self._token_limit() is not None:  # else all of it is sent
            size = sum(len(each.text) for each in messages if isinstance(each, PromptPart))
        return ModelRequest(
            live.route.model,
            messages,
            self._max_output_tokens,
            call.temperature,
            shape,
            tools=toolbox.specs if toolbox is not None and not self._tools_told else (),
            may_use_tools=may_use_tools,
            max_characters=self._max_characters,
            size=size,
            slots=slots,
        )

    def _create_messages(self, again: tuple[PromptPart, ...]) -> Sequence[PromptPart | ToolTurn]:
        """Return the messages of a request. Raise Failure if they do not fit the route's context."""
        toolbox = self._toolbox
        fitted, self._characters_left_out = self._fit_prompt(again)
        messages: list[PromptPart | ToolTurn] = list(fitted)
        if toolbox is not None:
            before = len(messages) - len(again)  # an answer and what is said of it, each a message of its own
            messages[before:before] = toolbox.turns_as_messages() if self._tools_told else toolbox.turns
        return messages

    @property
    def _max_characters(self) -> int:
        """How long an answer may be: one that is far beyond what its caller can pay for has ignored its bound."""
        if not self._call.request.affordable_output_tokens:
            return MAX_CHARACTERS
        return min(self._max_output_tokens * _CHARACTERS_A_TOKEN, MAX_CHARACTERS)

    @property
    def _max_output_tokens(self) -> int:
        return self._call.output_tokens_at(self._live.route)

    def _fit_prompt(self, again: tuple[PromptPart, ...]) -> tuple[tuple[PromptPart, ...], int]:
        allowed = self._token_limit()
        if allowed is None:
            return fit((*self._create_prompt(), *again), 0)
        if self._toolbox is not None:
            allowed -= self._toolbox.described_tokens + (
                self._toolbox.turn_tokens if again else allowed // _TOOLS_SHARE
            )
        try:
            return fit((*self._create_prompt(), *again), max(allowed, 1))
        except Unfittable as error:
            raise Failure(CONTEXT_OVERFLOW, str(error)) from None

    def _token_limit(self) -> int | None:
        """Return tokens that the prompt may have, None if the route's context is unknown."""
        context, shape = self._live.route.served_context_tokens, self._call.shape
        if context == 0:
            return None
        wanted = self._call.request.max_output_tokens or self._live.route.max_output_tokens or context // 4
        # A schema takes tokens if it has to be said in words; the model on this machine is bound to it by a grammar.
        words = (
            estimate_tokens(schema_instruction(shape))
            if shape is not None and not self._live.route.local
            else 0
        )
        # An answer may not take so much of a small context that no question is left.
        return max(context - min(wanted, context // 2) - words, 1)

    def _build_answer(self, text: Reply, accepted: str) -> GenerateCompleted:
        return GenerateCompleted(
            text=accepted,
            route=self._live.route.name,
            model=text.model,
            truncated=text.truncated,
            prompt_characters_left_out=self._characters_left_out,
            repeats=self._meter.reasks,
            tool_calls=self._toolbox.used if self._toolbox is not None else (),
        )


def _choose_fullest(given: Sequence[tuple[InvalidAnswer, Reply]]) -> tuple[Reply, str]:
    """Return the reply that gives the most of what was asked for, or else the most words, and what it gives."""
    error, reply = max(given, key=lambda each: (each[0].properties, len(each[1].text)))
    return reply, json.dumps(error.partial, ensure_ascii=False) if error.partial else reply.text.strip()


def _fit_or_none(prompt: Sequence[PromptPart], allowed: int) -> tuple[PromptPart, ...] | None:
    try:
        return fit(prompt, max(allowed, 1))[0]
    except Unfittable:
        return None
