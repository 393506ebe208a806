"""Messages of a watch as bytes: each event and each piece of text is written once, however many watch the debate."""

from collections import OrderedDict
from typing import Final

from parley.orchestrator.log.envelope import Envelope
from parley.orchestrator.watch.batches import Batch
from parley.orchestrator.watch.watcher import Heartbeat, WatchItem
from parley.v1.orchestrator_pb2 import Heartbeat as HeartbeatMessage
from parley.v1.orchestrator_pb2 import StepDelta, WatchDebateResponse

# In a batch an event and a piece of text have the same numbers as alone, so that their bytes serve for both.
_EVENT_TAG: Final = bytes([WatchDebateResponse.DESCRIPTOR.fields_by_name["event"].number << 3 | 2])
_DELTA_TAG: Final = bytes([WatchDebateResponse.DESCRIPTOR.fields_by_name["delta"].number << 3 | 2])
_BATCH_TAG: Final = bytes([WatchDebateResponse.DESCRIPTOR.fields_by_name["events"].number << 3 | 2])
_KEPT: Final = 64
_KEPT_BYTES: Final = 16 * 1024


class WatchMessages:
    """Writes messages of watches, and keeps the last small parts: watchers are sent the same objects."""

    def __init__(self) -> None:
        self._kept: OrderedDict[int, tuple[Batch | Envelope | StepDelta, bytes]] = OrderedDict()

    def write(self, each: WatchItem, last: int) -> bytes:
        """Return a serialized `WatchDebateResponse`. `last` is the sequence of the last event that the watcher was sent."""
        if isinstance(each, Heartbeat):
            heartbeat = HeartbeatMessage(last_sequence=last)
            return WatchDebateResponse(heartbeat=heartbeat).SerializeToString()
        return self._write_once(each)

    def _write_once(self, each: Batch | Envelope | StepDelta) -> bytes:
        kept = self._kept.get(id(each))
        if kept is not None:  # `each` is kept, so that no other object has its id
            return kept[1]
        written = self._serialize(each)
        if len(written) <= _KEPT_BYTES:
            self._kept[id(each)] = each, written
            if len(self._kept) > _KEPT:
                self._kept.popitem(last=False)
        return written

    def _serialize(self, each: Batch | Envelope | StepDelta) -> bytes:
        if isinstance(each, Envelope):
            return _join(_EVENT_TAG, each.entry or each.message.SerializeToString())
        if isinstance(each, StepDelta):
            return _join(_DELTA_TAG, each.SerializeToString())
        parts = [self._write_once(part) for part in each]
        return parts[0] if len(parts) == 1 else _join(_BATCH_TAG, b"".join(parts))


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
