"""The two APIs as data: bodies of requests, and readers of what comes back. Nothing here does I/O."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Final, Protocol

from parley.gateway.airlock import clean
from parley.gateway.errors_table import CONTENT_REFUSED, AttemptFailed
from parley.gateway.failures import of_error_object
from parley.gateway.fitting import Message
from parley.gateway.structured import AnswerShape
from parley.gateway.tools import MAX_ARGUMENTS, ToolRequest, ToolSpec, ToolTurn

__all__ = ["Api", "ModelReply", "ModelRequest", "Reader", "body", "reader"]

_MOST_TOOL_CALLS: Final = 128
"""Of one reply; what a model asks beyond that is not heard."""


class Api(Enum):
    """The ways to ask for a text, with their paths."""

    RESPONSES = "/responses"
    CHAT = "/chat/completions"


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One question to a model. `max_output_tokens` 0 and `temperature` None leave it to the endpoint.

    `tools` are described to the model; without `may_use_tools` it is told that it has to answer now.
    """

    model: str
    messages: tuple[Message | ToolTurn, ...]
    max_output_tokens: int = 0
    temperature: float | None = None
    shape: AnswerShape | None = None
    stream: bool = True
    tools: tuple[ToolSpec, ...] = ()
    may_use_tools: bool = True

    def texts(self) -> Iterator[str]:
        """All that it says."""
        for each in self.messages:
            if isinstance(each, Message):
                yield each.text
            else:
                yield each.said
                yield from (request.arguments for request in each.requests)
                yield from each.results


@dataclass(slots=True)
class ModelReply:
    """What an endpoint said besides the text.

    `tool_begun` says that it began to ask for a tool, `refused` that it did no work for the request.
    """

    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    finished: bool = False
    truncated: bool = False
    tool_begun: bool = False
    refused: bool = False
    tool_requests: list[ToolRequest] = field(default_factory=list)


class Reader(Protocol):
    """Reads an API's answer; `reply` fills as it goes, its `tool_requests` at `end`."""

    reply: ModelReply

    def event(self, event: Mapping[str, Any]) -> str:
        """The text that one streamed event adds. Raises AttemptFailed where the event is an error."""
        ...

    def whole(self, answer: Mapping[str, Any]) -> str:
        """The text of an answer that came in one piece. Raises AttemptFailed where it is an error."""
        ...

    def end(self) -> None:
        """There is no more to read."""
        ...


def body(api: Api, request: ModelRequest, omitted: frozenset[str]) -> dict[str, Any]:
    """The request's JSON; `omitted` names the parameters that this endpoint is known to refuse."""
    given = _responses_body(request) if api is Api.RESPONSES else _chat_body(request, omitted)
    for name in omitted:
        given.pop(name, None)
    return given


def reader(api: Api) -> Reader:
    """A fresh reader for one answer."""
    return _ResponsesReader() if api is Api.RESPONSES else _ChatReader()


def _responses_body(request: ModelRequest) -> dict[str, Any]:
    given: dict[str, Any] = {
        "model": request.model,
        "input": [item for message in request.messages for item in _response_items(message)],
        "store": False,  # the endpoint need not keep what was said
    }
    if request.tools:
        given["tools"] = [{"type": "function", **_described(tool), "strict": False} for tool in request.tools]
        if not request.may_use_tools:
            given["tool_choice"] = "none"
    if request.stream:
        given["stream"] = True
    if request.max_output_tokens:
        given["max_output_tokens"] = request.max_output_tokens
    if request.temperature is not None:
        given["temperature"] = request.temperature
    if request.shape is not None:
        given["text"] = {"format": {"type": "json_schema", **_schema(request.shape)}}
    return given


def _chat_body(request: ModelRequest, omitted: frozenset[str]) -> dict[str, Any]:
    given: dict[str, Any] = {
        "model": request.model,
        "messages": [item for message in request.messages for item in _chat_messages(message)],
    }
    if request.tools:
        given["tools"] = [{"type": "function", "function": _described(tool)} for tool in request.tools]
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
        given["response_format"] = {"type": "json_schema", "json_schema": _schema(request.shape)}
    return given


def _response_items(message: Message | ToolTurn) -> Iterator[dict[str, Any]]:
    """Items without ids: the endpoint was told not to keep them, so it could not find them by id."""
    if isinstance(message, Message):
        yield {"role": message.role, "content": message.text}
        return
    if message.said:
        yield {"role": "assistant", "content": message.said}
    for each in message.requests:
        yield {
            "type": "function_call",
            "call_id": each.id,
            "name": each.sayable_name,
            "arguments": each.sayable_arguments,
        }
    for each, result in zip(message.requests, message.results, strict=True):
        yield {"type": "function_call_output", "call_id": each.id, "output": result}


def _chat_messages(message: Message | ToolTurn) -> Iterator[dict[str, Any]]:
    if isinstance(message, Message):
        yield {"role": message.role, "content": message.text}
        return
    asked = [
        {
            "id": each.id,
            "type": "function",
            "function": {"name": each.sayable_name, "arguments": each.sayable_arguments},
        }
        for each in message.requests
    ]
    yield {"role": "assistant", "content": message.said or None, "tool_calls": asked}
    for each, result in zip(message.requests, message.results, strict=True):
        yield {"role": "tool", "tool_call_id": each.id, "content": result}


def _described(tool: ToolSpec) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "parameters": tool.parameters}


def _schema(shape: AnswerShape) -> dict[str, Any]:
    return {"name": shape.name, "schema": shape.schema, "strict": shape.strict}


@dataclass(slots=True)
class _ResponsesReader:
    reply: ModelReply = field(default_factory=ModelReply)
    _any_text: bool = False
    _asked: list[Mapping[str, Any]] = field(default_factory=list)

    def event(self, event: Mapping[str, Any]) -> str:
        match event.get("type"):
            case "response.output_text.delta" | "response.refusal.delta":
                delta = _text(event.get("delta"))
                self._any_text = self._any_text or bool(delta)
                return delta
            case "response.output_item.added" | "response.function_call_arguments.delta":
                item = event.get("item")
                self.reply.tool_begun |= item is None or _mapping(item).get("type") == "function_call"
                return ""
            case "response.output_item.done":
                self._hear(_mapping(event.get("item")))
                return ""
            case "response.completed" | "response.incomplete" | "response.failed":
                text = self.whole(_mapping(event.get("response")))
                return "" if self._any_text else text
            case "error":
                raise of_error_object(event.get("error") or event)
            case _:
                if event.get("error"):
                    raise of_error_object(event["error"])
                return ""

    def whole(self, answer: Mapping[str, Any]) -> str:
        self.reply.model = _text(answer.get("model"))
        usage = _mapping(answer.get("usage"))
        self.reply.input_tokens = _count(usage.get("input_tokens"))
        self.reply.output_tokens = _count(usage.get("output_tokens"))
        if answer.get("error") or answer.get("status") == "failed":
            raise of_error_object(answer.get("error"))
        self.reply.finished = answer.get("status") in {"completed", "incomplete", None}
        if answer.get("status") == "incomplete":
            why = _mapping(answer.get("incomplete_details")).get("reason")
            if why == "content_filter":
                raise AttemptFailed(CONTENT_REFUSED, "the endpoint's content filter stopped the answer")
            self.reply.truncated = True
        items = _mappings(answer.get("output"))
        if not self._asked:  # what came item by item is not counted again
            for item in items:
                self._hear(item)
        return "".join(
            _text(part.get("text")) or _text(part.get("refusal"))
            for item in items
            if item.get("type") == "message"
            for part in _mappings(item.get("content"))
        )

    def end(self) -> None:
        for item in self._asked:
            asked = _tool_request(
                item.get("call_id") or item.get("id"), item.get("name"), item.get("arguments")
            )
            self.reply.tool_requests.append(asked)

    def _hear(self, item: Mapping[str, Any]) -> None:
        if item.get("type") == "function_call" and len(self._asked) < _MOST_TOOL_CALLS:
            self._asked.append(item)
            self.reply.tool_begun = True


@dataclass(slots=True)
class _Fragments:
    """A tool call as it comes in a stream of Chat Completions."""

    id: str
    index: object
    name: str = ""
    arguments: str = ""

    def is_gone_on_with(self, given_id: str, index: object, name: str) -> bool:
        """Some endpoints send whole calls under one index, or without any."""
        if given_id and self.id and given_id != self.id:
            return False
        return not (name and self.name) if index is None else index == self.index


@dataclass(slots=True)
class _ChatReader:
    reply: ModelReply = field(default_factory=ModelReply)
    _asked: list[_Fragments] = field(default_factory=list)

    def event(self, event: Mapping[str, Any]) -> str:
        return self._read(event, "delta")

    def whole(self, answer: Mapping[str, Any]) -> str:
        return self._read(answer, "message")

    def _read(self, answer: Mapping[str, Any], where: str) -> str:
        if answer.get("error"):
            raise of_error_object(answer["error"])
        usage = answer.get("usage")
        if isinstance(usage, Mapping):
            self.reply.input_tokens = _count(usage.get("prompt_tokens"))
            self.reply.output_tokens = _count(usage.get("completion_tokens"))
        if not self.reply.model:
            self.reply.model = _text(answer.get("model"))
        choices = answer.get("choices")
        if not isinstance(choices, list) or not choices:
            return ""
        choice = _mapping(choices[0])
        why = choice.get("finish_reason")
        if why is not None:
            self.reply.finished = True
            self.reply.truncated = why == "length"
            if why == "content_filter":
                raise AttemptFailed(CONTENT_REFUSED, "the endpoint's content filter stopped the answer")
        said = _mapping(choice.get(where))
        for fragment in _mappings(said.get("tool_calls")):
            self._hear(fragment)
        return _text(said.get("content")) or _text(said.get("refusal"))

    def end(self) -> None:
        for each in self._asked:
            self.reply.tool_requests.append(_tool_request(each.id, each.name, each.arguments))

    def _hear(self, fragment: Mapping[str, Any]) -> None:
        self.reply.tool_begun = True
        function = _mapping(fragment.get("function"))
        given_id, name = _text(fragment.get("id")), _text(function.get("name"))
        call = self._call_of(given_id, fragment.get("index"), name)
        if call is not None:
            call.id, call.name = call.id or given_id, call.name or name
            if len(call.arguments) <= MAX_ARGUMENTS:  # the rest would only be thrown away
                call.arguments += _arguments(function.get("arguments"))

    def _call_of(self, given_id: str, index: object, name: str) -> _Fragments | None:
        for call in reversed(self._asked):
            if call.is_gone_on_with(given_id, index, name):
                return call
        if len(self._asked) == _MOST_TOOL_CALLS:
            return None
        self._asked.append(_Fragments(given_id, index))
        return self._asked[-1]


def _tool_request(given_id: object, name: object, arguments: object) -> ToolRequest:
    return ToolRequest(
        clean(_text(given_id)), clean(_text(name)), clean(_arguments(arguments), MAX_ARGUMENTS + 1)
    )


def _arguments(value: object) -> str:
    """Arguments should be JSON text; some endpoints send the object itself."""
    return json.dumps(value) if isinstance(value, Mapping) else _text(value)


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value < 2**40 else 0


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
