"""Which body asks for an answer in which API, and what reads it."""

from typing import Any

from parley.gateway.wire import chat, responses
from parley.gateway.wire.api import Api, ModelRequest, Reader

__all__ = ["body", "reader"]


def body(api: Api, request: ModelRequest, omitted: frozenset[str]) -> dict[str, Any]:
    """Return the request's JSON; `omitted` names the parameters that this endpoint is known to refuse."""
    given = responses.body(request) if api is Api.RESPONSES else chat.body(request, omitted)
    for name in omitted:
        given.pop(name, None)
    return given


def reader(api: Api) -> Reader:
    """Return a fresh reader for one answer."""
    return responses.ResponsesReader() if api is Api.RESPONSES else chat.ChatReader()
