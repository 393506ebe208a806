"""The documents that callers name by their digests: kept for later calls, as long as there is room."""

from collections import OrderedDict
from typing import Final
from weakref import WeakValueDictionary

from parley.runtime.held_texts import HeldText, hold_text

_OVERHEAD: Final = 200
"""What a kept document takes besides its text, in bytes: there may be thousands of small ones."""


class DocumentCache:
    """Documents by digest. If there are too many bytes, those that were used the longest ago are dropped.

    A document that a call uses is found for as long as the call runs, even if it was dropped.
    """

    def __init__(self, max_bytes: int) -> None:
        """Keep documents of so many bytes together."""
        self._max_bytes = max_bytes
        self._bytes = 0
        self._kept: OrderedDict[str, HeldText] = OrderedDict()
        self._known: WeakValueDictionary[str, HeldText] = WeakValueDictionary()
        self._empty = hold_text("")

    @property
    def kept_bytes(self) -> int:
        """The bytes of the documents that are kept now."""
        return self._bytes

    def keep(self, held: HeldText) -> None:
        """Keep a document, and drop others if there is no room."""
        self._known[held.digest] = held
        if held.digest not in self._kept:
            self._kept[held.digest] = held
            self._bytes += len(held.utf8) + _OVERHEAD
        self._kept.move_to_end(held.digest)
        while self._bytes > self._max_bytes and self._kept:
            _, dropped = self._kept.popitem(last=False)
            self._bytes -= len(dropped.utf8) + _OVERHEAD

    def find(self, digest: str) -> HeldText | None:
        """Return a document that is kept or in use, None if there is no such one."""
        if digest == self._empty.digest:
            return self._empty
        held = self._known.get(digest)
        if held is not None:
            self.keep(held)
        return held
