"""A model's use of tools in one route attempt: what its calls are answered, and when it has to answer.

Tools read the documents that came with the prompt and nothing else. Calls and results take from a number of
tokens, so that prompt and turns stay within the route's context. What does not fit is cut, and a model with no tokens left
has to answer.
"""

import asyncio
import json
from collections.abc import Sequence
from typing import Final

from msgspec.structs import replace
from opentelemetry.trace import Span, SpanKind, Status, StatusCode

from parley.gateway.prompt.documents import Documents
from parley.gateway.prompt.fitting import estimate_tokens
from parley.gateway.prompt.tools import (
    NO_REASONING,
    TOOLS,
    Reasoning,
    ToolRequest,
    ToolResult,
    ToolSpec,
    ToolTurn,
    describe_use,
    run_tool,
)
from parley.gateway.tracing import TraceLabels
from parley.runtime import telemetry
from parley.v1 import agent_pb2
from parley.v1.gateway_pb2 import PROMPT_ROLE_ASSISTANT, PROMPT_ROLE_USER, PromptPart

MIN_TOKENS: Final = 512
"""Tokens for calls and results below which tools are of no use."""

_DEFAULT_TOKENS: Final = 48_000
"""Tokens for calls and results if a route's context is unknown."""
_MAX_ID: Final = 512
_SAID_SHARE: Final = 4
"""What a model said, and what it thought, before it called a tool is sent back if either takes at most one part in so many
of the tokens left."""
_CHARACTERS_A_TOKEN: Final = 4
"""Of reasoning that is sent back, which may be encrypted."""
_CALL_TOKENS: Final = 24
"""What a template puts around a call and its result."""
_NO_TOKENS: Final = "There is no room left for results. Answer with what you have."
_NO_MORE: Final = "Nothing more can be looked up. Answer now, in words, with what you have."
_CUT: Final = "\n[Cut: no room is left for more. Answer with what you have.]"

_tracer = telemetry.tracer(__name__)


class Toolbox:
    """The tools of one route attempt, and the turns with them so far.

    `tokens_left` is what calls and results may still take.
    """

    def __init__(
        self,
        documents: Documents,
        tools: Sequence[str],
        limit: int,
        labels: TraceLabels,
        *,
        trace_content: bool,
    ) -> None:
        self.specs: tuple[ToolSpec, ...] = tuple(TOOLS[name] for name in tools)
        self.used: list[agent_pb2.ToolCall] = []
        self.turns: list[ToolTurn] = []
        self.tokens_left = _DEFAULT_TOKENS
        self._documents = documents
        self._tools = tuple(tools)
        self._limit = limit
        self._labels = labels
        self._trace_content = trace_content
        self._ended = False
        self._took_back = False
        self._asked = 0

    @property
    def offers(self) -> bool:
        """Whether the model may call another one."""
        return not self._ended and len(self.used) < self._limit and self.tokens_left >= MIN_TOKENS

    @property
    def described_tokens(self) -> int:
        """Tokens that the descriptions of the tools take."""
        return sum(
            estimate_tokens(each.name + each.description + json.dumps(each.parameters)) for each in self.specs
        )

    @property
    def turn_tokens(self) -> int:
        """Tokens of all turns so far."""
        return sum(_count_turn_tokens(turn) for turn in self.turns)

    def end(self) -> None:
        """Offer no more."""
        self._ended = True

    def take_back(self) -> bool:
        """Withdraw the last results, which were too much for the endpoint, and offers no more; whether it could."""
        if self._took_back or not self.turns:
            return False
        self._took_back = True
        last = self.turns[-1]
        self.turns[-1] = replace(last, results=tuple(_NO_TOKENS for _ in last.results))
        self.end()
        return True

    async def answer(
        self, text: str, asked: Sequence[ToolRequest], reasoning: Reasoning = NO_REASONING
    ) -> None:
        """Run what a reply of this text asks for, in order, and keep it as a turn."""
        said = text if estimate_tokens(text) <= self.tokens_left // _SAID_SHARE else ""
        left = self.tokens_left - estimate_tokens(said)
        if reasoning.characters // _CHARACTERS_A_TOKEN > left // _SAID_SHARE:
            reasoning = NO_REASONING
        left -= reasoning.characters // _CHARACTERS_A_TOKEN
        requests: list[ToolRequest] = []
        results: list[str] = []
        for each in asked:
            request = self._with_own_id(each, requests)
            left -= estimate_tokens(request.sayable_name + request.sayable_arguments) + _CALL_TOKENS
            if left < 0 and requests:
                break  # not even the question would fit
            if left < 0:
                result = ToolResult(_NO_TOKENS, failed=True)
                self.used.append(describe_use(request, result))
                request = replace(request, arguments="")
            else:
                result = await self._run_tool(request, left)
            requests.append(request)
            results.append(result.text)
            left -= estimate_tokens(result.text)
        turn = ToolTurn(said, tuple(requests), tuple(results), reasoning)
        self.turns.append(turn)
        self.tokens_left -= _count_turn_tokens(turn)

    def turns_as_messages(self) -> tuple[PromptPart, ...]:
        """Return the turns in words, for a model that calls tools although it may not: nothing in it invites another call."""
        messages: list[PromptPart] = []
        for turn in self.turns:
            asked = [f"{each.sayable_name} {each.sayable_arguments}" for each in turn.requests]
            said = "\n".join([turn.said, "I look up:", *asked]).strip()
            messages.append(PromptPart(role=PROMPT_ROLE_ASSISTANT, text=said))
            messages.append(PromptPart(role=PROMPT_ROLE_USER, text="\n\n".join(turn.results)))
        if messages:
            messages[-1].text += f"\n\n{_NO_MORE}"
        return tuple(messages)

    def _with_own_id(self, request: ToolRequest, before: Sequence[ToolRequest]) -> ToolRequest:
        """Return the request with an id that is its own; a few endpoints give none."""
        self._asked += 1
        fine = 0 < len(request.id) <= _MAX_ID and all(each.id != request.id for each in before)
        return request if fine else replace(request, id=f"call_{self._asked}")

    async def _run_tool(self, request: ToolRequest, allowed: int) -> ToolResult:
        if len(self.used) >= self._limit:
            return ToolResult(
                f"The limit of {self._limit} tool calls is reached. Answer with what you have.", True
            )
        with _tracer.start_as_current_span(
            f"execute_tool {request.sayable_name}",
            kind=SpanKind.INTERNAL,
            attributes=self._attributes(request),
            record_exception=False,
        ) as span:
            # In a thread: a search goes through all documents.
            result = await asyncio.to_thread(run_tool, self._documents, self._tools, request)
            result = _cut(result, allowed)
            self._set_result(span, result)
        self.used.append(describe_use(request, result))
        return result

    def _attributes(self, request: ToolRequest) -> dict[str, str]:
        attributes = {
            "gen_ai.operation.name": "execute_tool",
            "gen_ai.tool.name": request.sayable_name,
            "gen_ai.tool.type": "function",
            "gen_ai.tool.call.id": request.id,
            **self._labels.attributes(),
        }
        if self._trace_content:
            attributes["gen_ai.tool.call.arguments"] = request.arguments
        return attributes

    def _set_result(self, span: Span, result: ToolResult) -> None:
        if result.failed:
            span.set_attribute("error.type", "tool_error")
            span.set_status(Status(StatusCode.ERROR, "tool_error"))
        if self._trace_content:
            span.set_attribute("gen_ai.tool.call.result", result.text)


def _count_turn_tokens(turn: ToolTurn) -> int:
    tokens = estimate_tokens(turn.said) + _CALL_TOKENS * len(turn.requests)
    tokens += turn.reasoning.characters // _CHARACTERS_A_TOKEN
    for request, result in zip(turn.requests, turn.results, strict=True):
        tokens += estimate_tokens(request.sayable_name + request.sayable_arguments) + estimate_tokens(result)
    return tokens


def _cut(result: ToolResult, tokens: int) -> ToolResult:
    """Return the result in at most so many tokens, cut at the end of a line if it has to be."""
    if estimate_tokens(result.text) <= tokens:
        return result
    tokens -= estimate_tokens(_CUT)
    low, high = 0, len(result.text)
    while low < high:
        kept = (low + high + 1) // 2
        if estimate_tokens(result.text[:kept]) <= tokens:
            low = kept
        else:
            high = kept - 1
    kept = result.text.rfind("\n", 0, low + 1)
    return (
        replace(result, text=result.text[:kept] + _CUT) if kept > 0 else ToolResult(_NO_TOKENS, failed=True)
    )
