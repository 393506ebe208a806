"""The changes of the position ledger: how stands stand to earlier ones of the same agent, and which decisions took a side of a flip.

They name stands by their keys, so that no text is kept twice. Whether a decision that took a side settles the flip depends on the latest
feedback on it, and is found when the ledger is read: so feedback counts once, and whenever it comes.
"""

import asyncio
from collections import Counter
from collections.abc import Coroutine, Iterable, Sequence
from collections.abc import Set as AbstractSet
from typing import Any, Final

from msgspec import Struct

from parley.memory.approvals import Approvals
from parley.memory.known_stands import load_stands
from parley.memory.stands import MAX_LATEST, POSITIONS, Stand
from parley.memory.writing import put_document
from parley.runtime.unreadable import skip_unreadable
from parley.storage.ports import (
    Above,
    Collection,
    Document,
    Documents,
    Fields,
    Index,
    OneOf,
    Order,
    Where,
)
from parley.storage.scan import find_by_keys
from parley.v1 import memory_pb2 as pb

CHANGES: Final = Collection(
    "position_changes",
    (
        Index(("later",)),
        Index(("earlier_debate",)),
        Index(("tenant", "outcome", "place")),
    ),
    superseded=(Index(("later_debate",)),),
)
SETTLEMENTS: Final = Collection("position_settlements", (Index(("change",)), Index(("debate_key",))))
_MAX_CHANGES: Final = 8
"""Of a stand that are shown."""
_MAX_SETTLEMENTS: Final = 3
"""Of a flip that count: the first is shown, the others are once it is forgotten, or a person did not find it good."""
_KIND: Final = "change of a stand"
_MANY: Final = 10_000
_PAGE: Final = 100


class Change(Struct, frozen=True):
    """How a stand stands to an earlier one of the same agent; both by their keys."""

    later: str
    earlier: str
    outcome: int

    @property
    def key(self) -> str:
        """The key of its document."""
        debate, _, _ = self.earlier.rpartition("/")
        return f"{self.later}/{debate.rpartition('/')[2]}"


class Settlement(Struct, frozen=True):
    """A decision that took a side of a flip.

    Attributes:
        change: The key of the flip.
        debate_key: The key of the debate that decided.
        message: What is shown of it.
    """

    change: str
    debate_key: str
    message: pb.FlipSettlement

    def counts(self, value: int) -> bool:
        """Return whether it settles the flip, if a person found it good (1), not good (-1), or nothing was said of it (0).

        The debate in which the agent flipped settles nothing by itself: a person has to agree with it.
        """
        is_own = self.change.startswith(f"{self.debate_key}/")
        return value > 0 if is_own else value >= 0


Judged = tuple[Stand, Stand, pb.FlipOutcome.ValueType]
"""An earlier and a later stand of an agent, and how they stand to each other."""


def find_flipped(judged: Iterable[Judged]) -> set[str]:
    """Return the keys of the later stands of flips."""
    return {later.key for _, later, outcome in judged if outcome == pb.FLIP_OUTCOME_FLIP}


class Changes:
    """The changes of all tenants."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._approvals = Approvals(documents)

    def list_writes(
        self, judged: Sequence[Judged], own: AbstractSet[str]
    ) -> list[Coroutine[Any, Any, object]]:
        """Return the writes of how stands stand to earlier ones. Whoever writes the stands with the keys `own` marks those that flipped."""
        written = {_to_change(each).key: _to_fields(*each) for each in judged}
        marked = sorted(find_flipped(judged) - own)
        return [
            self._documents.put(CHANGES, written),
            *(
                self._documents.update(POSITIONS, key, {"flipped": True}, {"flipped": False})
                for key in marked
            ),
        ]

    async def delete_gone(self, judged: Sequence[Judged]) -> None:
        """Delete changes whose debates were forgotten, maybe before these were written."""
        # A stand of each debate is enough: whoever removes a debate deletes all of them before its changes.
        stands = {each.debate_key: each.key for pair in judged for each in pair[:2]}
        found = await find_by_keys(self._documents, POSITIONS, stands.values(), fields=("key",))
        there = {each.key for each in found}
        for each in judged:
            if not {stands[stand.debate_key] for stand in each[:2]} <= there:
                await self._delete(_to_change(each).key)

    async def settle(self, change: str, decision: Stand, *, took_later: bool) -> None:
        """Write which side a decision took, that of the debate of the flip or a later one, unless the flip is gone."""
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
        while to_it := await self._find_changes_to(debate_key):
            for each in to_it:
                await self._delete(each.key)
        for each in await self._documents.find(CHANGES, {"earlier_debate": debate_key}, limit=_MANY):
            await self._delete(each.key)
        for each in await self._documents.find(SETTLEMENTS, {"debate_key": debate_key}, limit=_MANY):
            await self._documents.delete(SETTLEMENTS, each.key)

    async def _find_changes_to(self, debate_key: str) -> list[Document]:
        """Return some of the changes to the stands of a debate, whose keys begin with that of the debate; none if there are none."""
        first = f"{debate_key}/"
        found = await self._documents.find(
            CHANGES, {"later": Above(first)}, order=(Order("later"),), limit=_PAGE
        )
        return [each for each in found if str(each.fields["later"]).startswith(first)]

    async def list_unsettled(self, tenant: str) -> list[tuple[str, Stand, Stand]]:
        """Return the flips to a tenant's latest stands that fewer than 3 decisions settle.

        Each with its key, the earlier and the later stand.
        """
        where: Where = {"tenant": tenant, "outcome": int(pb.FLIP_OUTCOME_FLIP)}
        found = _read(
            await self._documents.find(
                CHANGES, where, order=(Order("place", descending=True),), limit=MAX_LATEST
            )
        )
        settled = Counter(each.change for each in await self._find_settlements([each.key for each in found]))
        left = [each for each in found if settled[each.key] < _MAX_SETTLEMENTS]
        stands = await load_stands(
            self._documents, {key for each in left for key in (each.earlier, each.later)}
        )
        return [
            (each.key, stands[each.earlier], stands[each.later])
            for each in left
            if each.earlier in stands and each.later in stands
        ]

    async def load(self, later: Sequence[Stand]) -> dict[str, list[pb.StandChange]]:
        """Return the changes to stands, by their keys, the latest first."""
        where = {"later": OneOf(tuple(each.key for each in later))}
        found = _read(await self._documents.find(CHANGES, where, limit=_MANY)) if later else []
        earlier = await load_stands(self._documents, {each.earlier for each in found})
        settled = await self._load_settlements([each.key for each in found if _is_flip(each)])
        changes: dict[str, list[pb.StandChange]] = {}
        known = [each for each in found if each.earlier in earlier]
        for each in sorted(known, key=lambda each: earlier[each.earlier].place, reverse=True):
            listed = changes.setdefault(each.later, [])
            if len(listed) < _MAX_CHANGES:
                listed.append(_to_message(each, earlier[each.earlier], settled.get(each.key)))
        return changes

    async def _load_settlements(self, changes: Sequence[str]) -> dict[str, pb.FlipSettlement]:
        """Return the first decision that settled each flip."""
        found = await self._find_settlements(changes)
        latest_first = sorted(
            found, key=lambda each: each.message.concluded_at.ToMilliseconds(), reverse=True
        )
        return {each.change: each.message for each in latest_first}

    async def _find_settlements(self, changes: Sequence[str]) -> list[Settlement]:
        """Return the decisions that took a side of a flip and count."""
        if not changes:
            return []
        where: Where = {"change": OneOf(tuple(changes))}
        documents = await self._documents.find(SETTLEMENTS, where, limit=_MANY)
        found = await asyncio.to_thread(_read_settlements, documents)
        words = await self._approvals.load({each.debate_key for each in found})
        for each in found:
            each.message.approved = words.get(each.debate_key, 0) > 0
        return [each for each in found if each.counts(words.get(each.debate_key, 0))]

    async def _delete(self, key: str) -> None:
        await self._delete_settlements(key)  # first, since nothing leads to them once the change is gone
        await self._documents.delete(CHANGES, key)
        await self._delete_settlements(key)  # those of decisions that found the change just before

    async def _delete_settlements(self, key: str) -> None:
        for each in await self._documents.find(SETTLEMENTS, {"change": key}, limit=_MANY):
            await self._documents.delete(SETTLEMENTS, each.key)


def _to_change(judged: Judged) -> Change:
    earlier, later, outcome = judged
    return Change(later.key, earlier.key, outcome)


def _to_fields(earlier: Stand, later: Stand, outcome: int) -> Fields:
    return {
        "later": later.key,
        "earlier": earlier.key,
        "later_debate": later.debate_key,  # a replica of an earlier version looks for it
        "earlier_debate": earlier.debate_key,
        "tenant": later.tenant,
        "place": later.place,
        "outcome": int(outcome),
    }


def _is_flip(change: Change) -> bool:
    return change.outcome == pb.FLIP_OUTCOME_FLIP


def _read(found: Iterable[Document]) -> list[Change]:
    return list(skip_unreadable(found, _from_document, _KIND))


def _from_document(document: Document) -> Change:
    fields: Any = document.fields
    return Change(str(fields["later"]), str(fields["earlier"]), pb.FlipOutcome.ValueType(fields["outcome"]))


def _read_settlements(found: Iterable[Document]) -> list[Settlement]:
    return list(skip_unreadable(found, _read_settlement, "settlement of a flip"))


def _read_settlement(document: Document) -> Settlement:
    fields: Any = document.fields
    found = pb.FlipSettlement(debate_id=fields["debate"], took_later_side=fields["took_later"])
    found.concluded_at.FromMilliseconds(fields["concluded"])
    return Settlement(str(fields["change"]), str(fields["debate_key"]), found)


def _to_message(change: Change, earlier: Stand, settled: pb.FlipSettlement | None) -> pb.StandChange:
    found = pb.StandChange(
        earlier_debate_id=earlier.debate,
        earlier_stand=earlier.text,
        outcome=pb.FlipOutcome.ValueType(change.outcome),
        settlement=settled,
    )
    found.earlier_concluded_at.FromMilliseconds(earlier.concluded)
    return found
