"""The Responses API as data."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from msgspec import Struct, field

from parley.gateway.failures import CONTENT_REFUSED, Failure
from parley.gateway.prompt.fitting import ROLE_NAMES
from parley.gateway.prompt.tools import Reasoning, ToolTurn
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
    as_content,
    as_count,
    as_mapping,
    as_mappings,
    as_name,
    as_sendable,
    as_text,
    count_written_tokens,
)
from parley.v1.gateway_pb2 import PROMPT_ROLE_ASSISTANT, PromptPart

_REASONING_KEPT: Final = ("type", "id", "summary", "content", "encrypted_content")


def body(request: ModelRequest) -> dict[str, Any]:
    """Return the JSON of a request."""
    given: dict[str, Any] = {
        "model": request.model,
        "input": [item for message in request.messages for item in _response_items(message)],
        "store": False,  # the endpoint need not keep what was said
    }
    if request.tools:
        given["tools"] = [
            {"type": "function", **describe_tool(tool), "strict": False} for tool in request.tools
        ]
        if request.may_use_tools:
            # It goes back with what the tools answer: an endpoint that keeps nothing has it from nowhere else.
            given["include"] = ["reasoning.encrypted_content"]
        else:
            given["tool_choice"] = "none"
    if request.stream:
        given["stream"] = True
    if request.max_output_tokens:
        given["max_output_tokens"] = request.max_output_tokens
    if request.temperature is not None:
        given["temperature"] = request.temperature
    if request.shape is not None:
        given["text"] = {"format": {"type": "json_schema", **schema_fields(request.shape)}}
    return given


def _response_items(message: PromptPart | ToolTurn) -> Iterator[dict[str, Any]]:
    """Return items without ids: the request asks the endpoint not to keep them, so it could not find them by id.

    Reasoning goes back as it came, since it carries its own content.
    """
    if isinstance(message, PromptPart):
        if message.role == PROMPT_ROLE_ASSISTANT:
            yield _output_message(message.text)
        else:
            yield {"role": ROLE_NAMES[message.role], "content": message.text}
        return
    yield from map(dict, message.reasoning.items)
    if message.said:
        yield _output_message(message.said)
    for each in message.requests:
        yield {
            "type": "function_call",
            "call_id": each.id,
            "name": each.sayable_name,
            "arguments": each.sayable_arguments,
        }
    for each, result in zip(message.requests, message.results, strict=True):
        yield {"type": "function_call_output", "call_id": each.id, "output": result}


def _output_message(text: str) -> dict[str, Any]:
    """Return what the model said as an output of its own: llama.cpp takes it in no shorter form."""
    return {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]}


class ResponsesReader(Struct):
    """Reads one answer."""

    reply: ModelReply = field(default_factory=ModelReply)
    _any_text: bool = False
    _tool_items: list[Mapping[str, Any]] = field(default_factory=list)
    _reasoning_items: list[Mapping[str, Any]] = field(default_factory=list)

    def read_event(self, event: Mapping[str, Any]) -> str:
        """Return the text that one streamed event adds."""
        match event.get("type"):
            case "response.output_text.delta" | "response.refusal.delta":
                delta = as_text(event.get("delta"))
                self._any_text = self._any_text or bool(delta)
                self.reply.thinks = False
                return delta
            case "response.reasoning_text.delta" | "response.reasoning_summary_text.delta":
                self.reply.reasoning_characters += len(as_text(event.get("delta")))
                return ""
            case "response.output_item.added" | "response.function_call_arguments.delta":
                item = event.get("item")
                kind = "function_call" if item is None else as_mapping(item).get("type")
                self.reply.tool_begun |= kind == "function_call"
                self.reply.thinks = kind == "reasoning"
                return ""
            case "response.output_item.done":
                self._read_item(as_mapping(event.get("item")))
                return ""
            case "response.completed" | "response.incomplete" | "response.failed":
                text = self.read_whole(as_mapping(event.get("response")))
                return "" if self._any_text else text
            case "error":
                raise of_error_object(event.get("error") or event)
            case _:
                if event.get("error"):
                    raise of_error_object(event["error"])
                return ""

    def says_text_alone(self, event: Mapping[str, Any]) -> bool:
        """Return False: each event has a number too."""
        del event
        return False

    def read_whole(self, answer: Mapping[str, Any]) -> str:
        """Return the text of an answer that came in one piece."""
        self.reply.model, self.reply.id = as_name(answer.get("model")), as_name(answer.get("id"))
        usage = as_mapping(answer.get("usage"))
        self.reply.input_tokens = as_count(usage.get("input_tokens"))
        self.reply.output_tokens = count_written_tokens(usage, "input_tokens", "output_tokens")
        if answer.get("error") or answer.get("status") == "failed":
            raise of_error_object(answer.get("error"))
        self.reply.finished = answer.get("status") in {"completed", "incomplete", None}
        self.reply.finish_reason = "stop" if answer.get("status") == "completed" else ""
        if answer.get("status") == "incomplete":
            why = as_mapping(answer.get("incomplete_details")).get("reason")
            if why == "content_filter":
                raise Failure(CONTENT_REFUSED, "the endpoint's content filter stopped the answer")
            self.reply.truncated, self.reply.finish_reason = True, "length"
        items = as_mappings(answer.get("output"))
        heard = {item["type"] for item in (*self._tool_items, *self._reasoning_items)}
        for item in items:
            if item.get("type") not in heard:  # what came item by item is not counted again
                self._read_item(item)
        return "".join(as_content(item.get("content")) for item in items if item.get("type") == "message")

    def end(self) -> None:
        """Put together what it asks of tools, and what it thought before."""
        if sum(len(str(item)) for item in self._reasoning_items) <= MAX_REASONING:
            self.reply.reasoning = Reasoning(items=tuple(as_sendable(self._reasoning_items) or ()))
        for item in self._tool_items:
            asked = create_tool_request(
                item.get("call_id") or item.get("id"), item.get("name"), item.get("arguments")
            )
            self.reply.tool_requests.append(asked)

    def _read_item(self, item: Mapping[str, Any]) -> None:
        if item.get("type") == "function_call" and len(self._tool_items) < MAX_TOOL_CALLS:
            self._tool_items.append(item)
            self.reply.tool_begun = True
        if item.get("type") == "reasoning":
            self.reply.thinks = False
            if item.get("encrypted_content") or item.get("content"):  # the rest could only be found by its id
                kept = {name: item[name] for name in _REASONING_KEPT if item.get(name) is not None}
                self._reasoning_items.append({"summary": [], **kept})
