"""The inbox of wishes: anyone may put one in, the debate's owner takes it up once and says so."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from parley.orchestrator.canonical import digest
from parley.orchestrator.events import Intervened
from parley.storage.ports import Collection, Document, Documents, DuplicateError, Fields, Index, Order

__all__ = ["INBOX", "Inbox", "Wish"]

INBOX = Collection("inbox", (Index(("state", "made")),))
_AT_ONCE = 1000

WAITING = "waiting"
RECORDED = "recorded"
ENDED = "ended"


@dataclass(frozen=True, slots=True)
class Wish:
    """A wish about a debate.

    Attributes:
        debate: Key of the debate's row.
        state: `waiting`, `recorded`, or `ended` where the debate ended first.
        sequence: Of the event that records it; 0 until then.
    """

    debate: str
    made: str
    wish: Intervened
    state: str = WAITING
    sequence: int = 0

    @property
    def key(self) -> str:
        """Key in the inbox."""
        return f"{self.debate}/{self.wish.request_id}"


class Inbox:
    """All wishes."""

    def __init__(self, documents: Documents) -> None:
        """Keep them in a store whose collection INBOX is prepared."""
        self._documents = documents

    async def put(self, wish: Wish) -> bool:
        """Put a wish in; the same one again changes nothing. False: another wish has this request id."""
        stored = {**asdict(wish), "digest": digest(asdict(wish.wish))}
        try:
            await self._documents.insert(INBOX, wish.key, stored)
        except DuplicateError:
            there = await self._documents.get(INBOX, wish.key)
            return there is not None and there.fields["digest"] == stored["digest"]
        return True

    async def get(self, key: str) -> Wish | None:
        """Return a wish by its key."""
        found = await self._documents.get(INBOX, key)
        return _wish(found) if found else None

    async def waiting(self) -> Sequence[Wish]:
        """Return the wishes that nobody has taken up, oldest first."""
        found = await self._documents.find(INBOX, {"state": WAITING}, order=(Order("made"),), limit=_AT_ONCE)
        return [_wish(document) for document in found]

    async def recorded(self, key: str, sequence: int) -> None:
        """Note that the log holds a wish."""
        changes: Fields = {"state": RECORDED, "sequence": sequence}
        await self._documents.update(INBOX, key, changes, {"state": WAITING})

    async def ended(self, key: str) -> None:
        """Note that the debate ended before the wish was taken up."""
        await self._documents.update(INBOX, key, {"state": ENDED}, {"state": WAITING})


def _wish(document: Document) -> Wish:
    known = {each.name for each in fields(Wish)}  # the digest is not; a newer version may have added more
    found: dict[str, Any] = {name: value for name, value in document.fields.items() if name in known}
    return Wish(**{**found, "wish": Intervened(**found["wish"])})
