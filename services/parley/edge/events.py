"""A debate's events as Server-Sent Events (WHATWG HTML, 9.2): any language follows a debate with ten lines."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from typing import Final

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from parley.edge.calls import find_address
from parley.edge.shared_watches import SharedWatches
from parley.edge.statuses import to_error_object, to_response
from parley.runtime.errors import FieldViolation, ParleyError, invalid_argument
from parley.v1.orchestrator_pb2 import WatchDebateRequest

_FIRST_SECONDS: Final = 1.0
"""How long the answer waits for the first message, so that an error gets a status of its own."""
_HEADERS: Final = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_END: Final = b"event: end\ndata: {}\n\n"


class EventStreams:
    """Streams of debates' events, over the orchestrator's `WatchDebate`."""

    def __init__(self, watches: SharedWatches) -> None:
        self._watches = watches

    async def answer(self, request: Request) -> Response:
        """Return the events after `Last-Event-ID`, as they come. 204: the debate has ended, and there are no more."""
        try:
            wanted = _read_request(request)
        except ParleyError as error:
            return to_response(error)
        texts = self._watches.follow(wanted, dict(request.headers), find_address(request))
        first = asyncio.ensure_future(anext(texts))
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
            await texts.aclose()
            raise
        return StreamingResponse(
            _write(first, texts), headers=_HEADERS, media_type="text/event-stream; charset=utf-8"
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


async def _write(first: "asyncio.Future[bytes]", texts: AsyncGenerator[bytes, None]) -> AsyncIterator[bytes]:
    try:
        yield await first
        async for each in texts:
            yield each
        yield _END
    except StopAsyncIteration:
        yield _END
    except ParleyError as error:
        yield f"event: error\ndata: {json.dumps(to_error_object(error))}\n\n".encode()
    finally:
        first.cancel()
        await asyncio.wait({first})
        await texts.aclose()
