"""Tombstones: notes that a debate is forgotten, so that it stays forgotten if its record comes later."""

from typing import Final

from parley.memory.writing import put_document
from parley.runtime.clock import Clock
from parley.storage.ports import Below, Collection, Documents, Index, Order

TOMBSTONES: Final = Collection("tombstones", (Index(("put_at",)),))
KEPT_SECONDS: Final = 30 * 86400.0
"""How long a debate that is forgotten is not recorded again."""
_PAGE: Final = 100


class Tombstones:
    """The tombstones of all tenants, by the keys of their debates. Every method may raise StorageError."""

    def __init__(self, documents: Documents, clock: Clock) -> None:
        self._documents = documents
        self._clock = clock

    async def put(self, key: str) -> None:
        """Note that a debate is forgotten, from now on for 30 days."""
        await put_document(self._documents, TOMBSTONES, key, {"put_at": self._clock.now().timestamp()})

    async def has(self, key: str) -> bool:
        """Return whether a debate is noted as forgotten."""
        return await self._documents.get(TOMBSTONES, key) is not None

    async def delete_old(self) -> None:
        """Delete those whose time is over."""
        over = Below(self._clock.now().timestamp() - KEPT_SECONDS)
        while page := await self._documents.find(
            TOMBSTONES, {"put_at": over}, order=(Order("put_at"),), limit=_PAGE
        ):
            for each in page:
                await self._documents.delete(TOMBSTONES, each.key, {"put_at": over})
