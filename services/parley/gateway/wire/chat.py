"""The Chat Completions API as data."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct, field

from parley.gateway.failures import CONTENT_REFUSED, Failure
from parley.gateway.prompt.fitting import ROLE_NAMES
from parley.gateway.prompt.tools import MAX_ARGUMENTS, Reasoning, ToolTurn
from parley.gateway.wire.api import (
    MAX_REASONING,
    MAX_TOOL_CALLS,
    ModelReply,
    ModelRequest,
    create_tool_request,
    describe_tool,
    schema_fields,
)
from parley.gateway.wire.errors import of_error_object
from parley.gateway.wire.json_fields import (
    as_arguments,
    as_content,
    as_count,
    as_mapping,
    as_mappings,
    as_name,
    as_sendable,
    as_text,
    count_written_tokens,
)
from parley.v1.gateway_pb2 import PromptPart


def body(request: ModelRequest, omitted: frozenset[str]) -> dict[str, Any]:
    """Return the JSON of a request; `omitted` names parameters that the endpoint is known to refuse."""
    given: dict[str, Any] = {
        "model": request.model,
        "messages": [item for message in request.messages for item in _chat_messages(message)],
    }
    if request.tools:
        given["tools"] = [{"type": "function", "function": describe_tool(tool)} for tool in request.tools]
        if not request.may_use_tools:
            given["tool_choice"] = "none"
    if request.stream:
        given["stream"] = True
        given["stream_options"] = {"include_usage": True}
    if request.max_output_tokens:
        # Older servers know only max_tokens; those that refuse it name the newer word.
        name = "max_completion_tokens" if "max_tokens" in omitted else "max_tokens"
        given[name] = request.max_output_tokens
    if request.temperature is not None:
        given["temperature"] = request.temperature
    if request.shape is not None:
        given["response_format"] = {"type": "json_schema", "json_schema": schema_fields(request.shape)}
    return given


def _chat_messages(message: PromptPart | ToolTurn) -> Iterator[dict[str, Any]]:
    if isinstance(message, PromptPart):
        yield {"role": ROLE_NAMES[message.role], "content": message.text}
        return
    asked = [
        {
            "id": each.id,
            "type": "function",
            "function": {"name": each.sayable_name, "arguments": each.sayable_arguments},
        }
        for each in message.requests
    ]
    yield {
        "role": "assistant",
        "content": message.said or None,
        "tool_calls": asked,
        **message.reasoning.fields,
    }
    for each, result in zip(message.requests, message.results, strict=True):
        yield {"role": "tool", "tool_call_id": each.id, "content": result}


class _Fragments(Struct):
    """A tool call as it comes in a stream of Chat Completions."""

    id: str
    index: object
    name: str = ""
    arguments: str = ""

    def continues_with(self, given_id: str, index: object, name: str) -> bool:
        """Return whether a fragment belongs to this call: some endpoints send whole calls under one index, or without any."""
        if given_id and self.id and given_id != self.id:
            return False
        return not (name and self.name) if index is None else index == self.index


_TEXT_NAMES: Final = frozenset({"role", "content"})
_REASONING_NAMES: Final = frozenset({"reasoning_content", "reasoning", "reasoning_details"})


class ChatReader(Struct):
    """Reads one answer."""

    reply: ModelReply = field(default_factory=ModelReply)
    _tool_fragments: list[_Fragments] = field(default_factory=list)
    _reasoning: list[str] = field(default_factory=list)
    _details: list[dict[str, Any]] = field(default_factory=list)

    def read_event(self, event: Mapping[str, Any]) -> str:
        """Return the text that one streamed event adds."""
        return self._read(event, "delta")

    def says_text_alone(self, event: Mapping[str, Any]) -> bool:
        """Return whether nothing but text is taken from a streamed event."""
        choices = event.get("choices")
        if event.get("usage") or not isinstance(choices, list) or len(choices) != 1:
            return False
        choice = as_mapping(choices[0])
        said = as_mapping(choice.get("delta"))
        is_text = isinstance(said.get("content"), str) and said.keys() <= _TEXT_NAMES
        return is_text and choice.get("finish_reason") is None

    def read_whole(self, answer: Mapping[str, Any]) -> str:
        """Return the text of an answer that came in one piece."""
        return self._read(answer, "message")

    def _read(self, answer: Mapping[str, Any], where: str) -> str:
        if answer.get("error"):
            raise of_error_object(answer["error"])
        usage = answer.get("usage")
        if isinstance(usage, dict):
            self.reply.input_tokens = as_count(usage.get("prompt_tokens"))
            self.reply.output_tokens = count_written_tokens(usage, "prompt_tokens", "completion_tokens")
        if not self.reply.model:
            self.reply.model = as_name(answer.get("model"))
            self.reply.id = as_name(answer.get("id"))
        choices = answer.get("choices")
        if not isinstance(choices, list) or not choices:
            return ""
        choice = as_mapping(choices[0])
        why = choice.get("finish_reason")
        if why is not None:
            self.reply.finished = True
            self.reply.finish_reason = as_name(why)
            self.reply.truncated = why == "length"
            if why == "error":
                raise of_error_object(
                    choice.get("error") or "the endpoint broke the answer off with an error"
                )
            if why == "content_filter":
                raise Failure(CONTENT_REFUSED, "the endpoint's content filter stopped the answer")
        said = as_mapping(choice.get(where))
        for fragment in as_mappings(said.get("tool_calls")):
            self._read_tool_fragment(fragment)
        if not _REASONING_NAMES.isdisjoint(said):
            self._read_reasoning(said)
        return self._read_content(said.get("content")) or as_text(said.get("refusal"))

    def end(self) -> None:
        """Put together what it asks of tools, and what it thought before."""
        for each in self._tool_fragments:
            self.reply.tool_requests.append(create_tool_request(each.id, each.name, each.arguments))
        if self.reply.reasoning_characters > MAX_REASONING:
            return
        fields: dict[str, Any] = {}
        if self._details:
            fields = {"reasoning_details": self._details}
        elif self._reasoning:
            fields = {"reasoning_content": "".join(self._reasoning)}
        self.reply.reasoning = Reasoning(fields=as_sendable(fields) or {})

    def _read_content(self, content: object) -> str:
        """Return the text of a message's content; a few endpoints give it in parts, with reasoning among them."""
        if isinstance(content, str):
            return content
        for part in as_mappings(content):
            if part.get("type") == "thinking":
                thought = as_mappings(part.get("thinking"))
                self.reply.reasoning_characters += sum(len(as_text(each.get("text"))) for each in thought)
        return as_content(content)

    def _read_reasoning(self, said: Mapping[str, Any]) -> None:
        """Keep what it thinks, which endpoints give by several names; OpenRouter's details are to be sent back."""
        thought = as_text(said.get("reasoning_content")) or as_text(said.get("reasoning"))
        details = as_mappings(said.get("reasoning_details"))
        self.reply.reasoning_characters += len(thought) or sum(len(str(each)) for each in details)
        if self.reply.reasoning_characters > MAX_REASONING:
            return  # the rest would only be thrown away
        if thought:
            self._reasoning.append(thought)
        for each in details:
            self._join_detail(each)

    def _join_detail(self, piece: Mapping[str, Any]) -> None:
        """Join the pieces of one detail: those of a stream that follow each other under one index."""
        last = self._details[-1] if self._details else None
        if last is None or piece.get("index") is None or piece["index"] != last.get("index"):
            self._details.append(dict(piece))
            return
        for name, value in piece.items():
            grows = name in {"text", "summary", "data"} and isinstance(value, str)
            if grows and isinstance(last.get(name), str):
                last[name] += value
            elif value is not None:
                last[name] = value

    def _read_tool_fragment(self, fragment: Mapping[str, Any]) -> None:
        self.reply.tool_begun = True
        function = as_mapping(fragment.get("function"))
        given_id, name = as_text(fragment.get("id")), as_text(function.get("name"))
        call = self._find_call(given_id, fragment.get("index"), name)
        if call is not None:
            call.id, call.name = call.id or given_id, call.name or name
            if len(call.arguments) <= MAX_ARGUMENTS:  # the rest would only be thrown away
                call.arguments += as_arguments(function.get("arguments"))

    def _find_call(self, given_id: str, index: object, name: str) -> _Fragments | None:
        for call in reversed(self._tool_fragments):
            if call.continues_with(given_id, index, name):
                return call
        if len(self._tool_fragments) == MAX_TOOL_CALLS:
            return None
        self._tool_fragments.append(_Fragments(given_id, index))
        return self._tool_fragments[-1]
