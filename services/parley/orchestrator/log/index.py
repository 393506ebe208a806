"""The index of debates: one record a debate, for scans and lists, with its owner and status.

The log is the truth; the index may lag behind.
"""

import secrets
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from datetime import datetime
from typing import Any

from msgspec import Struct
from msgspec.structs import asdict

from parley.orchestrator.log.debate_filter import DebateFilter
from parley.orchestrator.log.debate_record import (
    CANCELLED,
    COMPLETED,
    FAILED,
    PAUSED,
    PENDING,
    RESTING,
    RUNNING,
    WAITING,
    DebateRecord,
    record_key,
)
from parley.runtime.unreadable import read_or_raise, skip_unreadable
from parley.storage.ports import (
    Above,
    Below,
    Collection,
    Document,
    Documents,
    HasAll,
    Index,
    Insert,
    OneOf,
    Order,
    StoreDamagedError,
    Update,
    Where,
)
from parley.storage.scan import scan

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
        Index(("tenant", "news")),
    ),
    private=("request_digest", "question", "opening"),
    superseded=(Index(("open", "created")),),
)
_RUNNABLE = (PENDING, RUNNING, COMPLETED, CANCELLED)
"""Statuses of debates that an owner runs now: after an answer its follow-up may be left."""
_WITHOUT_NEWS = (PENDING, RUNNING)
"""Statuses that nobody is told of."""
_PAGE_SIZE = 1000
_PAGE_PER_TENANT = 64
_PAGE_PER_OWNED_TENANT = 16
_KIND = "debate record"
_TYPES: Mapping[str, Any] = {
    **dict.fromkeys(
        ("tenant", "debate", "request_id", "format", "status", "created", "updated", "opening"), str
    ),
    **dict.fromkeys(("epoch", "heartbeat", "document_bytes", "told"), int),
    **dict.fromkeys(("owner", "due", "alive", "news"), str | None),
    "cost_micros": int | None,
}


class LivenessWindow(Struct, frozen=True):
    """The times between which a live owner last sent a heartbeat, as in `DebateRecord.updated`."""

    since: str
    until: str


class DebateIndex:
    """Stores the records of all debates.

    Attributes:
        address: Where other replicas reach this one, which claims debates through this index; empty until known.
        notice: Called with tenant and id of a debate of which hooks may have to be told.
    """

    def __init__(self, documents: Documents, address: str = "") -> None:
        """Use a store whose collection DEBATES is prepared."""
        self.address = address
        self.notice: Callable[[str, str], None] = lambda _tenant, _debate: None
        self._documents = documents

    async def insert(self, record: DebateRecord) -> None:
        """Add a record. Raise DuplicateError if the request id was already used."""
        added = self.plan_insert(record)
        await self._documents.insert(added.collection, added.key, added.fields)

    def plan_insert(self, record: DebateRecord) -> Insert:
        """Return what adds a record as `insert` does, for a claim to take along."""
        return Insert(DEBATES, record.key, asdict(record))

    async def get(self, tenant: str, debate: str) -> DebateRecord | None:
        """Return a debate's record."""
        return await self.get_by_key(record_key(tenant, debate))

    async def get_by_key(self, key: str) -> DebateRecord | None:
        """Return a debate's record by its key, or None. Raise UnreadableError if it cannot be read."""
        found = await self._documents.get(DEBATES, key)
        return read_or_raise(found, _record, _KIND) if found else None

    async def get_sealed(self, tenant: str, debate: str) -> DebateRecord | None:
        """Return a debate's record as `get` does. If its texts cannot be decrypted, they are as they are stored."""
        try:
            return await self.get(tenant, debate)
        except StoreDamagedError as error:
            if error.document is None:
                raise
            return read_or_raise(error.document, _record, _KIND)

    async def find_by_request(self, tenant: str, request_id: str) -> DebateRecord | None:
        """Return the record that a request created, or None."""
        found = await self._documents.find(DEBATES, {"tenant": tenant, "request_id": request_id}, limit=1)
        return _record(found[0]) if found else None

    async def list_owned(
        self, alive: LivenessWindow | None = None, *, of_each: int = _PAGE_SIZE
    ) -> list[DebateRecord]:
        """Return debates that have an owner, which may have ended, oldest first.

        With `alive`, these are all whose owner sent no heartbeat in that window. Else they are the oldest ones of each owner, so many, and
        the oldest ones of each of its tenants.
        """
        if alive is not None:
            return await self._find_silent(alive)
        records: list[DebateRecord] = []
        owner = ""
        while found := await self._documents.find(
            DEBATES, {"open": True, "owner": Above(owner)}, order=(Order("owner"),), limit=1
        ):
            owner = _text(found[0], "owner")
            records += (await self._list_oldest(owner, of_each, _PAGE_PER_OWNED_TENANT))[0]
        return sorted(records, key=lambda record: record.created)

    async def find_oldest_heartbeat(self) -> str | None:
        """Return when the owner that has been silent for longest sent its last heartbeat, as in `DebateRecord.alive`; None if no debate has an owner."""
        owned: Where = {"open": True, "alive": Above("")}
        found = await self._documents.find(
            DEBATES, owned, order=(Order("alive"),), limit=1, fields=("alive",)
        )
        return _text(found[0], "alive") if found else None

    async def list_waiting(self) -> tuple[list[DebateRecord], bool]:
        """Return debates without an owner that need one, oldest first, and whether these are all: else the oldest ones, and the oldest of each tenant."""
        return await self._list_oldest(None, _PAGE_SIZE, _PAGE_PER_TENANT)

    async def _list_oldest(
        self, owner: str | None, limit: int, of_each_tenant: int
    ) -> tuple[list[DebateRecord], bool]:
        where: Where = {"open": True, "owner": owner}
        documents = await self._documents.find(DEBATES, where, order=(Order("created"),), limit=limit)
        oldest, are_all = _records(documents), len(documents) < limit
        if not are_all:
            known = {record.key for record in oldest}
            of_tenants = await self._find_oldest_of_each_tenant(owner, of_each_tenant)
            oldest += [record for record in of_tenants if record.key not in known]
        return oldest, are_all

    async def list_overdue(self, now: str) -> Sequence[DebateRecord]:
        """Return up to 1,000 debates without an owner whose checkpoint is due, the longest due first."""
        # "~" sorts after the end of the time, so that what is due now is included
        through_now = Below(f"{now}~")
        return await self._find({"due": through_now}, Order("due"), limit=_PAGE_SIZE)

    async def count_running(self, tenant: str, at_most: int) -> int:
        """Count a tenant's debates that an owner runs now, up to a number."""
        where: Where = {"tenant": tenant, "open": True, "owner": Above(""), "status": OneOf(_RUNNABLE)}
        return len(await self._documents.find(DEBATES, where, limit=at_most))

    async def _find_silent(self, alive: LivenessWindow) -> list[DebateRecord]:
        """Return the debates whose owner sent no heartbeat in a window. The cost depends on their number alone.

        Times after the window count too: else debates of a replica whose clock was ahead would look alive after its end.
        """
        conditions: Sequence[Where] = ({"alive": Below(alive.since)}, {"alive": Above(alive.until)})
        return [record for where in conditions for record in await self._find_owned(where)]

    async def _find_owned(self, which: Where) -> list[DebateRecord]:
        found = scan(self._documents, DEBATES, "created", {"open": True, **which}, page=_PAGE_SIZE)
        return _records([each async for each in found])

    async def _find_oldest_of_each_tenant(self, owner: str | None, limit: int) -> list[DebateRecord]:
        """Search tenant by tenant, so that the debates of one do not hide those of another."""
        records: list[DebateRecord] = []
        tenant = ""
        order = Order("tenant"), Order("created")
        while found := await self._documents.find(
            DEBATES,
            {"open": True, "owner": owner, "tenant": Above(tenant)},
            order=order,
            limit=limit,
        ):
            tenant = _text(found[0], "tenant")
            records += [record for record in _records(found) if record.tenant == tenant]
        return records

    async def list_page(
        self, tenant: str, selected: DebateFilter, after: str = "", limit: int = 50
    ) -> Sequence[DebateRecord]:
        """Return a tenant's selected debates after the one created at `after` (as `DebateRecord.created`; empty: from the first)."""
        where: dict[str, Any] = {"tenant": tenant}
        if selected.statuses:
            where["status"] = OneOf(selected.statuses)
        if selected.formats:
            where["format"] = OneOf(selected.formats)
        if selected.labels:
            where["labels"] = HasAll(selected.labels)
        order = Order("created", descending=not selected.oldest_first)
        found: list[DebateRecord] = []
        while len(found) < limit:  # an unreadable record must not end the list
            bounded = {**where, "created": selected.start_condition(after)}
            documents = await self._documents.find(DEBATES, bounded, order=(order,), limit=limit)
            found += _records(documents)
            if len(documents) < limit:
                break
            after = _text(documents[-1], "created")
        found = found[:limit]
        # Ordered by age: debates beyond the other bound come last.
        if selected.oldest_first:
            return [record for record in found if not selected.before or record.created < selected.before]
        return [record for record in found if record.created > selected.since]

    async def count(self, tenant: str, statuses: Sequence[str], at_most: int) -> int:
        """Count a tenant's debates with one of these statuses, up to a number."""
        if not at_most:
            return 0
        where: Where = {"tenant": tenant, "status": OneOf(tuple(statuses))}
        return len(await self._documents.find(DEBATES, where, limit=at_most))

    async def list_about(self, tenant: str, debate: str, limit: int) -> Sequence[DebateRecord]:
        """Return the debates that are about this one, newest first."""
        where: Where = {"tenant": tenant, "subject": debate}
        return await self._find(where, Order("created", descending=True), limit=limit)

    def plan_claim(
        self, record: DebateRecord, owner: str, epoch: int, updated: str, *, status: str | None = None
    ) -> Update:
        """Return the update that writes a claim which the log records, and the status if it changes, unless the record has a later one."""
        changes = {
            "epoch": epoch,
            "heartbeat": record.heartbeat + 1,
            "updated": updated,
            "opening": "",
            "open": True,
            "due": None,
            **self._owner_fields(owner, updated),
            **({} if status is None else {"status": status}),
        }
        return Update(DEBATES, record.key, changes, {"epoch": Below(epoch)})

    async def record_first_event(self, record: DebateRecord) -> bool:
        """Write that the log contains the first event of a debate without a claim."""
        return await self._update(record, {"opening": ""}, {"epoch": 0})

    async def renew_lease(
        self,
        record: DebateRecord,
        epoch: int,
        heartbeat: int,
        alive: str,
        told: Mapping[str, int | None],
        *,
        has_news: bool = False,
    ) -> bool:
        """Write a heartbeat of the owner of an epoch, and `told`, fields of the record. Return False if the record has a later claim."""
        changes = {"heartbeat": heartbeat, "alive": alive, "address": self.address, **told}
        return await self.write(_update_owned(record, epoch, changes, alive if has_news else ""))

    def plan_status(
        self,
        record: DebateRecord,
        epoch: int,
        *,
        status: str,
        is_open: bool,
        owner: str | None,
        updated: str,
        cost_micros: int | None = None,
        due: str | None = None,
    ) -> Update:
        """Return the update that writes the status under an epoch, unless the record has a later claim."""
        owned = self._owner_fields(owner, updated)
        changes = {
            "status": status,
            "open": is_open,
            "updated": updated,
            "due": due,
            "cost_micros": cost_micros,
            **owned,
        }
        return _update_owned(record, epoch, changes, "" if status in _WITHOUT_NEWS else updated)

    async def write(self, update: Update) -> bool:
        """Write a planned update. Return False if the record has a later claim."""
        is_written = await self._documents.update(DEBATES, update.key, update.changes, update.where)
        if is_written:
            self.announce(update)
        return is_written

    def announce(self, update: Update) -> None:
        """Give notice of a planned update that is written, if hooks may have to be told of it."""
        if "news" in update.changes:
            tenant, _, debate = update.key.partition("/")
            self.notice(tenant, debate)

    async def release(self, record: DebateRecord, epoch: int) -> bool:
        """Release the debate, so that any replica may claim it at once."""
        return await self._update(record, self._owner_fields(None, ""), {"epoch": epoch})

    async def reopen(self, tenant: str, debate: str) -> bool:
        """Request an owner for a debate that rests or waits, since there is an intervention."""
        where: Where = {"open": False, "status": OneOf((PAUSED, FAILED, WAITING))}
        changes = {"open": True, "due": None}
        return await self._documents.update(DEBATES, record_key(tenant, debate), changes, where)

    async def remove(self, record: DebateRecord) -> bool:
        """Remove the record of a debate that rests. Return False if it was claimed or reopened since."""
        where: Where = {"open": False, "epoch": record.epoch, "status": record.status}
        return await self._documents.delete(DEBATES, record.key, where)

    async def list_news(self, tenant: str, after: str, limit: int) -> Sequence[DebateRecord]:
        """Return debates of a tenant that have news since a time (as `DebateRecord.updated`), the longest unread first."""
        return await self._find({"tenant": tenant, "news": Above(after)}, Order("news"), limit=limit)

    async def record_told(self, record: DebateRecord, told: int) -> bool:
        """Write that hooks are told of the log up to a sequence. Return False if the record has other news since, or is gone."""
        return await self._update(record, {"news": None, "told": told}, {"news": record.news})

    async def list_tenants(self) -> AsyncIterator[str]:
        """Yield every tenant that has debates."""
        tenant = ""
        while found := await self._documents.find(
            DEBATES, {"tenant": Above(tenant)}, order=(Order("tenant"),), limit=1
        ):
            tenant = _text(found[0], "tenant")
            yield tenant

    async def list_resting(self, tenant: str, before: str, limit: int) -> Sequence[DebateRecord]:
        """Return debates of a tenant that rest and last changed before a time, the longest unchanged first.

        Debates that wait for a person are not included.
        """
        where: Where = {
            "tenant": tenant,
            "open": False,
            "updated": Below(before),
            "status": OneOf(RESTING),
        }
        return await self._find(where, Order("updated"), limit=limit)

    def _owner_fields(self, owner: str | None, now: str) -> dict[str, str | None]:
        return {"owner": owner, "address": self.address if owner else "", "alive": now if owner else None}

    async def _find(self, where: Where, *order: Order, limit: int) -> list[DebateRecord]:
        return _records(await self._documents.find(DEBATES, where, order=order, limit=limit))

    async def _update(self, record: DebateRecord, changes: dict[str, Any], where: Where) -> bool:
        return await self._documents.update(DEBATES, record.key, changes, where)


def _update_owned(record: DebateRecord, epoch: int, changes: Mapping[str, Any], news_at: str) -> Update:
    """Return an update under an epoch, with the mark of news unless `news_at` is empty."""
    marked = {**changes, "news": _create_news(news_at)} if news_at else changes
    return Update(DEBATES, record.key, marked, {"epoch": epoch})


def _create_news(updated: str) -> str:
    """Return a mark that no other one equals: what is written at the same time is other news."""
    return f"{updated}/{secrets.token_hex(4)}"


def _record(document: Document) -> DebateRecord:
    known = frozenset(DebateRecord.__struct_fields__)  # a newer version may have added more
    found: dict[str, Any] = {name: value for name, value in document.fields.items() if name in known}
    labels = tuple(found.pop("labels", ()))
    if not all(isinstance(each, str) for each in labels):
        raise TypeError(f"labels are {labels!r}")
    record = DebateRecord(labels=labels, **found)
    for name, kind in _TYPES.items():
        if not isinstance(getattr(record, name), kind):
            raise TypeError(f"{name} is {getattr(record, name)!r}")
    for time in (record.created.removesuffix(f"/{record.debate}"), record.updated):
        datetime.fromisoformat(time)  # raises ValueError
    return record


def _records(documents: Sequence[Document]) -> list[DebateRecord]:
    return list(skip_unreadable(documents, _record, _KIND))


def _text(document: Document, name: str) -> str:
    """Return a text field that was searched by."""
    return str(document.fields[name])
