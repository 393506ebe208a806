"""Replies in the shapes of the Chat Completions API."""

from collections.abc import Mapping
from typing import Any

from tests.support.model_server.wire import Reply, Stream, encode, event
from tests.support.model_server.words import split_words


def body(reply: Reply, request: Mapping[str, Any]) -> bytes:
    """Return the whole reply as one JSON object."""
    message: dict[str, Any] = {"role": "assistant", "content": reply.text, "refusal": None, "annotations": []}
    if reply.tool_calls:
        message["content"] = reply.text or None
        message["tool_calls"] = _tool_calls(reply)
    if reply.reasoning and not reply.reasoning_hidden:
        message["reasoning_content"] = reply.reasoning
    choice = {"index": 0, "message": message, "logprobs": None, "finish_reason": _finish(reply)}
    return encode({**_frame(reply, "chat.completion"), "choices": [choice], "usage": _usage(reply)})


def stream(reply: Reply, request: Mapping[str, Any]) -> Stream:
    """Return the reply as chunks; usage comes last if `stream_options.include_usage` asks for it."""
    options = request.get("stream_options")
    with_usage = isinstance(options, Mapping) and options.get("include_usage") is True
    frame = _frame(reply, "chat.completion.chunk")
    no_usage: dict[str, Any] = {"usage": None} if with_usage else {}

    def chunk(delta: Mapping[str, Any], finish: str | None = None) -> bytes:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
        return event({**frame, "choices": [choice], **no_usage})

    thoughts = [] if reply.reasoning_hidden else split_words(reply.reasoning)
    pieces = [chunk({"content": None, "reasoning_content": piece}) for piece in thoughts]
    pieces += [chunk({"content": piece}) for piece in split_words(reply.text)]
    for index, call in enumerate(_tool_calls(reply)):
        begun = {**call, "function": {"name": call["function"]["name"], "arguments": ""}}
        pieces.append(chunk({"tool_calls": [{"index": index, **begun}]}))
        pieces.append(
            chunk(
                {"tool_calls": [{"index": index, "function": {"arguments": call["function"]["arguments"]}}]}
            )
        )
    tail = chunk({}, _finish(reply))
    if with_usage:
        tail += event({**frame, "choices": [], "usage": _usage(reply)})
    return Stream(
        head=chunk({"role": "assistant", "content": "", "refusal": None}),
        pieces=pieces,
        tail=tail + b"data: [DONE]\n\n",
        error=event(
            {
                "error": {
                    "message": "The server had an error while processing your request.",
                    "type": "server_error",
                    "param": None,
                    "code": "server_error",
                }
            }
        ),
    )


def _frame(reply: Reply, kind: str) -> dict[str, Any]:
    return {"id": f"chatcmpl-{reply.number}", "object": kind, "created": reply.created, "model": reply.model}


def _finish(reply: Reply) -> str:
    if reply.cut_short:
        return "length"
    return "tool_calls" if reply.tool_calls else "stop"


def _tool_calls(reply: Reply) -> list[dict[str, Any]]:
    return [
        {
            "id": f"call_{reply.number}_{index}",
            "type": "function",
            "function": {"name": call.name, "arguments": encode(call.arguments).decode()},
        }
        for index, call in enumerate(reply.tool_calls)
    ]


def _usage(reply: Reply) -> dict[str, Any]:
    return {
        "prompt_tokens": reply.tokens_in,
        "completion_tokens": reply.tokens_out,
        "total_tokens": reply.tokens_in + reply.tokens_out,
        "prompt_tokens_details": {"cached_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": reply.reasoning_tokens},
    }
