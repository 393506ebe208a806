"""A debate's events as Server-Sent Events (WHATWG HTML, 9.2): any language follows a debate with ten lines."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from functools import lru_cache, partial
from typing import Any, Final

from google.protobuf.descriptor import MethodDescriptor
from google.protobuf.json_format import MessageToDict
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from parley.edge.calls import OrchestratorCalls, find_address
from parley.edge.statuses import to_error_object, to_response
from parley.runtime.errors import FieldViolation, ParleyError, invalid_argument
from parley.runtime.large_texts import in_thread_if_large
from parley.v1.orchestrator_pb2 import WatchDebateRequest, WatchDebateResponse

_FIRST_SECONDS: Final = 1.0
"""How long the answer waits for the first message, so that an error gets a status of its own."""
_HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_END: Final = b"event: end\ndata: {}\n\n"
_SHARED: Final = 256
_SHARED_BYTES: Final = 16 * 1024
"""Of a message that is kept for others who watch, so that all of these take 10 MiB at most."""


class EventStreams:
    """Streams of debates' events, over the orchestrator's `WatchDebate`."""

    def __init__(self, method: MethodDescriptor, calls: OrchestratorCalls) -> None:
        self._method = method
        self._calls = calls

    async def answer(self, request: Request) -> Response:
        """Return the events after `Last-Event-ID`, as they come. 204: the debate has ended, and there are no more."""
        try:
            wanted = _read_request(request)
        except ParleyError as error:
            return to_response(error)
        messages = self._calls.stream(self._method, wanted, dict(request.headers), find_address(request))
        first = asyncio.ensure_future(anext(messages))
        try:
            await asyncio.wait({first}, timeout=_FIRST_SECONDS)
            if first.done():
                first.result()
        except StopAsyncIteration:
            return Response(status_code=204)
        except ParleyError as error:
            return to_response(error)
        except asyncio.CancelledError:
            first.cancel()
            await asyncio.wait({first})
            await messages.aclose()
            raise
        return StreamingResponse(
            _write(first, messages), headers=_HEADERS, media_type="text/event-stream; charset=utf-8"
        )


def _read_request(request: Request) -> WatchDebateRequest:
    """Return what is watched. Raise ParleyError for a number that is none."""
    name, given = "Last-Event-ID", request.headers.get("last-event-id", "")
    if not given:
        name, given = "after", request.query_params.get("after", "")
    if given and not (given.isdecimal() and len(given) < 19):
        raise invalid_argument([FieldViolation(name, "must be the sequence of an event, such as 12")])
    return WatchDebateRequest(
        debate_id=request.path_params["debate_id"],
        after_sequence=int(given or 0),
        text_deltas=request.query_params.get("deltas", "") in ("1", "true"),
    )


async def _write(first: "asyncio.Future[Any]", messages: AsyncGenerator[Any, None]) -> AsyncIterator[bytes]:
    try:
        yield await _write_message(await first)
        async for each in messages:
            yield await _write_message(each)
        yield _END
    except StopAsyncIteration:
        yield _END
    except ParleyError as error:
        yield f"event: error\ndata: {json.dumps(to_error_object(error))}\n\n".encode()
    finally:
        first.cancel()
        await asyncio.wait({first})
        await messages.aclose()


async def _write_message(message: WatchDebateResponse) -> bytes:
    size = message.ByteSize()
    if size <= _SHARED_BYTES:
        return _write_shared(message.SerializeToString())
    return await in_thread_if_large(size, partial(_write_text, message))


@lru_cache(_SHARED)
def _write_shared(message: bytes) -> bytes:
    """Return the message in the stream's form. It is made once for all who watch the debate at this moment."""
    return _write_text(WatchDebateResponse.FromString(message))


def _write_text(message: WatchDebateResponse) -> bytes:
    """Return the message in the stream's form: `event` with its sequence as the id, `delta`, or a comment for a heartbeat."""
    match message.WhichOneof("message"):
        case "event":
            data = json.dumps(MessageToDict(message.event), ensure_ascii=False)
            return f"id: {message.event.sequence}\nevent: event\ndata: {data}\n\n".encode()
        case "delta":
            data = json.dumps(MessageToDict(message.delta), ensure_ascii=False)
            return f"event: delta\ndata: {data}\n\n".encode()
        case _:
            return b": alive\n\n"
