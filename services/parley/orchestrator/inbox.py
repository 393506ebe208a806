"""The inbox of wishes: anyone may put one in, the debate's owner takes it up once and says so."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from parley.orchestrator.canonical import digest, digested
from parley.orchestrator.events import Intervened
from parley.storage.ports import (
    Above,
    Below,
    Collection,
    Document,
    Documents,
    DuplicateError,
    Fields,
    Index,
    Order,
    Where,
)

__all__ = ["INBOX", "Inbox", "Wish"]

INBOX = Collection("inbox", (Index(("state", "made")), Index(("debate", "state", "made"))))
_AT_ONCE = 1000

WAITING = "waiting"
RECORDED = "recorded"
ENDED = "ended"
REFUSED = "refused"


@dataclass(frozen=True, slots=True)
class Wish:
    """A wish about a debate.

    Attributes:
        debate: Key of the debate's row.
        made: Time it was put in (ISO 8601, UTC, microseconds) and its key: orders wishes by age.
        state: `waiting`, `recorded`, `ended` where the debate ended first, or `refused` where it names a checkpoint
            that was not open.
        sequence: Of the event that records it; 0 until then.
        epoch: The latest claim whose owner decides whether it is refused; 0 until one does.
    """

    debate: str
    made: str
    wish: Intervened
    state: str = WAITING
    sequence: int = 0
    epoch: int = 0

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
        stored = {**asdict(wish), "digest": digest(digested(wish.wish))}
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
        wishes: list[Wish] = []
        while True:
            where: Where = {"state": WAITING, "made": Above(wishes[-1].made if wishes else "")}
            found = await self._documents.find(INBOX, where, order=(Order("made"),), limit=_AT_ONCE)
            wishes += map(_wish, found)
            if len(found) < _AT_ONCE:
                return wishes

    async def waiting_for(self, debate: str) -> Sequence[Wish]:
        """Return those of one debate, by the key of its row; the oldest if they are many."""
        where: Where = {"debate": debate, "state": WAITING}
        found = await self._documents.find(INBOX, where, order=(Order("made"),), limit=_AT_ONCE)
        return [_wish(document) for document in found]

    async def recorded(self, key: str, sequence: int) -> None:
        """Note that the log holds a wish."""
        changes: Fields = {"state": RECORDED, "sequence": sequence}
        await self._documents.update(INBOX, key, changes, {"state": WAITING})

    async def take(self, key: str, epoch: int) -> bool:
        """Let the owner of an epoch alone decide on a wish; false where it is decided, or a later owner decides.

        Without this an owner that has lost its claim, and does not know, could refuse what the next one records.
        """
        return await self._documents.update(
            INBOX, key, {"epoch": epoch}, {"state": WAITING, "epoch": Below(epoch + 1)}
        )

    async def refused(self, key: str, epoch: int) -> None:
        """Note that the checkpoint of a wish is not open, unless a later owner decides."""
        await self._documents.update(INBOX, key, {"state": REFUSED}, {"state": WAITING, "epoch": epoch})

    async def ended(self, key: str) -> None:
        """Note that the debate ended before the wish was taken up."""
        await self._documents.update(INBOX, key, {"state": ENDED}, {"state": WAITING})


def _wish(document: Document) -> Wish:
    known = {each.name for each in fields(Wish)}  # the digest is not; a newer version may have added more
    found: dict[str, Any] = {name: value for name, value in document.fields.items() if name in known}
    return Wish(**{**found, "wish": Intervened(**found["wish"])})
