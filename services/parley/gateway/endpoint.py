"""One endpoint: the `openai` client, one pool of connections, and what was learned of it.

Requests go through the client's own `post`, and answers are read by the chunk and not by its typed events: building
a pydantic object for every token would cost more than everything else here.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

import httpx2
import openai
from openai import AsyncOpenAI, AsyncStream, DefaultAioHttpClient, Omit
from opentelemetry.trace import Span, SpanKind, Status, StatusCode
from pydantic import SecretStr

from parley.gateway.airlock import Airlock
from parley.gateway.errors_table import (
    CUT_ANSWER,
    EMPTY_ANSWER,
    UNKNOWN_MODEL,
    UNREADABLE_ANSWER,
    AttemptFailed,
)
from parley.gateway.failures import TRANSPORT_ERRORS, of_status, of_transport, was_not_sent
from parley.gateway.fitting import Message, estimate_tokens
from parley.gateway.hearing import Heard, OnText, bound_error, read_events, read_whole
from parley.gateway.memory import EndpointMemory
from parley.gateway.redaction import Redaction
from parley.gateway.structured import in_words
from parley.gateway.tools import ToolRequest, ToolTurn
from parley.gateway.wire import Api, ModelReply, ModelRequest, Reader, body, reader
from parley.runtime import telemetry

__all__ = ["Endpoint", "EndpointLimits", "Provider", "Spent", "Text", "ToolsRefused", "TraceLabels"]

_MAX_LESSONS: Final = 6
_tracer = telemetry.tracer(__name__)


@dataclass(frozen=True, slots=True)
class Provider:
    """Who serves models, and where.

    Attributes:
        kind: `openai`, `openrouter`, `azure-openai`, `openai-compatible` or `local`.
        api: the API it is known to have, None to find out.
        routing: how OpenRouter chooses among its own providers; goes with every request.
        keep_alive: whether a connection may serve a second request.
    """

    name: str
    kind: str
    base_url: str
    api_key: SecretStr | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    api: Api | None = None
    keep_alive: bool = True
    routing: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class EndpointLimits:
    """Times in seconds.

    `first_token_seconds` is how long a stream may take to its first text, `idle_seconds` how long it may be silent.
    """

    connect_seconds: float = 10.0
    first_token_seconds: float = 40.0
    idle_seconds: float = 30.0
    max_connections: int = 512
    trace_content: bool = False


@dataclass(slots=True)
class Spent:
    """What a call has used so far, failed and abandoned requests included."""

    requests: int = 0
    input_tokens: int = 0
    output_tokens: int = 0

    @property
    def tokens(self) -> int:
        """Read and written."""
        return self.input_tokens + self.output_tokens

    def since(self, before: "Spent") -> "Spent":
        """What was used after `before`."""
        return Spent(
            self.requests - before.requests,
            self.input_tokens - before.input_tokens,
            self.output_tokens - before.output_tokens,
        )


@dataclass(frozen=True, slots=True)
class TraceLabels:
    """What spans say of a request besides its model: the agent, and the debate it speaks in."""

    agent: str = ""
    conversation: str = ""


@dataclass(frozen=True, slots=True)
class Text:
    """A text through the airlock, with what the endpoint said of it, and the tools that it asks for instead."""

    text: str
    model: str
    truncated: bool
    tool_requests: tuple[ToolRequest, ...] = ()


class ToolsRefused(Exception):  # noqa: N818 (a lesson, not an error of this program)
    """The endpoint takes no tools from this model, and the memory knows now: the request has to do without."""


class Endpoint:
    """An endpoint of an OpenAI-compatible API."""

    def __init__(self, provider: Provider, limits: EndpointLimits) -> None:
        self.provider = provider
        self.memory = EndpointMemory(provider.api)
        self.traces_content = limits.trace_content
        self._limits = limits
        self._secret = provider.api_key.get_secret_value() if provider.api_key else ""
        self.redacted = Redaction(self._secret, provider.headers.values())
        self._first_token_seconds = None if provider.kind == "local" else limits.first_token_seconds
        # The local model says nothing while it reads, which takes it as long as it takes.
        idle = None if provider.kind == "local" else limits.idle_seconds
        self._stream_timeout = httpx2.Timeout(None, connect=limits.connect_seconds, read=idle)
        # Left out request by request: the client refuses to be made without any way to authenticate.
        self._headers: dict[str, Any] = {} if self._secret else {"Authorization": Omit()}
        if provider.kind == "azure-openai" and self._secret:
            self._headers = {"Authorization": Omit(), "api-key": self._secret}
        self._whole_timeout = httpx2.Timeout(None, connect=limits.connect_seconds)
        self._client = _client(provider, self._secret, limits)

    async def aclose(self) -> None:
        """Closes the connections."""
        await self._client.close()

    async def complete(
        self, request: ModelRequest, spent: Spent, labels: TraceLabels, on_text: OnText | None = None
    ) -> Text:
        """One answer. `on_text` hears the pieces of a streamed one as they pass the airlock.

        Raises AttemptFailed, and ToolsRefused where the request offers tools that are not taken. One HTTP request, but
        for the first time that something about the endpoint turns out.
        """
        first = await self.memory.ask_first()
        try:
            for _ in range(_MAX_LESSONS):
                api = self.memory.known or Api.RESPONSES
                rendered = self._rendered(request)
                sent = body(api, rendered, self.memory.refused(api, request.model))
                if self.provider.routing:
                    sent["provider"] = dict(self.provider.routing)
                try:
                    return await self._request(api, rendered, sent, spent, labels, on_text)
                except openai.APIStatusError as error:
                    if self.memory.learn_no_tools(request.model, sent, error):
                        raise ToolsRefused from None
                    if not self.memory.learn(api, request.model, sent, error):
                        raise self._failure(error) from None
            raise AttemptFailed(UNREADABLE_ANSWER, "the endpoint refuses request after request")
        finally:
            if first:
                self.memory.asked()

    async def first_model(self) -> str:
        """The first model that the endpoint lists and that writes text. Raises AttemptFailed."""
        try:
            # Streamed, as answers are, so that its size is bounded.
            stream = await self._client.get(
                "/models",
                cast_to=object,
                options={"timeout": self._limits.idle_seconds, "headers": self._headers},
                stream=True,
                stream_cls=AsyncStream[object],
            )
            try:
                found = (await read_whole(stream.response)).get("data")
            finally:
                await stream.close()
        except openai.APIStatusError as error:
            raise self._failure(error) from None
        except TRANSPORT_ERRORS as error:
            raise of_transport(error) from None
        for each in found if isinstance(found, list) else []:
            name = each.get("id") if isinstance(each, dict) else None
            if isinstance(name, str) and name and "embed" not in name.lower():
                return name
        raise AttemptFailed(UNKNOWN_MODEL, "it lists no model; name one with PARLEY_MODEL")

    def _rendered(self, request: ModelRequest) -> ModelRequest:
        """The request as this endpoint can be asked: a schema in words where it takes none, or does not keep to it."""
        if request.shape is None or not self.memory.needs_words(request.model):
            return request
        words = Message("system", in_words(request.shape))
        sent = request.shape if self.memory.takes_schema(request.model) else None
        return replace(request, messages=(words, *request.messages), shape=sent)

    async def _request(
        self,
        api: Api,
        request: ModelRequest,
        sent: dict[str, Any],
        spent: Spent,
        labels: TraceLabels,
        on_text: OnText | None,
    ) -> Text:
        spent.requests += 1
        reading = reader(api)
        with _tracer.start_as_current_span(
            f"chat {request.model}",
            kind=SpanKind.CLIENT,
            attributes=self._attributes(request, labels),
            record_exception=False,  # an error's text may repeat what was sent
            set_status_on_exception=False,
        ) as span:
            heard = Heard(on_text, self._first_token_seconds if request.stream else None)
            try:
                text = await heard.within(self._read(api, sent, request, reading, heard))
            except BaseException as error:
                _fail_span(span, error)
                raise
            finally:
                if not reading.reply.refused:
                    _estimate(reading.reply, request, heard.characters)
                spent.input_tokens += reading.reply.input_tokens
                spent.output_tokens += reading.reply.output_tokens
                if span.is_recording():
                    _describe(span, reading.reply)
            if self._limits.trace_content and span.is_recording():
                said = ToolTurn(text.text, text.tool_requests, ())
                span.set_attribute("gen_ai.output.messages", _messages_json([said]))
            return text

    async def _read(
        self, api: Api, sent: dict[str, Any], request: ModelRequest, reading: Reader, heard: Heard
    ) -> Text:
        try:
            # Streamed on our side even where the endpoint sends one piece, so that its size is bounded.
            stream = await self._client.post(
                api.value,
                cast_to=object,
                body=sent,
                options={
                    "timeout": self._stream_timeout if request.stream else self._whole_timeout,
                    "headers": self._headers,
                },
                stream=True,
                stream_cls=AsyncStream[object],
            )
            self.memory.answered(api)
            response = stream.response
            airlock = Airlock()
            pieces: list[str] = []
            try:
                if response.headers.get("content-type", "").startswith("text/event-stream"):
                    await read_events(response, reading, airlock, pieces, heard)
                else:
                    pieces.append(airlock.feed(reading.whole(await read_whole(response))))
                    heard.characters += len(pieces[-1])
            finally:
                await stream.close()
        except AttemptFailed as failure:
            raise self._redacted(failure) from None
        except openai.APIStatusError:
            reading.reply.refused = True
            raise
        except TRANSPORT_ERRORS as error:
            reading.reply.refused = was_not_sent(error)
            raise of_transport(error) from None
        pieces.append(airlock.end())
        text = "".join(pieces)
        reply = reading.reply
        if not (reply.finished or airlock.full):
            raise AttemptFailed(CUT_ANSWER, "the answer was cut off before its end")
        reading.end()
        if not text.strip() and not reply.tool_requests:
            raise AttemptFailed(EMPTY_ANSWER, "the answer holds no text")
        if pieces[-1]:
            heard(pieces[-1])
        return Text(
            text, reply.model or request.model, reply.truncated or airlock.full, tuple(reply.tool_requests)
        )

    def _failure(self, error: openai.APIStatusError) -> AttemptFailed:
        return self._redacted(of_status(error))

    def _redacted(self, failure: AttemptFailed) -> AttemptFailed:
        return replace(failure, message=self.redacted(failure.message))

    def _attributes(self, request: ModelRequest, labels: TraceLabels) -> dict[str, str | int | float]:
        attributes: dict[str, str | int | float] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": self.provider.name,
            "gen_ai.request.model": request.model,
        }
        if request.max_output_tokens:
            attributes["gen_ai.request.max_tokens"] = request.max_output_tokens
        if request.temperature is not None:
            attributes["gen_ai.request.temperature"] = request.temperature
        if labels.agent:
            attributes["gen_ai.agent.name"] = labels.agent
        if labels.conversation:
            attributes["gen_ai.conversation.id"] = labels.conversation
        if self._limits.trace_content:
            attributes["gen_ai.input.messages"] = _messages_json(request.messages)
        return attributes


def _estimate(reply: ModelReply, request: ModelRequest, characters: int) -> None:
    """What a request has used all the same where its endpoint did not say so, or was not there to say so any more."""
    if not reply.input_tokens:
        reply.input_tokens = sum(estimate_tokens(text) for text in request.texts())
    if not reply.output_tokens:
        asked = sum(len(each.arguments) for each in reply.tool_requests)
        reply.output_tokens = (characters + asked) // 4


def _client(provider: Provider, secret: str, limits: EndpointLimits) -> AsyncOpenAI:
    headers: dict[str, Any] = dict(provider.headers)
    if provider.kind != "openai":  # what the client would take from OpenAI's own variables
        headers["OpenAI-Organization"] = Omit()
        headers["OpenAI-Project"] = Omit()
    if not provider.keep_alive:
        headers["Connection"] = "close"
    connections = httpx2.Limits(max_connections=limits.max_connections, keepalive_expiry=30.0)
    return AsyncOpenAI(
        # Always given: the client would otherwise send OPENAI_API_KEY to whatever endpoint this is.
        api_key=secret or "none",
        base_url=provider.base_url,
        default_headers=headers,
        max_retries=0,
        http_client=DefaultAioHttpClient(
            limits=connections, base_url=provider.base_url, event_hooks={"response": [bound_error]}
        ),
    )


def _describe(span: Span, reply: ModelReply) -> None:
    span.set_attribute("gen_ai.usage.input_tokens", reply.input_tokens)
    span.set_attribute("gen_ai.usage.output_tokens", reply.output_tokens)
    if reply.model:
        span.set_attribute("gen_ai.response.model", reply.model)


def _fail_span(span: Span, error: BaseException) -> None:
    if isinstance(error, AttemptFailed):
        kind = str(error.status or error.row.name)
    elif isinstance(error, openai.APIStatusError):
        kind = str(error.status_code)
    else:
        kind = type(error).__name__
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR, kind))


def _messages_json(messages: Iterable[Message | ToolTurn]) -> str:
    return json.dumps([each for message in messages for each in _traced(message)], ensure_ascii=False)


def _traced(message: Message | ToolTurn) -> Iterator[dict[str, Any]]:
    if isinstance(message, Message):
        yield {"role": message.role, "parts": [{"type": "text", "content": message.text}]}
        return
    parts: list[dict[str, Any]] = [{"type": "text", "content": message.said}] if message.said else []
    parts += [
        {"type": "tool_call", "id": each.id, "name": each.name, "arguments": each.arguments}
        for each in message.requests
    ]
    yield {"role": "assistant", "parts": parts}
    for each, result in zip(message.requests, message.results, strict=False):
        yield {"role": "tool", "parts": [{"type": "tool_call_response", "id": each.id, "response": result}]}
