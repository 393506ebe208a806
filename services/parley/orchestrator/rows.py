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
    "OpenRows",
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
        Index(("open", "owner", "created")),
        Index(("open", "owner", "tenant", "created")),
    ),
)
_AT_ONCE = 1000
_OF_EACH_TENANT = 64
_WAITING: Where = {"open": True, "owner": None}


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
        address: Where other replicas reach the owner, as `host:port`; empty where that is not known.
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
    address: str = ""

    @property
    def key(self) -> str:
        """The row's key in its collection, and the name of the debate's log."""
        return row_key(self.tenant, self.debate)


def row_key(tenant: str, debate: str) -> str:
    """Return the key of a debate's row."""
    return f"{tenant}/{debate}"


@dataclass(frozen=True, slots=True)
class OpenRows:
    """Rows of debates that need an owner, oldest first.

    Attributes:
        owned: Those that have one, which may be gone; all of them.
        waiting: Those that have none: the oldest of all, and of each tenant.
        whole: Whether these are all that wait.
    """

    owned: Sequence[Row]
    waiting: Sequence[Row]
    whole: bool


class Rows:
    """The rows of all debates.

    Attributes:
        address: Where the owner of what is claimed through these rows is reached, once that is known.
    """

    def __init__(self, documents: Documents, address: str = "") -> None:
        """Keep them in a store whose collection DEBATES is prepared."""
        self.address = address
        self._documents = documents

    async def insert(self, row: Row) -> None:
        """Add a row. Raises DuplicateError where the request id is taken."""
        await self._documents.insert(DEBATES, row.key, asdict(row))

    async def get(self, tenant: str, debate: str) -> Row | None:
        """Return a debate's row."""
        return await self.by_key(row_key(tenant, debate))

    async def by_key(self, key: str) -> Row | None:
        """Return a debate's row by its key."""
        found = await self._documents.get(DEBATES, key)
        return _row(found) if found else None

    async def by_request(self, tenant: str, request_id: str) -> Row | None:
        """Return the row that a request made."""
        found = await self._documents.find(DEBATES, {"tenant": tenant, "request_id": request_id}, limit=1)
        return _row(found[0]) if found else None

    async def open(self) -> OpenRows:
        """Return the debates that need an owner."""
        owned = await self._owned()
        waiting = await self._find(_WAITING, Order("created"), limit=_AT_ONCE)
        whole = len(waiting) < _AT_ONCE
        if not whole:
            known = {row.key for row in waiting}
            waiting += [row for row in await self._oldest_of_each_tenant() if row.key not in known]
        return OpenRows(owned, waiting, whole)

    async def _owned(self) -> list[Row]:
        rows: list[Row] = []
        while True:
            where: Where = {
                "open": True,
                "owner": Above(""),
                "created": Above(rows[-1].created if rows else ""),
            }
            found = await self._find(where, Order("created"), limit=_AT_ONCE)
            rows += found
            if len(found) < _AT_ONCE:
                return rows

    async def _oldest_of_each_tenant(self) -> list[Row]:
        """Look from tenant to tenant, so that those of one cannot hide those of another."""
        rows: list[Row] = []
        tenant = ""
        order = Order("tenant"), Order("created")
        while found := await self._find({**_WAITING, "tenant": Above(tenant)}, *order, limit=_OF_EACH_TENANT):
            tenant = found[0].tenant
            rows += [row for row in found if row.tenant == tenant]
        return rows

    async def page(
        self, tenant: str, statuses: Sequence[str], before: str | None, limit: int
    ) -> Sequence[Row]:
        """Return a tenant's debates, newest first, that are older than `before`."""
        where: dict[str, Any] = {"tenant": tenant, "created": Below(before) if before else Above("")}
        if statuses:
            where["status"] = OneOf(tuple(statuses))
        return await self._find(where, Order("created", descending=True), limit=limit)

    async def claimed(self, row: Row, owner: str, epoch: int, updated: str) -> bool:
        """Note a claim that the log already holds, unless a later one is noted."""
        changes = {"epoch": epoch, "beat": row.beat + 1, "updated": updated, "opening": ""}
        return await self._update(row, {**changes, **self._owner(owner)}, {"epoch": Below(epoch)})

    async def opened(self, row: Row) -> bool:
        """Note that the log holds the first event of a debate that nobody has claimed."""
        return await self._update(row, {"opening": ""}, {"epoch": 0})

    async def beat(self, row: Row, epoch: int, beat: int) -> bool:
        """Show that the owner of an epoch lives; false where a later claim is noted."""
        return await self._update(row, {"beat": beat, "address": self.address}, {"epoch": epoch})

    async def settle(
        self, row: Row, epoch: int, *, status: str, is_open: bool, owner: str | None, updated: str
    ) -> bool:
        """Note where the debate stands under an epoch; false where a later claim is noted."""
        changes = {"status": status, "open": is_open, "updated": updated, **self._owner(owner)}
        return await self._update(row, changes, {"epoch": epoch})

    async def release(self, row: Row, epoch: int) -> bool:
        """Give the debate up, so that any replica may claim it at once."""
        return await self._update(row, self._owner(None), {"epoch": epoch})

    async def reopen(self, tenant: str, debate: str) -> bool:
        """Ask for an owner for a debate that rests, since someone wishes something of it."""
        where: Where = {"open": False, "status": OneOf((PAUSED, FAILED))}
        return await self._documents.update(DEBATES, row_key(tenant, debate), {"open": True}, where)

    def _owner(self, owner: str | None) -> dict[str, str | None]:
        return {"owner": owner, "address": self.address if owner else ""}

    async def _find(self, where: Where, *order: Order, limit: int) -> list[Row]:
        found = await self._documents.find(DEBATES, where, order=order, limit=limit)
        return [_row(document) for document in found]

    async def _update(self, row: Row, changes: dict[str, Any], where: Where) -> bool:
        return await self._documents.update(DEBATES, row.key, changes, where)


def _row(document: Document) -> Row:
    known = {each.name for each in fields(Row)}  # a newer version may have added more
    found: dict[str, Any] = {name: value for name, value in document.fields.items() if name in known}
    return Row(**found)
