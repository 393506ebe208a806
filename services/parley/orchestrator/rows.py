"""The row of each debate: how a scan finds it, who runs it, and what a list shows. The log remains the truth."""

from collections.abc import Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from parley.storage.ports import Above, Below, Collection, Document, Documents, Index, OneOf, Order, Where

__all__ = [
    "CANCELLED",
    "COMPLETED",
    "DEBATES",
    "FAILED",
    "PAUSED",
    "PENDING",
    "RUNNING",
    "WAITING",
    "Row",
    "Rows",
]

PENDING = "PENDING"
RUNNING = "RUNNING"
WAITING = "WAITING"
PAUSED = "PAUSED"
COMPLETED = "COMPLETED"
FAILED = "FAILED"
CANCELLED = "CANCELLED"

DEBATES = Collection(
    "debates",
    (
        Index(("tenant", "request_id"), unique=True),
        Index(("tenant", "created")),
        Index(("tenant", "status", "created")),
        Index(("open", "created")),
    ),
)
_OPEN_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class Row:
    """One debate's row.

    Attributes:
        request_digest: Stands for the content of the request that made it.
        open: Whether it needs an owner.
        owner: The replica that runs it, or None.
        epoch: The claim the row was last written under.
        beat: Raised by the owner while it lives.
        created: Time of acceptance (ISO 8601, UTC, microseconds) and the debate's id: orders debates by age.
        question: First 200 characters.
        opening: The first event's payload, until that event is known to be in the log.
    """

    tenant: str
    debate: str
    request_id: str
    request_digest: str
    format: str
    status: str
    open: bool
    owner: str | None
    epoch: int
    beat: int
    created: str
    updated: str
    question: str
    opening: str

    @property
    def key(self) -> str:
        """The row's key in its collection, and the name of the debate's log."""
        return row_key(self.tenant, self.debate)


def row_key(tenant: str, debate: str) -> str:
    """Return the key of a debate's row."""
    return f"{tenant}/{debate}"


class Rows:
    """The rows of all debates."""

    def __init__(self, documents: Documents) -> None:
        """Keep them in a store whose collection DEBATES is prepared."""
        self._documents = documents

    async def insert(self, row: Row) -> None:
        """Add a row. Raises DuplicateError where the request id is taken."""
        await self._documents.insert(DEBATES, row.key, asdict(row))

    async def get(self, tenant: str, debate: str) -> Row | None:
        """Return a debate's row."""
        found = await self._documents.get(DEBATES, row_key(tenant, debate))
        return _row(found) if found else None

    async def by_request(self, tenant: str, request_id: str) -> Row | None:
        """Return the row that a request made."""
        found = await self._documents.find(DEBATES, {"tenant": tenant, "request_id": request_id}, limit=1)
        return _row(found[0]) if found else None

    async def open(self) -> Sequence[Row]:
        """Return the debates that need an owner, oldest first."""
        found = await self._documents.find(
            DEBATES, {"open": True}, order=(Order("created"),), limit=_OPEN_AT_ONCE
        )
        return [_row(document) for document in found]

    async def page(
        self, tenant: str, statuses: Sequence[str], before: str | None, limit: int
    ) -> Sequence[Row]:
        """Return a tenant's debates, newest first, that are older than `before`."""
        where: dict[str, Any] = {"tenant": tenant, "created": Below(before) if before else Above("")}
        if statuses:
            where["status"] = OneOf(tuple(statuses))
        found = await self._documents.find(
            DEBATES, where, order=(Order("created", descending=True),), limit=limit
        )
        return [_row(document) for document in found]

    async def claimed(self, row: Row, owner: str, epoch: int, updated: str) -> bool:
        """Note a claim that the log already holds, unless a later one is noted."""
        changes = {"owner": owner, "epoch": epoch, "beat": row.beat + 1, "updated": updated, "opening": ""}
        return await self._update(row, changes, {"epoch": Below(epoch)})

    async def beat(self, row: Row, epoch: int, beat: int) -> bool:
        """Show that the owner of an epoch lives; false where a later claim is noted."""
        return await self._update(row, {"beat": beat}, {"epoch": epoch})

    async def settle(
        self, row: Row, epoch: int, *, status: str, is_open: bool, owner: str | None, updated: str
    ) -> bool:
        """Note where the debate stands under an epoch; false where a later claim is noted."""
        changes = {"status": status, "open": is_open, "owner": owner, "updated": updated}
        return await self._update(row, changes, {"epoch": epoch})

    async def release(self, row: Row, epoch: int) -> bool:
        """Give the debate up, so that any replica may claim it at once."""
        return await self._update(row, {"owner": None}, {"epoch": epoch})

    async def reopen(self, tenant: str, debate: str) -> bool:
        """Ask for an owner for a debate that rests, since someone wishes something of it."""
        where: Where = {"open": False, "status": OneOf((PAUSED, FAILED))}
        return await self._documents.update(DEBATES, row_key(tenant, debate), {"open": True}, where)

    async def _update(self, row: Row, changes: dict[str, Any], where: Where) -> bool:
        return await self._documents.update(DEBATES, row.key, changes, where)


def _row(document: Document) -> Row:
    known = {each.name for each in fields(Row)}  # a newer version may have added more
    found: dict[str, Any] = {name: value for name, value in document.fields.items() if name in known}
    return Row(**found)
