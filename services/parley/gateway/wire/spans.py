"""What a span says of a request to a model."""

import json
from collections.abc import Iterable, Iterator
from typing import Any

import openai
from opentelemetry.trace import Span, Status, StatusCode

from parley.gateway.failures import Failure
from parley.gateway.prompt.parts import Message
from parley.gateway.prompt.tools import ToolTurn
from parley.gateway.wire.api import ModelReply

__all__ = ["describe", "error_type", "fail", "messages_json"]


def describe(span: Span, reply: ModelReply) -> None:
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
    if isinstance(error, openai.APIStatusError):
        return str(error.status_code)
    return type(error).__name__


def fail(span: Span, error: BaseException) -> None:
    """Say what the request failed with, without a word that may repeat what was sent."""
    kind = error_type(error)
    span.set_attribute("error.type", kind)
    span.set_status(Status(StatusCode.ERROR, kind))


def messages_json(messages: Iterable[Message | ToolTurn]) -> str:
    """Return messages as the semantic conventions have them."""
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
