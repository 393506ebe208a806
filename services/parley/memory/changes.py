"""The changes of the position ledger: how stands stand to earlier ones of the same agent, and which decisions settled a flip.

They name stands by their keys, so that no text is kept twice.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

from parley.memory.debate import document_key
from parley.memory.stands import POSITIONS, Stand, read_stands
from parley.memory.writing import put_document
from parley.runtime.unreadable import skip_unreadable
from parley.storage.ports import (
    Collection,
    Document,
    Documents,
    Fields,
    Index,
    OneOf,
    Order,
    Where,
)
from parley.v1 import memory_pb2 as pb

CHANGES: Final = Collection(
    "position_changes",
    (
        Index(("later",)),
        Index(("earlier_debate",)),
        Index(("later_debate",)),
        Index(("tenant", "outcome", "place")),
    ),
)
SETTLEMENTS: Final = Collection("position_settlements", (Index(("change",)), Index(("debate_key",))))
_MAX_CHANGES: Final = 8
"""Of a stand that are shown."""
_MAX_SETTLEMENTS: Final = 3
"""Of a flip that are written: the first counts, the others do once it is forgotten."""
_KIND: Final = "change of a stand"
_MANY: Final = 10_000


@dataclass(frozen=True, slots=True)
class Change:
    """How a stand stands to an earlier one of the same agent; both by their keys."""

    later: str
    earlier: str
    outcome: int

    @property
    def key(self) -> str:
        """The key of its document."""
        debate, _, _ = self.earlier.rpartition("/")
        return f"{self.later}/{debate.rpartition('/')[2]}"


class Changes:
    """The changes of all tenants."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents

    async def write(self, judged: Sequence[tuple[Stand, Stand, pb.FlipOutcome.ValueType]]) -> None:
        """Write how stands stand to earlier ones: of each the earlier and the later one. What is gone meanwhile is left out."""
        changes = [Change(later.key, earlier.key, outcome) for earlier, later, outcome in judged]
        for change, (earlier, later, outcome) in zip(changes, judged, strict=True):
            fields: Fields = {
                "later": later.key,
                "earlier": earlier.key,
                "later_debate": later.debate_key,
                "earlier_debate": earlier.debate_key,
                "tenant": later.tenant,
                "place": later.place,
                "outcome": int(outcome),
            }
            await put_document(self._documents, CHANGES, change.key, fields)
        for key in sorted({each.later for each in changes if _is_flip(each)}):
            await self._documents.update(POSITIONS, key, {"flipped": True}, {"flipped": False})
        there = await self._load_stands({key for each in changes for key in (each.earlier, each.later)})
        for each in changes:
            if not {each.earlier, each.later} <= there.keys():
                await self._delete(each.key)  # its debate was forgotten, maybe before this was written

    async def settle(self, change: str, decision: Stand, *, took_later: bool) -> None:
        """Write which side a later decision took, unless the flip is gone."""
        fields: Fields = {
            "change": change,
            "debate_key": decision.debate_key,
            "debate": decision.debate,
            "concluded": decision.concluded,
            "took_later": took_later,
        }
        key = f"{change}/{decision.debate}"
        await put_document(self._documents, SETTLEMENTS, key, fields)
        if await self._documents.get(CHANGES, change) is None:
            await self._documents.delete(SETTLEMENTS, key)

    async def remove(self, debate_key: str) -> None:
        """Delete the changes from and to the stands of a debate, and what it settled."""
        for side in ("later_debate", "earlier_debate"):
            for each in await self._documents.find(CHANGES, {side: debate_key}, limit=_MANY):
                await self._delete(each.key)
        for each in await self._documents.find(SETTLEMENTS, {"debate_key": debate_key}, limit=_MANY):
            await self._documents.delete(SETTLEMENTS, each.key)

    async def list_unsettled(self, tenant: str, limit: int) -> list[tuple[str, Stand, Stand]]:
        """Return the flips to a tenant's latest stands that fewer than 3 decisions settled.

        Each with its key, the earlier and the later stand.
        """
        where: Where = {"tenant": tenant, "outcome": int(pb.FLIP_OUTCOME_FLIP)}
        found = _read(
            await self._documents.find(CHANGES, where, order=(Order("place", descending=True),), limit=limit)
        )
        settled = Counter(each for each, _ in await self._find_settlements([each.key for each in found]))
        left = [each for each in found if settled[each.key] < _MAX_SETTLEMENTS]
        stands = await self._load_stands({key for each in left for key in (each.earlier, each.later)})
        return [
            (each.key, stands[each.earlier], stands[each.later])
            for each in left
            if each.earlier in stands and each.later in stands
        ]

    async def load(self, later: Sequence[Stand]) -> dict[str, list[pb.StandChange]]:
        """Return the changes to stands, by their keys, the latest first."""
        where = {"later": OneOf(tuple(each.key for each in later))}
        found = _read(await self._documents.find(CHANGES, where, limit=_MANY)) if later else []
        earlier = await self._load_stands({each.earlier for each in found})
        settled = await self._load_settlements([each.key for each in found if _is_flip(each)])
        changes: dict[str, list[pb.StandChange]] = {}
        known = [each for each in found if each.earlier in earlier]
        for each in sorted(known, key=lambda each: earlier[each.earlier].place, reverse=True):
            listed = changes.setdefault(each.later, [])
            if len(listed) < _MAX_CHANGES:
                listed.append(_to_message(each, earlier[each.earlier], settled.get(each.key)))
        return changes

    async def _load_stands(self, keys: set[str]) -> dict[str, Stand]:
        if not keys:
            return {}
        where = {"key": OneOf(tuple(sorted(keys)))}
        found = await self._documents.find(POSITIONS, where, limit=len(keys))
        return {each.key: each for each in read_stands(found)}

    async def _load_settlements(self, changes: Sequence[str]) -> dict[str, pb.FlipSettlement]:
        """Return the first decision that settled each flip."""
        found = await self._find_settlements(changes)
        return dict(sorted(found, key=lambda each: each[1].concluded_at.ToMilliseconds(), reverse=True))

    async def _find_settlements(self, changes: Sequence[str]) -> list[tuple[str, pb.FlipSettlement]]:
        if not changes:
            return []
        where: Where = {"change": OneOf(tuple(changes))}
        found = await self._documents.find(SETTLEMENTS, where, limit=_MANY)
        return list(skip_unreadable(found, _read_settlement, "settlement of a flip", document_key))

    async def _delete(self, key: str) -> None:
        await self._documents.delete(CHANGES, key)
        for each in await self._documents.find(SETTLEMENTS, {"change": key}, limit=_MANY):
            await self._documents.delete(SETTLEMENTS, each.key)


def _is_flip(change: Change) -> bool:
    return change.outcome == pb.FLIP_OUTCOME_FLIP


def _read(found: Iterable[Document]) -> list[Change]:
    return list(skip_unreadable(found, _from_document, _KIND, document_key))


def _from_document(document: Document) -> Change:
    fields: Any = document.fields
    return Change(str(fields["later"]), str(fields["earlier"]), pb.FlipOutcome.ValueType(fields["outcome"]))


def _read_settlement(document: Document) -> tuple[str, pb.FlipSettlement]:
    fields: Any = document.fields
    found = pb.FlipSettlement(debate_id=fields["debate"], took_later_side=fields["took_later"])
    found.concluded_at.FromMilliseconds(fields["concluded"])
    return str(fields["change"]), found


def _to_message(change: Change, earlier: Stand, settled: pb.FlipSettlement | None) -> pb.StandChange:
    found = pb.StandChange(
        earlier_debate_id=earlier.debate,
        earlier_stand=earlier.text,
        outcome=pb.FlipOutcome.ValueType(change.outcome),
        settlement=settled,
    )
    found.earlier_concluded_at.FromMilliseconds(earlier.concluded)
    return found
