"""One endpoint: the `openai` client, one pool of connections, and what was learned of it.

Answers are read by the chunk and not by the client's typed events: building a pydantic object for every token would cost more
than everything else here.
"""

import dataclasses
import ssl
from collections.abc import Awaitable, Callable, Iterator, Mapping
from functools import partial
from typing import Any, Final
from urllib.parse import urlsplit
from urllib.request import getproxies

import httpx2
from msgspec.structs import replace
from opentelemetry.trace import SpanKind

from parley.gateway.failures import (
    CONNECTION,
    CUT_ANSWER,
    NO_SUCH_ENDPOINT,
    OWN_LIMIT,
    UNKNOWN_MODEL,
    UNREACHABLE,
    UNREADABLE_ANSWER,
    Failure,
    FailureKind,
)
from parley.gateway.prompt.structured_answers import schema_instruction
from parley.gateway.prompt.tools import ToolTurn
from parley.gateway.tracing import TraceLabels
from parley.gateway.usage import RouteUsage
from parley.gateway.wire import instrumentation
from parley.gateway.wire.api import MAX_KEPT, Api, LateMessages, ModelReply, ModelRequest, Reader
from parley.gateway.wire.capabilities import EndpointCapabilities
from parley.gateway.wire.client_requests import Answer, ClientRequests
from parley.gateway.wire.endpoint import (
    EndpointLimits,
    ListedModel,
    Provider,
    Reply,
    ToolsRefused,
    text_models,
)
from parley.gateway.wire.errors import (
    TRANSPORT_ERRORS,
    has_no_answer,
    of_empty_answer,
    of_status,
    of_transport,
    was_not_sent,
)
from parley.gateway.wire.instrumentation import Operation
from parley.gateway.wire.key_mask import find_key_forms
from parley.gateway.wire.openai_parts import (
    APIStatusError,
    AsyncOpenAI,
    DefaultAioHttpClient,
    Omit,
)
from parley.gateway.wire.request_body import body, body_to_send, reader, request_json
from parley.gateway.wire.streams import (
    AnswerMonitor,
    IncomingText,
    Listener,
    Patience,
    is_event_stream,
    read_events,
    read_whole,
)
from parley.runtime import telemetry
from parley.runtime.byte_budget import Share
from parley.runtime.large_texts import in_thread_if_large
from parley.runtime.redaction import Redaction
from parley.runtime.unpacking import ACCEPT_GZIP
from parley.v1.gateway_pb2 import PROMPT_ROLE_SYSTEM, PromptPart

_MAX_LESSONS: Final = 18
"""Requests of one answer at most: the API, and in each of the two three parameters, the schema, the stream with and
without it, and reasoning, wanted or not, may cost one each."""
_SHARE_SECONDS: Final = 10.0
"""How long a request waits until it may be sent."""
_NO_API: Final = "no OpenAI-compatible API answers there, look at the path of its base URL"
_MAY_START: Final = "no OpenAI-compatible API answers there, though its list does: it may be starting behind a proxy, or the path of its base URL is wrong"
_tracer = telemetry.tracer(__name__)


class OpenAIEndpoint:
    """An endpoint of an OpenAI-compatible API."""

    def __init__(self, provider: Provider, limits: EndpointLimits) -> None:
        self.provider = provider
        self.capabilities = EndpointCapabilities(provider.api, provider.first_api)
        self.traces_content = limits.trace_content
        self._limits = limits
        self._secret = provider.api_key.get_secret_value() if provider.api_key else ""
        self._key_forms = find_key_forms(self._secret)
        self.redacted = Redaction(self._secret, provider.headers.values())
        self._patience = (
            Patience() if provider.patient else Patience(limits.first_token_seconds, limits.idle_seconds)
        )
        # Left out request by request: the client refuses to be made without any way to authenticate.
        headers: dict[str, Any] = {} if self._secret else {"Authorization": Omit()}
        if self._secret and provider.key_header != "Authorization":
            headers = {"Authorization": Omit(), provider.key_header: self._secret}
        self._requests = _open_client(provider, self._secret, limits, headers)
        self._server = _server(provider.base_url)
        # A patient one was found on this machine, or was started on it, a moment ago.
        self._has_answered = self._has_completed = provider.patient
        self._listed = frozenset[str]()

    async def aclose(self) -> None:
        """Close the connections."""
        await self._requests.aclose()

    async def complete(
        self,
        request: ModelRequest,
        used: RouteUsage,
        labels: TraceLabels,
        listener: Listener | None = None,
    ) -> Reply:
        """Return one answer. `listener` gets the pieces of a streamed one as they pass the sanitizer.

        Raise Failure, and ToolsRefused if the request offers tools that are not taken. One HTTP request, but
        for when something about the endpoint turns out.
        """
        choice = self.capabilities.api
        finds_out = await choice.start_probe(request.model)
        try:
            return await self._ask(request, used, labels, listener)
        finally:
            if finds_out:
                choice.end_probe()

    async def _ask(
        self, request: ModelRequest, used: RouteUsage, labels: TraceLabels, listener: Listener | None
    ) -> Reply:
        """Return one answer, by the other API if the usual one turns out not to serve."""
        choice, model, with_schema = self.capabilities.api, request.model, request.shape is not None
        api = choice.of(model)
        known = self.capabilities.of_call()
        usual: Failure | None = None  # what the usual API failed with, while the other one is asked
        for _ in range(_MAX_LESSONS):
            rendered = _adapt(known, api, request)
            create_body = partial(self._create_body, api, rendered, known.find_refused(api, model))
            monitor = AnswerMonitor(listener, self._patience if _must_start_early(rendered) else Patience())
            problem: APIStatusError | Failure
            try:
                reply = await self._send(api, rendered, create_body, used, labels, monitor)
            except APIStatusError as error:
                if _learn(known, api, rendered, create_body(), error):
                    api = choice.of(model) if usual is None else api
                    continue
                problem, failure = error, self._explain(error, model)
            except Failure as error:
                if monitor.characters:
                    raise
                problem = failure = error
            else:
                known.confirm()
                choice.record_answer(api, model, with_schema=with_schema)
                return reply
            if usual is not None:
                choice.record_other_failed(model)
                raise usual from None
            other = choice.choose_other(api, model, problem, with_schema=with_schema)
            if other is None:
                raise failure from None
            usual, api = failure, other
        raise Failure(UNREADABLE_ANSWER, "the endpoint refuses request after request")

    async def list_models(self) -> tuple[ListedModel, ...]:
        """Return the models that the endpoint lists and that write text, at least one. Raise Failure."""
        try:
            answer = await self._requests.send("GET", "/models", silence_seconds=self._limits.idle_seconds)
            try:
                found = text_models(await read_whole(answer.chunks()))
            finally:
                await answer.aclose()
            self._has_answered = True
        except Failure as failure:
            raise self._judge(failure, NO_SUCH_ENDPOINT, answered=self._has_answered) from None
        except APIStatusError as error:
            raise self._failure(error, answered=self._has_answered) from None
        except TRANSPORT_ERRORS as error:
            raise self._transport_failure(error) from None
        if not found:
            raise Failure(UNKNOWN_MODEL, "it lists no model; name one with PARLEY_MODEL")
        self._listed = frozenset(each.name for each in found)
        return found

    async def _send(
        self,
        api: Api,
        request: ModelRequest,
        create_body: Callable[[], dict[str, Any]],
        used: RouteUsage,
        labels: TraceLabels,
        monitor: AnswerMonitor,
    ) -> Reply:
        share = await self._take_share(request.size)
        used.requests += 1
        reading, failed = reader(api), None
        operation = Operation(self.provider.name, request.model, self._server)
        span = _tracer.start_span(
            f"chat {request.model}",
            kind=SpanKind.CLIENT,
            attributes=self._attributes(request, labels),
        )
        try:
            send = partial(self._send_body, api, request, create_body, share)
            text = await monitor.run(self._read_reply(api, send, request, reading, monitor))
            if self._limits.trace_content and span.is_recording():
                said = ToolTurn(text.text, text.tool_requests, ())
                span.set_attribute("gen_ai.output.messages", instrumentation.messages_json([said]))
        except BaseException as error:
            failed = error
            instrumentation.set_error(span, error)
            raise
        else:
            return text
        finally:
            share.release()
            if not reading.reply.refused:
                _estimate(reading.reply, request, monitor.characters)
            used.input_tokens += reading.reply.input_tokens
            used.output_tokens += reading.reply.output_tokens
            operation.end(reading.reply, failed)
            if span.is_recording():
                instrumentation.set_reply_attributes(span, reading.reply)
            span.end()

    def _create_body(self, api: Api, request: ModelRequest, omitted: frozenset[str]) -> dict[str, Any]:
        """Return a request's JSON. It holds all texts of the request. Do not keep it."""
        return body(api, request, omitted) | dict(self.provider.extra_body)

    async def _take_share(self, size: int) -> Share:
        """Wait until a request of this size may be sent. Raise Failure, which is no fault of the endpoint, if that takes long."""
        try:
            return await self._limits.sending.take(size, _SHARE_SECONDS)
        except TimeoutError:
            raise Failure(OWN_LIMIT, "too many bytes of other requests are being sent") from None

    async def _send_body(
        self, api: Api, request: ModelRequest, create_body: Callable[[], dict[str, Any]], share: Share
    ) -> Answer:
        """Send a request and return the answer as it begins. Nothing of a long body is kept once it is sent."""
        body_sent, of_body = body_to_send(
            await in_thread_if_large(request.size, lambda: request_json(create_body(), request.slots)),
            share.release,
        )
        # Its silence is not bounded here: AnswerMonitor knows how long that may last.
        return await self._requests.send("POST", api.value, body_sent, of_body)

    async def _read_reply(
        self,
        api: Api,
        send: Callable[[], Awaitable[Answer]],
        request: ModelRequest,
        reading: Reader,
        monitor: AnswerMonitor,
    ) -> Reply:
        try:
            answer = await send()
            self.capabilities.api.record_request_taken(api)
            incoming = IncomingText(monitor, request.max_characters, self._key_forms)
            try:
                if is_event_stream(answer.headers):
                    self._has_answered = self._has_completed = True
                    await read_events(answer.chunks(), reading, incoming, monitor)
                    if not incoming.full:
                        answer.let_end()
                else:
                    whole = await read_whole(answer.chunks())
                    self._has_answered = self._has_completed = True
                    incoming.feed(reading.read_whole(whole))
                    monitor.follow(reading.reply)
            finally:
                await answer.aclose()
        except Failure as failure:
            lasting = self._judge(failure, NO_SUCH_ENDPOINT, answered=self._has_completed)
            raise self._redact(lasting) from None
        except APIStatusError:
            reading.reply.refused = True
            raise
        except TRANSPORT_ERRORS as error:
            reading.reply.refused = was_not_sent(error)
            raise self._transport_failure(error) from None
        text = incoming.end()
        reply = reading.reply
        if not (reply.finished or incoming.full):
            raise Failure(CUT_ANSWER, "the answer was cut off before its end")
        reading.end()
        truncated = reply.truncated or incoming.full
        spent = truncated or 0 < request.max_output_tokens <= reply.output_tokens
        unclosed = "" if spent else incoming.unclosed
        if not (text.strip() or reply.tool_requests or unclosed):
            raise of_empty_answer(truncated=spent, max_output_tokens=request.max_output_tokens)
        hide = incoming.mask.hide
        tools = tuple(replace(each, arguments=hide(each.arguments)) for each in reply.tool_requests)
        return Reply(text, hide(reply.model) or request.model, truncated, tools, reply.reasoning, unclosed)

    def _failure(self, error: APIStatusError, *, answered: bool) -> Failure:
        return self._redact(self._judge(of_status(error), NO_SUCH_ENDPOINT, answered=answered))

    def _explain(self, error: APIStatusError, model: str) -> Failure:
        """Return the failure of a status, with its likely cause if no API is there and none has ever completed anything there.

        A server that lists the model is not waited for in vain: while it is rolled out, a proxy before it may say 404 for a while.
        """
        may_start = error.status_code == 404 and model in self._listed
        failure = self._failure(error, answered=self._has_completed or may_start)
        is_missing = failure.kind in {NO_SUCH_ENDPOINT, UNREACHABLE} and failure.status >= 400
        if self._has_completed or not is_missing:  # a redirect says what to do
            return failure
        return dataclasses.replace(
            failure, message=f"{failure.message}; {_MAY_START if may_start else _NO_API}"
        )

    def _transport_failure(self, error: BaseException) -> Failure:
        failure = of_transport(error)
        return (
            self._judge(failure, CONNECTION, answered=self._has_answered) if has_no_answer(error) else failure
        )

    def _judge(self, failure: Failure, lasting: FailureKind, *, answered: bool) -> Failure:
        """Return a failure that lasts if it is of this kind, and what was asked for was never answered there: none is waited for.

        A list of models says little of completions: their path may be another one.
        """
        if answered or failure.kind is not lasting:
            return failure
        return dataclasses.replace(failure, kind=UNREACHABLE)

    def _redact(self, failure: Failure) -> Failure:
        return dataclasses.replace(failure, message=self.redacted(failure.message))

    def _attributes(self, request: ModelRequest, labels: TraceLabels) -> dict[str, str | int | float]:
        attributes: dict[str, str | int | float] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": self.provider.name,
            "gen_ai.request.model": request.model,
            **self._server,
            **labels.attributes(),
        }
        if request.max_output_tokens:
            attributes["gen_ai.request.max_tokens"] = request.max_output_tokens
        if request.temperature is not None:
            attributes["gen_ai.request.temperature"] = request.temperature
        if self._limits.trace_content:
            attributes["gen_ai.input.messages"] = instrumentation.messages_json(request.whole_messages())
        return attributes


def _learn(
    known: EndpointCapabilities,
    api: Api,
    request: ModelRequest,
    sent: dict[str, Any],
    error: APIStatusError,
) -> bool:
    """Return whether the error says how to ask otherwise. Raise ToolsRefused."""
    if known.learn_no_tools(request.model, sent, error):
        raise ToolsRefused from None
    schema = request.shape.text if request.shape is not None else ""
    return known.api.learn_missing(api, request.model, error) or known.learn(
        api, request.model, sent, error, schema
    )


def _adapt(known: EndpointCapabilities, api: Api, request: ModelRequest) -> ModelRequest:
    """Return the request as this endpoint can be asked.

    A schema is put in words if it takes none, or does not keep to it. The answer comes in one piece if it
    refuses a stream. Reasoning goes back if it is wanted.
    """
    model, shape = request.model, request.shape
    words: tuple[PromptPart, ...] = ()
    if shape is not None and known.needs_words(model, shape.text):
        words = (PromptPart(role=PROMPT_ROLE_SYSTEM, text=schema_instruction(shape)),)
        shape = shape if known.takes_schema(model, shape.text) else None

    def adapt_messages() -> Iterator[PromptPart | ToolTurn]:
        yield from words
        for each in request.messages:
            if isinstance(each, ToolTurn):
                yield replace(each, reasoning=known.takes_back(api, model, each.reasoning))
            else:
                yield each

    stream = request.stream and known.streams(model, with_schema=shape is not None)
    messages = LateMessages(adapt_messages, is_long=request.size > MAX_KEPT)
    return replace(request, messages=messages, shape=shape, stream=stream)


def _must_start_early(request: ModelRequest) -> bool:
    """Return whether silence means that the answer is stalled. Some endpoints hold one to a schema back until it is whole."""
    return request.stream and request.shape is None


def _estimate(reply: ModelReply, request: ModelRequest, characters: int) -> None:
    """Estimate what a request has used all the same if its endpoint did not say so, or was not there to say so any more."""
    if not reply.input_tokens:
        reply.input_tokens = request.count_tokens()
    if not reply.output_tokens:
        asked = sum(len(each.arguments) for each in reply.tool_requests)
        reply.output_tokens = (characters + asked) // 4


def _server(base_url: str) -> dict[str, str | int]:
    """Return where an endpoint is, under the names of the semantic conventions; never a path or a name of a user."""
    parts = urlsplit(base_url)
    port = parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    return {"server.address": parts.hostname or "", **({"server.port": port} if port else {})}


def _create_tls_context(base_url: str) -> ssl.SSLContext:
    """Return what checks certificates on the way to an endpoint; where plaintext is spoken it trusts none, and reads no file."""
    is_plain = urlsplit(base_url).scheme == "http" and not getproxies()
    return ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT) if is_plain else httpx2.create_ssl_context()


def _open_client(
    provider: Provider, secret: str, limits: EndpointLimits, of_request: Mapping[str, Any]
) -> ClientRequests:
    headers: dict[str, Any] = {**ACCEPT_GZIP, **provider.headers}
    if not provider.sends_organization:  # what the client would take from OpenAI's own variables
        headers["OpenAI-Organization"] = Omit()
        headers["OpenAI-Project"] = Omit()
    if not provider.keep_alive:
        headers["Connection"] = "close"
    connections = DefaultAioHttpClient(
        verify=_create_tls_context(provider.base_url),
        limits=httpx2.Limits(max_connections=limits.max_connections, keepalive_expiry=30.0),
        base_url=provider.base_url,
    )
    client = AsyncOpenAI(
        # Always given: the client would otherwise send OPENAI_API_KEY to whatever endpoint this is.
        api_key=secret or "none",
        base_url=provider.base_url,
        default_headers=headers,
        max_retries=0,
        http_client=connections,
    )
    return ClientRequests(client, connections, of_request, limits.connect_seconds)
