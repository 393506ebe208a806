"""The moments of all debates, a document each under the debate's key; those of a record are one of its effects."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import Any, Final

from google.protobuf.json_format import MessageToDict, ParseDict

from parley.memory.debate import list_debates, search_text, storage_key
from parley.memory.embedding import find_held
from parley.memory.writing import Write
from parley.moment_rules import find_moments
from parley.runtime.unreadable import skip_unreadable
from parley.storage.ports import Below, Collection, Document, Documents, Fields, Index, Order
from parley.v1.memory_pb2 import Moment, MomentKind, RecordDebateRequest

MOMENTS: Final = Collection(
    "moments",
    (Index(("debate",)), Index(("place",)), Index(("tenant", "place")), Index(("tenant", "kind", "place"))),
    private=("moment",),
)
_KIND: Final = "moment of a debate"


class Moments:
    """What stands out in the debates of all tenants."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    async def apply(self, tenant: str, record: RecordDebateRequest, write: Write) -> None:
        """Write a debate's moments, and delete others that it had as another record."""
        key = storage_key(tenant, record.debate.debate_id)
        wanted: dict[str, Fields] = {}
        for place, each in enumerate(find_moments(record)):
            name = f"{key}/{place:03}"
            wanted[name] = _to_fields(tenant, name, each)
        # Who holds the embedding records the debate for the first time, as far as it knows: nothing of it is looked for.
        known = () if find_held(search_text(record.debate)) else await self._list(key)
        others = [each.key for each in known if each.key not in wanted]
        await write(
            self._documents.put(MOMENTS, wanted),
            *(self._documents.delete(MOMENTS, each) for each in others),
        )

    async def remove(self, tenant: str, record: RecordDebateRequest) -> None:
        """Delete a debate's moments."""
        for known in await self._list(storage_key(tenant, record.debate.debate_id)):
            await self._documents.delete(MOMENTS, known.key)

    async def list_old(self, before: float, limit: int) -> list[tuple[str, str]]:
        """Return tenant and id of debates that have moments and concluded before a time, the oldest first."""
        where = {"place": Below(_to_place(datetime.fromtimestamp(before, UTC)))}
        found = await self._documents.find(MOMENTS, where, order=(Order("place"),), limit=limit)
        return list_debates(found, "debate")

    async def list_page(
        self, tenant: str, kind: MomentKind.ValueType, after: str, size: int
    ) -> tuple[list[Moment], str]:
        """Return a page of moments, of the latest debate first, and the place at which it ends if there are more; else an empty one.

        `after` is the place at which the page before ended, empty for the first page.
        """
        where: dict[str, Any] = {"tenant": tenant}
        if kind:
            where["kind"] = kind
        if after:
            where["place"] = Below(after)
        order = [Order("place", descending=True)]
        found = await self._documents.find(MOMENTS, where, order=order, limit=size + 1)
        ends = str(found[size - 1].fields["place"]) if len(found) > size else ""
        return list(skip_unreadable(found[:size], _from_document, _KIND)), ends

    async def _list(self, key: str) -> Sequence[Document]:
        return await self._documents.find(MOMENTS, {"debate": key})


def _to_fields(tenant: str, key: str, moment: Moment) -> Fields:
    return {
        "debate": storage_key(tenant, moment.debate_id),
        "tenant": tenant,
        "kind": moment.kind,
        "place": f"{_to_place(moment.concluded_at.ToDatetime(UTC))}/{key}",  # no two share one, so that a page ends between two moments
        "moment": MessageToDict(moment, preserving_proto_field_name=True),
    }


def _to_place(concluded: datetime) -> str:
    return concluded.isoformat(timespec="microseconds")


def _from_document(document: Document) -> Moment:
    fields: Any = document.fields
    return ParseDict(fields["moment"], Moment())
