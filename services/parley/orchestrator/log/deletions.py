"""What is being deleted: a note for each debate, from the moment nobody can read it until nothing of it is left.

A debate whose log is written before its record has one too, until its record is there.
"""

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Final

from parley.orchestrator.log.index import record_key
from parley.storage.ports import (
    Above,
    Below,
    Collection,
    Document,
    Documents,
    DuplicateError,
    Index,
    Order,
    Where,
)

__all__ = ["DELETIONS", "Deletion", "DeletionStore"]

DELETIONS: Final = Collection("deletions", (Index(("place",)), Index(("begun",))))
_PAGE_SIZE: Final = 1000


@dataclass(frozen=True, slots=True)
class Deletion:
    """A debate that is being deleted. `ratings`: whether they forget its match too."""

    tenant: str
    debate: str
    ratings: bool

    @property
    def key(self) -> str:
        """Key of the debate's record."""
        return record_key(self.tenant, self.debate)


class DeletionStore:
    """All debates that are being deleted."""

    def __init__(self, documents: Documents) -> None:
        """Keep them in a store whose collection DELETIONS is prepared."""
        self._documents = documents

    async def put(self, deletion: Deletion) -> None:
        """Note a deletion. Of one that is noted already, only whether ratings forget it may be added."""
        place = {"place": deletion.key}
        try:
            await self._documents.insert(DELETIONS, deletion.key, {**asdict(deletion), **place})
        except DuplicateError:
            forgets = {"ratings": True} if deletion.ratings else {}
            await self._documents.update(DELETIONS, deletion.key, {**place, **forgets})

    async def record_log_start(self, tenant: str, debate: str, now: str) -> None:
        """Note that a debate's log is about to be written, and its record after it."""
        # Without a place, so that a version that does not know of this deletes nothing.
        deletion = Deletion(tenant, debate, ratings=False)
        await self._documents.insert(DELETIONS, deletion.key, {**asdict(deletion), "begun": now})

    async def list_started(self, before: str) -> Sequence[Deletion]:
        """Return debates whose log was about to be written before a time, which may have no record; not all if they are many."""
        found = await self._documents.find(DELETIONS, {"begun": Below(before)}, limit=_PAGE_SIZE)
        return [_deletion(each) for each in found]

    async def list_all(self) -> Sequence[Deletion]:
        """Return every deletion that is noted, by key."""
        found: list[Deletion] = []
        after = ""
        while True:
            where: Where = {"place": Above(after)}
            page = await self._documents.find(DELETIONS, where, order=(Order("place"),), limit=_PAGE_SIZE)
            found += map(_deletion, page)
            if len(page) < _PAGE_SIZE:
                return found
            after = page[-1].key

    async def remove(self, key: str) -> None:
        """Note that nothing is left to do about a debate, by the key of its record."""
        await self._documents.delete(DELETIONS, key)


def _deletion(document: Document) -> Deletion:
    fields = document.fields
    return Deletion(str(fields["tenant"]), str(fields["debate"]), ratings=bool(fields["ratings"]))
