"""Tombstones: notes that a debate is forgotten, so that it stays forgotten if its record comes later."""

from collections.abc import Sequence
from typing import Any, Final

from parley.memory.writing import put_document
from parley.runtime.clock import Clock
from parley.storage.ports import Below, Collection, Document, Documents, Index, Order, Where

TOMBSTONES: Final = Collection("tombstones", (Index(("put_at",)), Index(("is_cleared", "put_at"))))
KEPT_SECONDS: Final = 30 * 86400.0
"""How long a debate that is forgotten is not recorded again."""
_LATE_SECONDS: Final = 600.0
"""Longer than whoever was at work on a debate when it was forgotten still works on it."""
_PAGE: Final = 100


class Tombstones:
    """The tombstones of all tenants, by the keys of their debates. Every method may raise StorageError."""

    def __init__(self, documents: Documents, clock: Clock) -> None:
        self._documents = documents
        self._clock = clock

    async def put(self, key: str) -> None:
        """Note that a debate is forgotten, from now on for 30 days."""
        put_at = self._clock.now().timestamp()
        await put_document(self._documents, TOMBSTONES, key, {"put_at": put_at, "is_cleared": None})

    async def has(self, key: str) -> bool:
        """Return whether a debate is noted as forgotten."""
        return await self._documents.get(TOMBSTONES, key) is not None

    async def list_uncleared(self) -> Sequence[Document]:
        """Return those of ten minutes ago and older after which nobody has looked yet for what came too late, 100 at most."""
        late = Below(self._clock.now().timestamp() - _LATE_SECONDS)
        where: Where = {"is_cleared": None, "put_at": late}
        return await self._documents.find(TOMBSTONES, where, order=(Order("put_at"),), limit=_PAGE)

    async def mark_cleared(self, found: Document) -> None:
        """Note that nothing of a debate is left, unless it was forgotten again since it was found."""
        fields: Any = found.fields
        where: Where = {"put_at": fields["put_at"]}
        await self._documents.update(TOMBSTONES, found.key, {"is_cleared": True}, where)

    async def delete_old(self) -> None:
        """Delete those whose time is over."""
        over = Below(self._clock.now().timestamp() - KEPT_SECONDS)
        while page := await self._documents.find(
            TOMBSTONES, {"put_at": over}, order=(Order("put_at"),), limit=_PAGE
        ):
            for each in page:
                await self._documents.delete(TOMBSTONES, each.key, {"put_at": over})
