"""Which one-time links were used: the hashes of their tokens, kept until the links have expired."""

from datetime import datetime, timedelta
from typing import Final

from parley.orchestrator.links.tokens import hash_token
from parley.orchestrator.model.times import time_text
from parley.storage.ports import Below, Collection, Documents, DuplicateError, Index, Order

LINK_USES: Final = Collection("link_uses", (Index(("until",)),))
_KEPT_LONGER: Final = timedelta(days=1)
"""Clocks differ."""
_REMOVED_AT_ONCE: Final = 20


class LinkUses:
    """The uses of all links."""

    def __init__(self, documents: Documents) -> None:
        """Use a store whose collection LINK_USES is prepared."""
        self._documents = documents

    async def has(self, token: str) -> bool:
        """Return whether a link was used."""
        return await self._documents.get(LINK_USES, hash_token(token)) is not None

    async def add(self, token: str, expires: datetime, now: datetime) -> bool:
        """Note that a link is used. Return False if it was used before. Uses of links that have expired are removed."""
        try:
            until = time_text(expires + _KEPT_LONGER)
            await self._documents.insert(LINK_USES, hash_token(token), {"until": until})
        except DuplicateError:
            return False
        old = await self._documents.find(
            LINK_USES, {"until": Below(time_text(now))}, order=(Order("until"),), limit=_REMOVED_AT_ONCE
        )
        for each in old:
            await self._documents.delete(LINK_USES, each.key)
        return True
