"""Spans and metrics of requests to models, by the semantic conventions for generative AI."""

import json
from collections.abc import Iterable, Iterator
from time import monotonic
from typing import Any, Final

from opentelemetry.trace import Span, Status, StatusCode

from parley.gateway.failures import Failure
from parley.gateway.prompt.fitting import ROLE_NAMES
from parley.gateway.prompt.tools import ToolTurn
from parley.gateway.wire.api import ModelReply
from parley.gateway.wire.openai_parts import APIStatusError
from parley.runtime import telemetry
from parley.v1.gateway_pb2 import PromptPart


def set_reply_attributes(span: Span, reply: ModelReply) -> None:
    """Say what the endpoint said it used."""
    span.set_attribute("gen_ai.usage.input_tokens", reply.input_tokens)
    span.set_attribute("gen_ai.usage.output_tokens", reply.output_tokens)
    if reply.model:
        span.set_attribute("gen_ai.response.model", reply.model)
    if reply.id:
        span.set_attribute("gen_ai.response.id", reply.id)
    if reply.finish_reason:
        span.set_attribute("gen_ai.response.finish_reasons", (reply.finish_reason,))


def error_type(error: BaseException) -> str:
    """Return what an error is called in traces and metrics: a status, a failure kind or a class."""
    if isinstance(error, Failure):
        return str(error.status or error.kind.name)
    if isinstance(error, APIStatusError):
        return str(error.status_code)
    return type(error).__name__


def set_error(span: Span, error: BaseException) -> None:
    """Say what the request failed with, without a word that may repeat what was sent."""
    kind = error_type(error)
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR, kind))


def messages_json(messages: Iterable[PromptPart | ToolTurn]) -> str:
    """Return messages as the semantic conventions have them."""
    return json.dumps([each for message in messages for each in _to_trace(message)], ensure_ascii=False)


def _to_trace(message: PromptPart | ToolTurn) -> Iterator[dict[str, Any]]:
    if isinstance(message, PromptPart):
        yield {"role": ROLE_NAMES[message.role], "parts": [{"type": "text", "content": message.text}]}
        return
    parts: list[dict[str, Any]] = [{"type": "text", "content": message.said}] if message.said else []
    parts += [
        {"type": "tool_call", "id": each.id, "name": each.name, "arguments": each.arguments}
        for each in message.requests
    ]
    yield {"role": "assistant", "parts": parts}
    for each, result in zip(message.requests, message.results, strict=False):
        yield {"role": "tool", "parts": [{"type": "tool_call_response", "id": each.id, "response": result}]}


_meter: Final = telemetry.meter(__name__)
# Of an open provider any model may be named.
_models: Final = telemetry.BoundedNames()
_tokens: Final = _meter.create_histogram(
    "gen_ai.client.token.usage",
    "{token}",
    "Tokens of one request, read and written.",
    explicit_bucket_boundaries_advisory=[4**power for power in range(14)],
)
_duration: Final = _meter.create_histogram(
    "gen_ai.client.operation.duration",
    "s",
    "One request to a model.",
    explicit_bucket_boundaries_advisory=[0.01 * 2**power for power in range(14)],
)


class Operation:
    """One request to a model, from when this is made until `end`."""

    def __init__(self, provider: str, model: str, server: dict[str, str | int]) -> None:
        """Begin; `server` are the attributes that say where it goes."""
        self._began = monotonic()
        self._attributes: dict[str, str | int] = {
            "gen_ai.operation.name": "chat",
            "gen_ai.provider.name": provider,
            "gen_ai.request.model": _models.label(model),
            **server,
        }

    def end(self, reply: ModelReply, error: BaseException | None) -> None:
        """Note what it took; `error` is what it failed with."""
        failed = {"error.type": error_type(error)} if error is not None else {}
        _duration.record(monotonic() - self._began, {**self._attributes, **failed})
        for kind, tokens in (("input", reply.input_tokens), ("output", reply.output_tokens)):
            if tokens:
                _tokens.record(tokens, {**self._attributes, "gen_ai.token.type": kind})
