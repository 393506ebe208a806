"""A log as one file: its stored events one after the other, as field 1 of `ReadLogResponse`.

So the file is a serialized `ReadLogResponse`, and the file of a log's beginning is the beginning of the file.
"""

import hashlib
from collections.abc import Iterable
from typing import Final

from parley.receipts.errors import VerificationError

_TAG: Final = 0x0A
"""Field 1, with a length."""
_MAX_LENGTH_BYTES: Final = 5
_EVENT_BYTES: Final = 120
"""The least that a debate stores an event, on average: the shortest have 96 bytes. Decoded, one takes 1.5 KB, however short it is."""
_SMALL_BYTES: Final = 1024 * 1024


def frame(entry: bytes) -> bytes:
    """Return the stored bytes of an event as they stand in the file."""
    length, prefix = len(entry), bytearray([_TAG])
    while length > 0x7F:
        prefix.append(length & 0x7F | 0x80)
        length >>= 7
    prefix.append(length)
    return bytes(prefix) + entry


def digest_log(entries: Iterable[bytes]) -> str:
    """Return the SHA-256 of the file of these events, in hex."""
    digest = hashlib.sha256()
    for each in entries:
        digest.update(frame(each))
    return digest.hexdigest()


def read_log_file(content: bytes) -> list[bytes]:
    """Return the stored bytes of each event. Raise VerificationError if the file is no log, not whole, or has too many events."""
    entries: list[bytes] = []
    place, most = 0, max(len(content), _SMALL_BYTES) // _EVENT_BYTES
    while place < len(content):
        if len(entries) == most:
            raise VerificationError(
                f"it has more than {most:,} events, and no debate has so many in {len(content):,} bytes"
            )
        start, length = _read_length(content, place, len(entries) + 1)
        entries.append(content[start : start + length])
        place = start + length
    if place > len(content):
        raise VerificationError(f"the file ends within event {len(entries)}")
    if not entries:
        raise VerificationError("the file is empty")
    return entries


def _read_length(content: bytes, place: int, number: int) -> tuple[int, int]:
    """Return where an event begins and how many bytes it has. Raise VerificationError."""
    length = 0
    head = content[place : place + 1 + _MAX_LENGTH_BYTES]
    if head[0] == _TAG:
        for at, byte in enumerate(head[1:]):
            length |= (byte & 0x7F) << 7 * at
            if byte < 0x80 and (byte or not at):  # written with no more bytes than it needs
                return place + at + 2, length
            if byte < 0x80:
                break
    raise VerificationError(f"no event {number} begins at byte {place:,}")
