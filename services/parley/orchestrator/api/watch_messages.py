"""Messages of a watch as bytes: each event and each piece of text is written once, however many watch the debate."""

from collections import OrderedDict
from typing import Final

from parley.orchestrator.api.conversion import watch_response
from parley.orchestrator.log.envelope import Envelope
from parley.orchestrator.watch.watcher import Heartbeat, WatchItem
from parley.v1.orchestrator_pb2 import EventBatch, WatchDebateResponse

_EVENT_TAG: Final = bytes([WatchDebateResponse.DESCRIPTOR.fields_by_name["event"].number << 3 | 2])
_BATCH_TAG: Final = bytes([WatchDebateResponse.DESCRIPTOR.fields_by_name["events"].number << 3 | 2])
_BATCHED_TAG: Final = bytes([EventBatch.DESCRIPTOR.fields_by_name["events"].number << 3 | 2])
_KEPT: Final = 64
_KEPT_BYTES: Final = 16 * 1024


class WatchMessages:
    """Writes messages of watches, and keeps the last small ones: watchers are sent the same objects."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, tuple[WatchItem, bytes]] = OrderedDict()

    def write(self, each: WatchItem, last: int) -> bytes:
        """Return a serialized `WatchDebateResponse`. `last` is the sequence of the last event that the watcher was sent."""
        if isinstance(each, Heartbeat):
            return watch_response(each, last).SerializeToString()
        if isinstance(each, tuple):
            return _join(_BATCH_TAG, b"".join(_join(_BATCHED_TAG, _stored(event)) for event in each))
        if isinstance(each, Envelope) and each.entry:
            return _join(_EVENT_TAG, each.entry)
        kept = self._kept.get(id(each))
        if kept is not None:  # `each` is kept, so that no other object has its id
            return kept[1]
        message = (
            WatchDebateResponse(event=each.message)
            if isinstance(each, Envelope)
            else watch_response(each, last)
        ).SerializeToString()
        if len(message) <= _KEPT_BYTES:
            self._kept[id(each)] = each, message
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return message


def _stored(event: Envelope) -> bytes:
    return event.entry or event.message.SerializeToString()


def _join(tag: bytes, content: bytes) -> bytes:
    """Return a field as Protocol Buffers write it."""
    return b"".join((tag, _to_varint(len(content)), content))


def _to_varint(number: int) -> bytes:
    """Return a number as Protocol Buffers write it."""
    parts = bytearray()
    while number > 127:
        parts.append(number & 127 | 128)
        number >>= 7
    parts.append(number)
    return bytes(parts)
