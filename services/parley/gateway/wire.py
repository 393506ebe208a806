"""The two APIs as data: bodies of requests, and readers of what comes back. Nothing here does I/O."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, Protocol

from parley.gateway.errors_table import CONTENT_REFUSED, AttemptFailed
from parley.gateway.failures import of_error_object
from parley.gateway.fitting import Message
from parley.gateway.structured import AnswerShape

__all__ = ["Api", "ModelReply", "ModelRequest", "Reader", "body", "reader"]


class Api(Enum):
    """The ways to ask for a text, with their paths."""

    RESPONSES = "/responses"
    CHAT = "/chat/completions"


@dataclass(frozen=True, slots=True)
class ModelRequest:
    """One question to a model. `max_output_tokens` 0 and `temperature` None leave it to the endpoint."""

    model: str
    messages: tuple[Message, ...]
    max_output_tokens: int = 0
    temperature: float | None = None
    shape: AnswerShape | None = None
    stream: bool = True


@dataclass(slots=True)
class ModelReply:
    """What an endpoint said besides the text."""

    model: str = ""
    input_tokens: int = 0
    output_tokens: int = 0
    finished: bool = False
    truncated: bool = False


class Reader(Protocol):
    """Reads an API's answer; `reply` fills as it goes."""

    reply: ModelReply

    def event(self, event: Mapping[str, Any]) -> str:
        """The text that one streamed event adds. Raises AttemptFailed where the event is an error."""
        ...

    def whole(self, answer: Mapping[str, Any]) -> str:
        """The text of an answer that came in one piece. Raises AttemptFailed where it is an error."""
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
        "input": [{"role": message.role, "content": message.text} for message in request.messages],
        "store": False,  # the endpoint need not keep what was said
    }
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
        "messages": [{"role": message.role, "content": message.text} for message in request.messages],
    }
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


def _schema(shape: AnswerShape) -> dict[str, Any]:
    return {"name": shape.name, "schema": shape.schema, "strict": shape.strict}


@dataclass(slots=True)
class _ResponsesReader:
    reply: ModelReply = field(default_factory=ModelReply)
    _any_text: bool = False

    def event(self, event: Mapping[str, Any]) -> str:
        match event.get("type"):
            case "response.output_text.delta" | "response.refusal.delta":
                delta = _text(event.get("delta"))
                self._any_text = self._any_text or bool(delta)
                return delta
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
        return "".join(
            _text(part.get("text")) or _text(part.get("refusal"))
            for item in _mappings(answer.get("output"))
            if item.get("type") == "message"
            for part in _mappings(item.get("content"))
        )


@dataclass(slots=True)
class _ChatReader:
    reply: ModelReply = field(default_factory=ModelReply)

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
        return _text(said.get("content")) or _text(said.get("refusal"))


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""


def _count(value: object) -> int:
    return value if isinstance(value, int) and 0 <= value < 2**40 else 0


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [each for each in value if isinstance(each, Mapping)] if isinstance(value, list) else []
