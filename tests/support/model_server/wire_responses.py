"""Replies in the shapes of the Responses API."""

from collections.abc import Mapping
from itertools import count
from typing import Any

from tests.support.model_server.wire import Reply, Stream, encode, event
from tests.support.model_server.words import split_words


def body(reply: Reply, request: Mapping[str, Any]) -> bytes:
    """Return the whole reply as one JSON object."""
    return encode(_finish(reply, request))


def stream(reply: Reply, request: Mapping[str, Any]) -> Stream:
    """Return the reply as the API's own events, numbered in order."""
    numbers = count()

    def number_event(kind: str, /, **fields: Any) -> bytes:
        return event({"type": kind, "sequence_number": next(numbers), **fields}, kind)

    begun = _response(reply, request, status="in_progress")
    head = number_event("response.created", response=begun) + number_event(
        "response.in_progress", response=begun
    )
    pieces: list[bytes] = []
    # Events that frame an item travel with the word beside them, so that one entry stays one word.
    held = b""
    for index, item in enumerate(_items(reply, request)):
        place = {"output_index": index, "item_id": item["id"]}
        if item["type"] == "message":
            empty = {**item, "status": "in_progress", "content": []}
            held += number_event("response.output_item.added", output_index=index, item=empty)
            part = {**place, "content_index": 0}
            held += number_event("response.content_part.added", **part, part=_text_part(""))
            for piece in split_words(reply.text):
                delta = number_event("response.output_text.delta", **part, delta=piece, logprobs=[])
                pieces.append(held + delta)
                held = b""
            held += number_event("response.output_text.done", **part, text=reply.text, logprobs=[])
            held += number_event("response.content_part.done", **part, part=_text_part(reply.text))
        elif item["type"] == "reasoning":
            empty = {**item, "content": [], "encrypted_content": None}
            held += number_event("response.output_item.added", output_index=index, item=empty)
            thoughts = [] if reply.reasoning_hidden else split_words(reply.reasoning)
            for piece in thoughts:
                delta = number_event("response.reasoning_text.delta", **place, content_index=0, delta=piece)
                pieces.append(held + delta)
                held = b""
            if not thoughts:  # only the item says that it thinks, for as long as that takes
                pieces += [held, *(b"" for _ in split_words(reply.reasoning)[1:])]
                held = b""
        else:
            empty = {**item, "status": "in_progress", "arguments": ""}
            held += number_event("response.output_item.added", output_index=index, item=empty)
            arguments = item["arguments"]
            pieces.append(
                held + number_event("response.function_call_arguments.delta", **place, delta=arguments)
            )
            held = number_event(
                "response.function_call_arguments.done", **place, name=item["name"], arguments=arguments
            )
        held += number_event("response.output_item.done", output_index=index, item=item)
    failed = _response(reply, request, status="failed")
    failed["error"] = {"code": "server_error", "message": "The model failed to generate a response."}
    ending = "response.incomplete" if reply.cut_short else "response.completed"
    return Stream(
        head=head,
        pieces=pieces,
        tail=held + number_event(ending, response=_finish(reply, request)),
        error=number_event("response.failed", response=failed),
    )


def _finish(reply: Reply, request: Mapping[str, Any]) -> dict[str, Any]:
    response = _response(reply, request, status="incomplete" if reply.cut_short else "completed")
    response["output"] = _items(reply, request)
    response["usage"] = {
        "input_tokens": reply.tokens_in,
        "input_tokens_details": {"cached_tokens": 0, "cache_write_tokens": 0},
        "output_tokens": reply.tokens_out,
        "output_tokens_details": {"reasoning_tokens": reply.reasoning_tokens},
        "total_tokens": reply.tokens_in + reply.tokens_out,
    }
    if reply.cut_short:
        response["incomplete_details"] = {"reason": "max_output_tokens"}
    return response


def _response(reply: Reply, request: Mapping[str, Any], status: str) -> dict[str, Any]:
    return {
        "id": f"resp_{reply.number}",
        "object": "response",
        "created_at": reply.created,
        "status": status,
        "error": None,
        "incomplete_details": None,
        "instructions": request.get("instructions"),
        "max_output_tokens": request.get("max_output_tokens"),
        "metadata": request.get("metadata") or {},
        "model": reply.model,
        "output": [],
        "parallel_tool_calls": True,
        "temperature": request.get("temperature"),
        "text": {"format": {"type": "text"}},
        "tool_choice": request.get("tool_choice", "auto"),
        "tools": request.get("tools") or [],
        "top_p": request.get("top_p"),
        "usage": None,
    }


def _items(reply: Reply, request: Mapping[str, Any]) -> list[dict[str, Any]]:
    items: list[dict[str, Any]] = []
    status = "incomplete" if reply.cut_short else "completed"
    if reply.reasoning:
        item: dict[str, Any] = {"id": f"rs_{reply.number}", "type": "reasoning", "summary": []}
        if not reply.reasoning_hidden:
            item["content"] = [{"type": "reasoning_text", "text": reply.reasoning}]
        if "reasoning.encrypted_content" in (request.get("include") or ()):
            item["encrypted_content"] = f"sealed {reply.number}"
        items.append(item)
    if reply.text or not (reply.tool_calls or reply.reasoning):
        items.append(
            {
                "id": f"msg_{reply.number}",
                "type": "message",
                "role": "assistant",
                "status": status,
                "content": [_text_part(reply.text)],
            }
        )
    for index, call in enumerate(reply.tool_calls):
        items.append(
            {
                "id": f"fc_{reply.number}_{index}",
                "type": "function_call",
                "call_id": f"call_{reply.number}_{index}",
                "name": call.name,
                "arguments": encode(call.arguments).decode(),
                "status": status,
            }
        )
    return items


def _text_part(text: str) -> dict[str, Any]:
    return {"type": "output_text", "text": text, "annotations": [], "logprobs": []}
