"""What people said of debates: that they were good, or not. The latest word on a debate counts."""

from collections.abc import Collection as Keys
from typing import Any, Final

from parley.runtime.unreadable import skip_unreadable
from parley.storage.ports import Collection, Document, Documents, DuplicateError, Fields, Index
from parley.storage.scan import find_by_keys

APPROVALS: Final = Collection("approvals", superseded=(Index(("key",)),))
"""The latest word on each debate, under its key."""
_KIND: Final = "feedback on a debate"


class Approvals:
    """The feedback on the debates of all tenants. Every method may raise StorageError."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    async def put(self, key: str, number: int, value: int) -> bool:
        """Write the word of this number on a debate; return whether that or a later one was there.

        Args:
            number: Which word on this debate it is, from 1.
            value: 1 or -1.
        """
        fields: Fields = {"key": key, "number": number, "value": value}
        while True:
            known = await self._documents.get(APPROVALS, key)
            if known is not None:
                last: Any = known.fields["number"]
                if last >= number:
                    return True
                if await self._documents.update(APPROVALS, key, fields, {"number": last}):
                    return False
                continue
            try:
                await self._documents.insert(APPROVALS, key, fields)
            except DuplicateError:  # another replica was faster
                continue
            return False

    async def delete(self, key: str) -> None:
        """Delete what was said of a debate."""
        await self._documents.delete(APPROVALS, key)

    async def load(self, keys: Keys[str]) -> dict[str, int]:
        """Return 1 or -1 for those of the debates that something was said of."""
        found = await find_by_keys(self._documents, APPROVALS, keys)
        return dict(skip_unreadable(found, _from_document, _KIND))


def weigh_importance(importance: float, value: int) -> float:
    """Return how important a decision is that a person found good (1) or not (-1), 0 to 1: half as far from 1, or from 0; 0: as it was."""
    if not value:
        return importance
    return (importance + 1) / 2 if value > 0 else importance / 2


def _from_document(document: Document) -> tuple[str, int]:
    value: Any = document.fields["value"]
    return document.key, int(value)
