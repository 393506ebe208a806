"""The index of debates: a record each, by which a scan finds it, knows who runs it, and a list shows it.

The log remains the truth.
"""

import base64
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from datetime import datetime
from typing import Any

from parley.orchestrator.log.debate_filter import DebateFilter
from parley.runtime.unreadable import read_or_raise, skip_unreadable
from parley.storage.ports import (
    Above,
    Below,
    Collection,
    Document,
    Documents,
    HasAll,
    Index,
    OneOf,
    Order,
    Where,
)
from parley.v1.event_pb2 import DebateCreated

__all__ = [
    "CANCELLED",
    "COMPLETED",
    "DEBATES",
    "FAILED",
    "PAUSED",
    "PENDING",
    "RUNNING",
    "WAITING",
    "DebateIndex",
    "DebateRecord",
    "LivenessWindow",
    "OpenDebates",
    "opening_text",
    "record_key",
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
        Index(("tenant", "format", "created")),
        Index(("tenant", "subject", "created")),
        Index(("tenant", "labels", "created")),
        Index(("open", "owner", "created")),
        Index(("open", "owner", "tenant", "created")),
        Index(("open", "alive", "owner")),
        Index(("tenant", "open", "owner")),
        Index(("tenant", "open", "updated")),
        Index(("due",)),
    ),
)
_RESTING = (COMPLETED, CANCELLED, FAILED, PAUSED)
_RUNNABLE = (PENDING, RUNNING, COMPLETED, CANCELLED)
"""States of what an owner works on now: an answer may still owe what follows it."""
_PAGE_SIZE = 1000
_PAGE_PER_TENANT = 64
_KIND = "debate record"
_TYPES: Mapping[str, Any] = {
    **dict.fromkeys(
        ("tenant", "debate", "request_id", "format", "status", "created", "updated", "opening"), str
    ),
    **dict.fromkeys(("epoch", "heartbeat"), int),
    **dict.fromkeys(("owner", "due", "alive"), str | None),
}
_WITHOUT_OWNER: Where = {"open": True, "owner": None}


@dataclass(frozen=True, slots=True)
class DebateRecord:
    """One debate's record.

    Attributes:
        request_digest: Stands for the content of the request that made it.
        open: Whether it needs an owner.
        owner: The replica that runs it, or None.
        epoch: The claim the record was last written under.
        heartbeat: Raised by the owner while it lives.
        alive: When the owner last showed that it lives, by its own clock and in the form of `updated`; by this a scan finds
            those that show no life, and nothing else rests on it. None without an owner, or from a version that does not tell.
        created: Time of acceptance (ISO 8601, UTC, microseconds) and the debate's id: orders debates by age.
        question: First 200 characters.
        opening: The first event's payload (base64 of its bytes), until that event is known to be in the log.
        address: Where other replicas reach the owner, as `host:port`; empty where that is not known.
        subject: Id of the debate that this one is about; None for one that is about a question.
        labels: What it is found by, as `name=value` each.
        due: Where it waits for a person and has no owner: when it needs one again at the latest, in the form of `updated`.
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
    heartbeat: int
    created: str
    updated: str
    question: str
    opening: str
    address: str = ""
    subject: str | None = None
    due: str | None = None
    alive: str | None = None
    labels: tuple[str, ...] = ()

    @property
    def accepted_at(self) -> datetime:
        """When the debate was accepted."""
        return datetime.fromisoformat(self.created.partition("/")[0])

    @property
    def is_resting(self) -> bool:
        """Whether nothing happens to it before somebody wants something of it; one that waits for a person does not rest."""
        return not self.open and self.status in _RESTING

    @property
    def key(self) -> str:
        """The record's key in its collection, and the name of the debate's log."""
        return record_key(self.tenant, self.debate)

    def opening_event(self) -> DebateCreated | None:
        """Return the first event's payload, where the log may not hold that event yet."""
        return DebateCreated.FromString(base64.b64decode(self.opening)) if self.opening else None


def opening_text(created: DebateCreated) -> str:
    """Return a first event's payload as a record keeps it."""
    return base64.b64encode(created.SerializeToString()).decode()


def record_key(tenant: str, debate: str) -> str:
    """Return the key of a debate's record."""
    return f"{tenant}/{debate}"


@dataclass(frozen=True, slots=True)
class OpenDebates:
    """Records of debates that need an owner, oldest first.

    Attributes:
        owned: Those that have one, which may be gone: all that were asked for.
        waiting: Those that have none: the oldest of all, and of each tenant.
        is_complete: Whether these are all that wait.
    """

    owned: Sequence[DebateRecord]
    waiting: Sequence[DebateRecord]
    is_complete: bool


@dataclass(frozen=True, slots=True)
class LivenessWindow:
    """When an owner that lives was last heard of: between these two times, in the form of `DebateRecord.updated`."""

    since: str
    until: str


class DebateIndex:
    """The records of all debates.

    Attributes:
        address: Where the owner of what is claimed through these records is reached, once that is known.
    """

    def __init__(self, documents: Documents, address: str = "") -> None:
        """Keep them in a store whose collection DEBATES is prepared."""
        self.address = address
        self._documents = documents

    async def insert(self, record: DebateRecord) -> None:
        """Add a record. Raises DuplicateError where the request id is taken."""
        await self._documents.insert(DEBATES, record.key, asdict(record))

    async def get(self, tenant: str, debate: str) -> DebateRecord | None:
        """Return a debate's record."""
        return await self.get_by_key(record_key(tenant, debate))

    async def get_by_key(self, key: str) -> DebateRecord | None:
        """Return a debate's record by its key. Raises UnreadableError where it cannot be read."""
        found = await self._documents.get(DEBATES, key)
        return read_or_raise(found, _record, _KIND, _key) if found else None

    async def find_by_request(self, tenant: str, request_id: str) -> DebateRecord | None:
        """Return the record that a request made."""
        found = await self._documents.find(DEBATES, {"tenant": tenant, "request_id": request_id}, limit=1)
        return _record(found[0]) if found else None

    async def list_open(self, heard: LivenessWindow | None = None) -> OpenDebates:
        """Return the debates that need an owner; of those that have one, where `heard` is said, only those that were not heard of then."""
        owned = (
            await self._find_owned({"owner": Above("")}) if heard is None else await self._find_silent(heard)
        )
        documents = await self._documents.find(
            DEBATES, _WITHOUT_OWNER, order=(Order("created"),), limit=_PAGE_SIZE
        )
        waiting, whole = _records(documents), len(documents) < _PAGE_SIZE
        if not whole:
            known = {record.key for record in waiting}
            waiting += [
                record for record in await self._find_oldest_of_each_tenant() if record.key not in known
            ]
        return OpenDebates(owned, waiting, whole)

    async def list_overdue(self, now: str) -> Sequence[DebateRecord]:
        """Return the debates without an owner in which a person was waited for until now; the oldest if they are many."""
        through_now = Below(f"{now}~")  # longer than what is due at this very moment, and so above it
        return await self._find({"due": through_now}, Order("due"), limit=_PAGE_SIZE)

    async def count_running(self, tenant: str, at_most: int) -> int:
        """Count a tenant's debates that an owner runs now, up to a number."""
        where: Where = {"tenant": tenant, "open": True, "owner": Above(""), "status": OneOf(_RUNNABLE)}
        return len(await self._documents.find(DEBATES, where, limit=at_most))

    async def _find_silent(self, heard: LivenessWindow) -> list[DebateRecord]:
        """Look for what is outside of a time, so that the cost is that of what is found.

        A clock that is ahead would else let the debates of its replica look alive for as long, after it has died.
        """
        # A version that tells no time is looked at in full, while it runs beside this one.
        conditions: Sequence[Where] = (
            {"alive": Below(heard.since)},
            {"alive": Above(heard.until)},
            {"alive": None, "owner": Above("")},
        )
        return [record for where in conditions for record in await self._find_owned(where)]

    async def _find_owned(self, which: Where) -> list[DebateRecord]:
        records: list[DebateRecord] = []
        after = ""
        while True:
            where: Where = {"open": True, **which, "created": Above(after)}
            found = await self._documents.find(DEBATES, where, order=(Order("created"),), limit=_PAGE_SIZE)
            records += _records(found)
            if len(found) < _PAGE_SIZE:
                return records
            after = _text(found[-1], "created")

    async def _find_oldest_of_each_tenant(self) -> list[DebateRecord]:
        """Look from tenant to tenant, so that those of one cannot hide those of another."""
        records: list[DebateRecord] = []
        tenant = ""
        order = Order("tenant"), Order("created")
        while found := await self._documents.find(
            DEBATES, {**_WITHOUT_OWNER, "tenant": Above(tenant)}, order=order, limit=_PAGE_PER_TENANT
        ):
            tenant = _text(found[0], "tenant")
            records += [record for record in _records(found) if record.tenant == tenant]
        return records

    async def list_page(
        self, tenant: str, wanted: DebateFilter, after: str = "", limit: int = 50
    ) -> Sequence[DebateRecord]:
        """Return those of a tenant's debates that are wanted, beyond the one created as `after` says; empty: from the first."""
        where: dict[str, Any] = {"tenant": tenant}
        if wanted.statuses:
            where["status"] = OneOf(wanted.statuses)
        if wanted.formats:
            where["format"] = OneOf(wanted.formats)
        if wanted.labels:
            where["labels"] = HasAll(wanted.labels)
        order = Order("created", descending=not wanted.oldest_first)
        found: list[DebateRecord] = []
        while len(found) < limit:  # else one that cannot be read would end the list
            bounded = {**where, "created": wanted.start_condition(after)}
            documents = await self._documents.find(DEBATES, bounded, order=(order,), limit=limit)
            found += _records(documents)
            if len(documents) < limit:
                break
            after = _text(documents[-1], "created")
        found = found[:limit]
        # They are ordered by age: those that the other bound leaves out come last.
        if wanted.oldest_first:
            return [record for record in found if not wanted.before or record.created < wanted.before]
        return [record for record in found if record.created > wanted.since]

    async def count(self, tenant: str, statuses: Sequence[str], at_most: int) -> int:
        """Count a tenant's debates in some states, up to a number."""
        if not at_most:
            return 0
        where: Where = {"tenant": tenant, "status": OneOf(tuple(statuses))}
        return len(await self._documents.find(DEBATES, where, limit=at_most))

    async def list_about(self, tenant: str, debate: str, limit: int) -> Sequence[DebateRecord]:
        """Return the debates that are about this one, newest first."""
        where: Where = {"tenant": tenant, "subject": debate}
        return await self._find(where, Order("created", descending=True), limit=limit)

    async def record_claim(self, record: DebateRecord, owner: str, epoch: int, updated: str) -> bool:
        """Note a claim that the log already holds, unless a later one is noted."""
        changes = {
            "epoch": epoch,
            "heartbeat": record.heartbeat + 1,
            "updated": updated,
            "opening": "",
            "open": True,
            "due": None,
            **self._owner_fields(owner, updated),
        }
        return await self._update(record, changes, {"epoch": Below(epoch)})

    async def record_first_event(self, record: DebateRecord) -> bool:
        """Note that the log holds the first event of a debate that nobody has claimed."""
        return await self._update(record, {"opening": ""}, {"epoch": 0})

    async def renew_lease(self, record: DebateRecord, epoch: int, heartbeat: int, alive: str) -> bool:
        """Show that the owner of an epoch lives at a time; false where a later claim is noted."""
        changes = {"heartbeat": heartbeat, "alive": alive, "address": self.address}
        return await self._update(record, changes, {"epoch": epoch})

    async def update_status(
        self,
        record: DebateRecord,
        epoch: int,
        *,
        status: str,
        is_open: bool,
        owner: str | None,
        updated: str,
        due: str | None = None,
    ) -> bool:
        """Note where the debate stands under an epoch; false where a later claim is noted."""
        owned = self._owner_fields(owner, updated)
        changes = {"status": status, "open": is_open, "updated": updated, "due": due, **owned}
        return await self._update(record, changes, {"epoch": epoch})

    async def release(self, record: DebateRecord, epoch: int) -> bool:
        """Give the debate up, so that any replica may claim it at once."""
        return await self._update(record, self._owner_fields(None, ""), {"epoch": epoch})

    async def reopen(self, tenant: str, debate: str) -> bool:
        """Ask for an owner for a debate that rests, since someone wants something of it."""
        where: Where = {"open": False, "status": OneOf((PAUSED, FAILED, WAITING))}
        changes = {"open": True, "due": None}
        return await self._documents.update(DEBATES, record_key(tenant, debate), changes, where)

    async def remove(self, record: DebateRecord) -> bool:
        """Remove the record of a debate that rests, so that nobody finds it; false where somebody has taken it up since."""
        where: Where = {"open": False, "epoch": record.epoch, "status": record.status}
        return await self._documents.delete(DEBATES, record.key, where)

    async def list_tenants(self) -> AsyncIterator[str]:
        """Yield every tenant that has debates."""
        tenant = ""
        while found := await self._documents.find(
            DEBATES, {"tenant": Above(tenant)}, order=(Order("tenant"),), limit=1
        ):
            tenant = _text(found[0], "tenant")
            yield tenant

    async def list_resting(self, tenant: str, before: str, limit: int) -> Sequence[DebateRecord]:
        """Return debates of a tenant that rest and last changed before a time, those first that rest the longest.

        One that waits for a person is none of them.
        """
        where: Where = {
            "tenant": tenant,
            "open": False,
            "updated": Below(before),
            "status": OneOf(_RESTING),
        }
        return await self._find(where, Order("updated"), limit=limit)

    def _owner_fields(self, owner: str | None, now: str) -> dict[str, str | None]:
        return {"owner": owner, "address": self.address if owner else "", "alive": now if owner else None}

    async def _find(self, where: Where, *order: Order, limit: int) -> list[DebateRecord]:
        return _records(await self._documents.find(DEBATES, where, order=order, limit=limit))

    async def _update(self, record: DebateRecord, changes: dict[str, Any], where: Where) -> bool:
        return await self._documents.update(DEBATES, record.key, changes, where)


def _record(document: Document) -> DebateRecord:
    known = {each.name for each in fields(DebateRecord)}  # a newer version may have added more
    found: dict[str, Any] = {name: value for name, value in document.fields.items() if name in known}
    labels = tuple(found.pop("labels", ()))
    if not all(isinstance(each, str) for each in labels):
        raise TypeError(f"labels are {labels!r}")
    record = DebateRecord(labels=labels, **found)
    for name, kind in _TYPES.items():
        if not isinstance(getattr(record, name), kind):
            raise TypeError(f"{name} is {getattr(record, name)!r}")
    return record


def _records(documents: Sequence[Document]) -> list[DebateRecord]:
    return list(skip_unreadable(documents, _record, _KIND, _key))


def _key(document: Document) -> str:
    return document.key


def _text(document: Document, name: str) -> str:
    """Return a field that was searched by as text."""
    return str(document.fields[name])
