"""The durable outbox: a document for each delivery, from the event that it tells of until it is delivered or dead.

A delivery holds no text of its debate: what is sent is read from the log at each try. One replica sends it at a time: it moves `due`
ahead first, and only one can.
"""

import hashlib
from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final

from msgspec import Struct
from msgspec.structs import asdict

from parley.orchestrator.model.times import time_text
from parley.runtime.unreadable import find_readable, skip_unreadable
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
from parley.v1.hook_pb2 import HookEvent

DELIVERIES: Final = Collection(
    "deliveries",
    (
        Index(("tenant", "made")),
        Index(("tenant", "hook", "made")),
        Index(("tenant", "state", "made")),
        Index(("state", "due")),
        Index(("state", "made")),
        Index(("hook", "state", "due")),
        Index(("lane", "state", "place")),
        Index(("log",)),
        Index(("ended",)),
    ),
)
PENDING: Final = "pending"
DELIVERED: Final = "delivered"
DEAD: Final = "dead"
_PAGE_SIZE: Final = 1000
_KIND: Final = "delivery"


class StoredDelivery(Struct, frozen=True):
    """A delivery.

    Attributes:
        hook: Id of the hook.
        log: The debate's log, `tenant/debate`.
        event: What it tells of: the number of a `HookEvent`.
        sequence: Sequence of the event in the log.
        lane: Hook and debate: deliveries of a lane are sent in the order of `place`.
        made: When it was created (ISO 8601, UTC, microseconds) and its id.
        since: When it was created, or asked for again: it is tried for a day from then.
        state: `pending`, `delivered` or `dead`.
        due: When it is sent next, as in `since`; None unless it is pending.
        tries: How often it was sent since `since`; one that is being sent counts.
        error: Why the last try failed; empty: none failed.
        ended: When it was delivered or died; None: neither.
    """

    id: str
    tenant: str
    hook: str
    log: str
    event: int
    sequence: int
    lane: str
    place: str
    made: str
    since: str
    due: str | None
    state: str = PENDING
    tries: int = 0
    error: str = ""
    ended: str | None = None

    @property
    def debate(self) -> str:
        """Id of the debate."""
        return self.log.rpartition("/")[2]


def create_delivery(
    tenant: str, debate: str, hook: str, event: HookEvent.ValueType, sequence: int, now: datetime
) -> StoredDelivery:
    """Return the delivery of an event to a hook, with the id that it has whoever creates it."""
    log, time = f"{tenant}/{debate}", time_text(now)
    name = hashlib.sha256(f"{hook}/{log}/{sequence}/{event}".encode()).hexdigest()[:32]
    delivery = f"dlv-{name}"
    return StoredDelivery(
        id=delivery,
        tenant=tenant,
        hook=hook,
        log=log,
        event=event,
        sequence=sequence,
        lane=f"{hook}/{log}",
        place=f"{sequence:012d}/{event}",
        made=f"{time}/{delivery}",
        since=time,
        due=time,
    )


class DeliveryStore:
    """Stores all deliveries."""

    def __init__(self, documents: Documents) -> None:
        """Use a store whose collection DELIVERIES is prepared."""
        self._documents = documents

    async def add(self, delivery: StoredDelivery) -> bool:
        """Add a delivery. Return False if it is there already; it stays as it is."""
        try:
            await self._documents.insert(DELIVERIES, delivery.id, asdict(delivery))
        except DuplicateError:
            return False
        return True

    async def get(self, delivery_id: str) -> StoredDelivery | None:
        """Return a delivery, or None."""
        found = await self._documents.get(DELIVERIES, delivery_id)
        return next(skip_unreadable([found], _delivery, _KIND), None) if found else None

    async def list_page(
        self, tenant: str, before: str, limit: int, *, hook: str = "", state: str = ""
    ) -> Sequence[StoredDelivery]:
        """Return up to `limit` deliveries of a tenant, newest first, created before `before` (as `made`; empty: from the newest)."""
        where: dict[str, Any] = {"tenant": tenant, "made": Below(before) if before else Above("")}
        where |= {name: value for name, value in (("hook", hook), ("state", state)) if value}
        return await self._find(where, Order("made", descending=True), limit=limit)

    async def list_due(self, now: datetime, limit: int) -> Sequence[StoredDelivery]:
        """Return up to `limit` deliveries that are to be sent now, the longest due first."""
        return await self._find({"state": PENDING, "due": _select_due(now)}, Order("due"), limit=limit)

    async def list_due_of(self, hook: str, now: datetime, limit: int) -> Sequence[StoredDelivery]:
        """Return those of one hook, as `list_due` does."""
        where: Where = {"hook": hook, "state": PENDING, "due": _select_due(now)}
        return await self._find(where, Order("due"), limit=limit)

    async def find_first(self, lane: str) -> StoredDelivery | None:
        """Return the delivery of a lane that has to be sent before the others; None if all have ended."""
        found = await self._find({"lane": lane, "state": PENDING}, Order("place"), limit=1)
        return found[0] if found else None

    async def find_oldest(self) -> StoredDelivery | None:
        """Return the pending delivery that was created first."""
        found = await self._find({"state": PENDING}, Order("made"), limit=1)
        return found[0] if found else None

    async def claim(self, delivery: StoredDelivery, until: datetime) -> bool:
        """Reserve a delivery for one try, until a time. Return False if another replica has it, or it has ended."""
        changes = {"due": time_text(until), "tries": delivery.tries + 1}
        return await self._update(delivery, changes, delivery.tries)

    async def set_due(self, delivery: StoredDelivery, due: str) -> None:
        """Set when a delivery is sent, unless it is being sent now, or has ended."""
        await self._update(delivery, {"due": due}, delivery.tries)

    async def record_failure(self, claimed: StoredDelivery, error: str, due: datetime) -> bool:
        """Record that the try of a claim failed. Return False if another replica has it now."""
        return await self._end_try(claimed, {"error": error, "due": time_text(due)})

    async def record_end(self, claimed: StoredDelivery, state: str, now: datetime, error: str = "") -> bool:
        """Record that a claimed delivery is delivered, or dead for an error. Return False if another replica has it now."""
        changes = {"state": state, "due": None, "ended": time_text(now), "error": error}
        return await self._end_try(claimed, changes)

    async def resend(self, delivery_id: str, now: datetime) -> bool:
        """Let a delivery be sent anew for a day. Return False if it is gone."""
        time = time_text(now)
        changes: Fields = {
            "state": PENDING,
            "due": time,
            "since": time,
            "tries": 0,
            "error": "",
            "ended": None,
        }
        return await self._documents.update(DELIVERIES, delivery_id, changes)

    async def delete(self, delivery_id: str) -> None:
        """Delete a delivery."""
        await self._documents.delete(DELIVERIES, delivery_id)

    async def delete_for_debate(self, tenant: str, debate: str) -> None:
        """Delete all deliveries of a debate."""
        await self._delete_all({"log": f"{tenant}/{debate}"})

    async def delete_for_hook(self, tenant: str, hook: str) -> None:
        """Delete all deliveries of a hook."""
        await self._delete_all({"tenant": tenant, "hook": hook})

    async def delete_ended(self, before: datetime) -> None:
        """Delete the deliveries that ended before a time."""
        await self._delete_all({"ended": Below(time_text(before))})

    async def _delete_all(self, where: Where) -> None:
        while found := await self._documents.find(DELIVERIES, where, limit=_PAGE_SIZE):
            for each in found:
                await self._documents.delete(DELIVERIES, each.key)

    async def _end_try(self, claimed: StoredDelivery, changes: dict[str, Any]) -> bool:
        return await self._update(claimed, changes, claimed.tries + 1)

    async def _update(self, delivery: StoredDelivery, changes: dict[str, Any], tries: int) -> bool:
        where: Where = {"state": PENDING, "tries": tries, "since": delivery.since}
        return await self._documents.update(DELIVERIES, delivery.id, changes, where)

    async def _find(self, where: Where, order: Order, *, limit: int) -> list[StoredDelivery]:
        async def find(count: int) -> Sequence[Document]:
            return await self._documents.find(DELIVERIES, where, order=(order,), limit=count)

        return await find_readable(find, limit, _delivery, _KIND)


def _select_due(now: datetime) -> Below:
    # "~" sorts after the end of the time, so that what is due now is included
    return Below(f"{time_text(now)}~")


def _delivery(document: Document) -> StoredDelivery:
    known = frozenset(StoredDelivery.__struct_fields__)  # a newer version may have added more
    found: dict[str, Any] = {name: value for name, value in document.fields.items() if name in known}
    return StoredDelivery(**found)
