"""Past debates as they were recorded: one that was read here a while ago is looked up, and not read again.

A process that is alone on its store does not look it up either: it would have forgotten it itself.
"""

from collections.abc import Callable, Collection, Iterable, Sequence
from typing import Final, TypeVar

from parley.memory.debate import DEBATES, KIND, RECORDING, is_forgetting, read_debate
from parley.runtime.clock import Clock
from parley.runtime.expiring_cache import ExpiringCache
from parley.runtime.unreadable import skip_unreadable
from parley.storage.ports import Document, Documents, OneOf, Where
from parley.storage.scan import find_by_keys
from parley.v1.memory_pb2 import PastDebate

KEPT_SECONDS: Final = 86400.0
"""How long a process keeps what it read of a debate: less than a tombstone stays, so that it is what is stored, as long as there is any."""
_MAX_KEPT: Final = 512
"""Debates that a process keeps."""
_MAX_BYTES: Final = 8 * 1024
"""Of a debate that is kept."""

T = TypeVar("T")


class KnownDebates:
    """The debates of all tenants by their keys."""

    def __init__(self, documents: Documents, clock: Clock, *, alone: bool) -> None:
        """`alone`: no other process writes to the store."""
        self._documents = documents
        self._alone = alone
        self._clock = clock
        self._kept = ExpiringCache[str, PastDebate](_MAX_KEPT)
        self._forgotten: ExpiringCache[str, None] = ExpiringCache()

    def remove(self, key: str) -> None:
        """Drop what is kept of a debate that is forgotten, and keep nothing of it again: it may be being read, or recorded late."""
        self._kept.remove(key)
        self._forgotten.put(key, None, self._clock.monotonic() + KEPT_SECONDS)

    async def load(self, keys: Sequence[str]) -> dict[str, PastDebate]:
        """Return those of the debates that are stored, can be read and are not being forgotten. They must not be changed."""
        now = self._clock.monotonic()
        kept = self._kept.get_many(keys, now)
        there = kept.keys() if self._alone else await self._find_there(kept.keys())
        read = await self._read([key for key in keys if key not in there])
        forgotten = self._forgotten.get_many(read, now)
        for key, debate in read.items():
            if debate.ByteSize() <= _MAX_BYTES and key not in forgotten:
                self._kept.put(key, debate, now + KEPT_SECONDS)
        for key in kept.keys() - there - read.keys():
            self._kept.remove(key)
        return {key: kept[key] for key in there} | read

    async def _find_there(self, keys: Collection[str]) -> set[str]:
        """Return those of the keys under which a debate is stored that is not being forgotten, without a look into the documents."""
        there = set[str]()
        for mark in (None, RECORDING):  # one after the other: nearly all have none, and an index has each
            if left := tuple(key for key in keys if key not in there):
                where: Where = {"key": OneOf(left), "unfinished": mark}
                found = await self._documents.find(DEBATES, where, limit=len(left), fields=("key",))
                there |= {each.key for each in found}
        return there

    async def _read(self, keys: Iterable[str]) -> dict[str, PastDebate]:
        return read_by_key(await find_by_keys(self._documents, DEBATES, keys), read_debate)


def read_by_key(found: Iterable[Document], read: Callable[[Document], T]) -> dict[str, T]:
    """Return what `read` returns of documents, by their keys; without those that cannot be read or are being forgotten."""
    kept = [each for each in found if not is_forgetting(each)]
    return dict(skip_unreadable(kept, lambda each: (each.key, read(each)), KIND))
