"""Messages of a watch in the form of Server-Sent Events (WHATWG HTML, 9.2)."""

import json
from functools import lru_cache, partial
from typing import Final

from google.protobuf.json_format import MessageToDict
from msgspec import Struct

from parley.runtime.large_texts import in_thread_if_large
from parley.v1.orchestrator_pb2 import WatchDebateResponse

_SHARED: Final = 256
_SHARED_BYTES: Final = 16 * 1024
"""Of a message that is kept for others who watch, so that all of these take 10 MiB at most."""


class EventText(Struct, frozen=True):
    """A message of a watch as text.

    Attributes:
        sequence: That of the event; 0 for a message that is none.
        is_delta: Whether it is text of a step in flight.
    """

    sequence: int
    is_delta: bool
    text: bytes


async def write_text(message: bytes) -> EventText:
    """Return a serialized `WatchDebateResponse` as text."""
    if len(message) <= _SHARED_BYTES:
        return _write_shared(message)
    return await in_thread_if_large(len(message), partial(_write, message))


@lru_cache(_SHARED)
def _write_shared(message: bytes) -> EventText:
    """Return the message as text. It is written once for all who watch the debate at this moment."""
    return _write(message)


def _write(message: bytes) -> EventText:
    """Return `event` with its sequence as the id, `delta`, or a comment for a heartbeat."""
    read = WatchDebateResponse.FromString(message)
    match read.WhichOneof("message"):
        case "event":
            data = json.dumps(MessageToDict(read.event), ensure_ascii=False)
            sequence = read.event.sequence
            return EventText(sequence, False, f"id: {sequence}\nevent: event\ndata: {data}\n\n".encode())
        case "delta":
            data = json.dumps(MessageToDict(read.delta), ensure_ascii=False)
            return EventText(0, True, f"event: delta\ndata: {data}\n\n".encode())
        case _:
            return EventText(0, False, b": alive\n\n")
