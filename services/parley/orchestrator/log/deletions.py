"""Deletions in progress: a note for each debate, from the moment it cannot be read any more until all its data is removed.

A debate whose log is written before its record has a note too, until its record exists.
"""

from collections.abc import Sequence
from typing import Final

from msgspec import Struct
from msgspec.structs import asdict

from parley.orchestrator.log.debate_record import record_key
from parley.storage.ports import Below, Collection, Document, Documents, DuplicateError, Index
from parley.storage.scan import scan

DELETIONS: Final = Collection("deletions", (Index(("place",)), Index(("begun",))))


class Deletion(Struct, frozen=True):
    """A debate that is being deleted. `ratings`: whether its match is removed from the ratings too."""

    tenant: str
    debate: str
    ratings: bool

    @property
    def key(self) -> str:
        """Key of the debate's record."""
        return record_key(self.tenant, self.debate)


class DeletionStore:
    """Stores the notes of all deletions in progress."""

    def __init__(self, documents: Documents) -> None:
        """Use a store whose collection DELETIONS is prepared."""
        self._documents = documents

    async def put(self, deletion: Deletion) -> None:
        """Add a note. If there is one already, only `ratings` may be set in it."""
        place = {"place": deletion.key}
        try:
            await self._documents.insert(DELETIONS, deletion.key, {**asdict(deletion), **place})
        except DuplicateError:
            ratings = {"ratings": True} if deletion.ratings else {}
            await self._documents.update(DELETIONS, deletion.key, {**place, **ratings})

    async def record_log_start(self, tenant: str, debate: str, now: str) -> None:
        """Note that the log of a debate is written next, and its record after it."""
        # Without a place, so that a version that does not know of this deletes nothing.
        deletion = Deletion(tenant, debate, ratings=False)
        await self._documents.insert(DELETIONS, deletion.key, {**asdict(deletion), "begun": now})

    async def renew_log_start(self, tenant: str, debate: str, now: str) -> bool:
        """Note that the log of a debate is written again, after it was broken off. Return False if no such note is there."""
        return await self._documents.update(
            DELETIONS, record_key(tenant, debate), {"begun": now}, {"place": None}
        )

    async def start_deletion(self, deletion: Deletion, before: str) -> bool:
        """Make the note that a log was started before a time one of a deletion. Return False if it is gone or was renewed."""
        return await self._documents.update(
            DELETIONS, deletion.key, {"place": deletion.key}, {"begun": Below(before)}
        )

    async def is_deleting(self, tenant: str, debate: str) -> bool:
        """Return whether a debate's data is being removed."""
        found = await self._documents.get(DELETIONS, record_key(tenant, debate))
        return found is not None and found.fields.get("place") is not None

    async def list_started(self, before: str) -> Sequence[Deletion]:
        """Return up to 1,000 debates whose log was started before a time and which may have no record."""
        found = await self._documents.find(DELETIONS, {"begun": Below(before)}, limit=1000)
        return [_deletion(each) for each in found]

    async def list_all(self) -> Sequence[Deletion]:
        """Return all notes, ordered by key."""
        return [_deletion(each) async for each in scan(self._documents, DELETIONS, "place")]

    async def remove(self, key: str) -> None:
        """Remove the note of a debate, by the key of its record: nothing is left to do."""
        await self._documents.delete(DELETIONS, key)


def _deletion(document: Document) -> Deletion:
    fields = document.fields
    return Deletion(str(fields["tenant"]), str(fields["debate"]), ratings=bool(fields["ratings"]))
