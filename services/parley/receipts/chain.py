"""The chain of a log: the hash of each stored event follows from the one before."""

import hashlib
from collections.abc import Sequence
from typing import Final

from google.protobuf.message import DecodeError

from parley.receipts.errors import VerificationError
from parley.runtime.message_limits import has_more_fields
from parley.v1.event_pb2 import Event

GENESIS: Final = bytes(32)
"""The hash before the first event."""
HASH_FIELD: Final = b"\x7a\x20"
"""Field 15, 32 bytes long: the tag of the hash, which is the last field of the stored bytes."""
_FIELD_BYTES: Final = 8
"""The least that a debate stores a field, on average: short answers of an arena come to 12. Decoded, a field takes up to 180 bytes, and can be stored in two."""
_SMALL_BYTES: Final = 1024 * 1024
"""A log up to this size decodes to some tens of megabytes, whatever it holds."""
HASH_BYTES: Final = len(HASH_FIELD) + 32


def chain_hash(before: bytes, body: bytes) -> bytes:
    """Return the hash of an event: SHA-256 over the hash of the event before and the stored bytes without its own."""
    return hashlib.sha256(before + body).digest()


def follows(entry: bytes, before: bytes) -> bool:
    """Return whether the stored bytes of an event follow the event with the hash `before`."""
    return entry[-HASH_BYTES:] == HASH_FIELD + chain_hash(before, entry[:-HASH_BYTES])


def open_chain(entries: Sequence[bytes]) -> list[Event]:
    """Return the events of a log from its first on, given their stored bytes.

    Raises:
        VerificationError: an event is damaged, missing, or not at its place, or they have too many fields.
    """
    _check_fields(entries)
    events: list[Event] = []
    before = GENESIS
    for place, entry in enumerate(entries, start=1):
        event = _open(entry, place)
        if event.sequence != place:
            raise VerificationError(f"event {event.sequence} stands where event {place} should be")
        if not follows(entry, before):
            where = f"it does not follow from event {place - 1}" if place > 1 else "it is the first one"
            raise VerificationError(f"event {place} is not as it was recorded: {where}")
        if events and event.debate_id != events[0].debate_id:
            raise VerificationError(f"event {place} is of another debate than the events before it")
        events.append(event)
        before = entry[-32:]
    return events


def _check_fields(entries: Sequence[bytes]) -> None:
    """Raise VerificationError if events have so many fields that they would take far more memory than their size."""
    size = sum(map(len, entries))
    most = size // _FIELD_BYTES
    if size > _SMALL_BYTES and has_more_fields(entries, Event.DESCRIPTOR, most):
        raise VerificationError(
            f"its events have more than {most:,} fields, and no debate has so many in {size:,} bytes"
        )


def _open(entry: bytes, place: int) -> Event:
    try:
        return Event.FromString(entry)
    except DecodeError:
        raise VerificationError(f"event {place} is not as it was recorded: it cannot be read") from None
