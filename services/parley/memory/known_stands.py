"""Stands that others are compared with: one that was read or written here a while ago is not read again."""

from collections.abc import Mapping
from functools import partial
from typing import Final

from parley.memory.known_debates import KEPT_SECONDS
from parley.memory.stands import POSITIONS, STAND_CHARACTERS, STAND_FIELDS, Stand, read_stands
from parley.runtime.clock import Clock
from parley.runtime.expiring_cache import ExpiringCache
from parley.runtime.large_texts import in_thread_if_large
from parley.storage.ports import Documents
from parley.storage.scan import find_by_keys

_MAX_KEPT: Final = 512
"""Stands that a process keeps, up to 12 kilobytes each."""


async def load_stands(documents: Documents, keys: set[str]) -> dict[str, Stand]:
    """Return stands by their keys, without those that are not there or cannot be read."""
    found = await find_by_keys(documents, POSITIONS, keys, fields=STAND_FIELDS)
    stands = await in_thread_if_large(len(found) * STAND_CHARACTERS, partial(read_stands, found))
    return {each.key: each for each in stands}


class KnownStands:
    """The stands of all tenants that were last asked for."""

    def __init__(self, documents: Documents, clock: Clock) -> None:
        self._documents = documents
        self._clock = clock
        self._kept = ExpiringCache[str, tuple[str, Stand]](_MAX_KEPT)
        """Each with the field `about` of its document: if the document has another one, it was written anew."""

    async def load(self, abouts: Mapping[str, str]) -> dict[str, Stand]:
        """Return stands that were just found, by their keys, without those that cannot be read. `abouts` has the field `about` of each key."""
        now = self._clock.monotonic()
        found = self._kept.get_many(abouts, now)
        kept = {key: stand for key, (about, stand) in found.items() if about == abouts[key]}
        read = await load_stands(self._documents, abouts.keys() - kept.keys())
        for key, stand in read.items():
            self._kept.put(key, (abouts[key], stand), now + KEPT_SECONDS)
        return kept | read

    def put(self, stand: Stand) -> None:
        """Keep a stand as it was just stored."""
        self._kept.put(stand.key, (stand.about, stand), self._clock.monotonic() + KEPT_SECONDS)

    def remove(self, key: str) -> None:
        """Drop what is kept of a stand that is deleted."""
        self._kept.remove(key)
