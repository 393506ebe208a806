"""The position ledger: where each agent stood in the end of each debate, and when it changed sides.

It is an effect of records. Each stand of a record is compared with the agent's others, whichever was recorded first; then it is looked
at which flips the debate's decision takes a side of. All of it is keyed by debates, so that the same record again changes nothing.

One order matters: once its stands are durable, a debate looks for others. So of two that are recorded at once one sees the other. What
is known before, without a read, is compared before, and written together with the stands.
"""

import asyncio
from collections.abc import Coroutine, Mapping, Sequence
from typing import Any, Final

from parley.memory.changes import Changes, Judged, find_flipped
from parley.memory.debate import list_debates, storage_key
from parley.memory.embedding import EmbeddingClient, find_held
from parley.memory.known_questions import KnownQuestions
from parley.memory.known_stands import KnownStands
from parley.memory.latest_stands import LatestStand, LatestStands
from parley.memory.record_texts import list_question
from parley.memory.stand_reader import StandReader
from parley.memory.stands import (
    MAX_LATEST,
    POSITIONS,
    Matter,
    Stand,
    StandHead,
    agent_key,
    create_stands,
    read_stands,
    to_fields,
    to_place,
)
from parley.memory.writing import Write, write_together
from parley.runtime.clock import Clock
from parley.runtime.large_texts import in_thread_if_large
from parley.runtime.page_tokens import Place
from parley.storage.ports import Above, Below, Documents, Order, Where
from parley.v1 import memory_pb2 as pb
from parley.v1.memory_pb2 import LedgerPosition, RecordDebateRequest

_MAX_COMPARED: Final = 8
"""Of an agent's earlier stands that one is compared with: those on the same matter first, the latest of them."""
_LATEST_FIRST: Final = (Order("place", descending=True),)


class Positions:
    """The position ledgers of all tenants; an effect of records."""

    def __init__(
        self,
        documents: Documents,
        meanings: EmbeddingClient,
        reader: StandReader,
        clock: Clock,
        *,
        alone: bool = False,
    ) -> None:
        """`alone`: no other process writes to the store, so that what is known of it need not be read."""
        self._documents = documents
        self._meanings = meanings
        self._reader = reader
        self._changes = Changes(documents)
        self._questions = KnownQuestions(documents)
        self._stands = KnownStands(documents, clock)
        self._latest = LatestStands(documents, alone=alone)

    async def apply(self, tenant: str, record: RecordDebateRequest, write: Write) -> None:
        """Write where a debate's agents stood, who flipped, and of which flips it took a side."""
        if not record.stands:
            return
        (meaning,) = await self._meanings.embed(*list_question(record))
        stands = create_stands(tenant, record, meaning)
        self._questions.put(stands[0])
        if not find_held(stands[0].question):  # then it is recorded for the first time, as far as is known
            await self._remove_others(tenant, record, stands)
        seen = set[str]()
        judged = await self._compare([each for each in stands if self._latest.knows(each)], seen)
        await write(*self._list_writes(stands, judged))
        for each in stands:
            self._stands.put(each)
            self._latest.add(each)
        missed = await self._compare(stands, seen)
        await write_together(*self._changes.list_writes(missed, set()))
        judged += missed
        await self._changes.delete_gone([each for each in judged if not all(map(self._latest.has, each[:2]))])
        await self._settle_all(tenant, stands, judged)

    async def remove(self, tenant: str, record: RecordDebateRequest) -> None:
        """Delete a debate's stands, and what they are compared with or settled."""
        debate_key = storage_key(tenant, record.debate.debate_id)
        for each in await self._documents.find(POSITIONS, {"debate_key": debate_key}):
            await self._documents.delete(POSITIONS, each.key)
            self._stands.remove(each.key)  # last, since it may be read meanwhile
        self._latest.clear()  # before: who compares a stand with these looks for it after it has written the change
        await self._changes.remove(debate_key)

    async def list_old(self, before: float, limit: int) -> list[tuple[str, str]]:
        """Return tenant and id of debates in the ledger that concluded before a time, the oldest first."""
        where: Where = {"place": Below(to_place((before * 1000, "")))}
        found = await self._documents.find(POSITIONS, where, order=(Order("place"),), limit=limit)
        return list_debates(found, "debate_key")

    async def list_page(
        self, tenant: str, *, agent: str, only_flips: bool, after: Place | None, size: int
    ) -> tuple[list[LedgerPosition], Place | None]:
        """Return a page of the ledger, the latest stands first, and the place at which it ends if there are more."""
        where: dict[str, str | bool | Below] = {"tenant": tenant}
        where |= {"agent_key": agent_key(agent)} if agent else {}
        where |= {"flipped": True} if only_flips else {}
        where |= {"place": Below(to_place(after))} if after else {}
        found = await self._documents.find(POSITIONS, where, order=_LATEST_FIRST, limit=size + 1)
        stands = read_stands(found[:size])
        changes = await self._changes.load(stands)
        listed = []
        for each in stands:
            entry = each.to_message()
            entry.changes.extend(changes.get(each.key, ()))
            if not only_flips or _has_flip(entry):  # what it flipped from may be forgotten
                listed.append(entry)
        return listed, _place_of(found[size - 1].fields["place"]) if len(found) > size else None

    async def _remove_others(self, tenant: str, record: RecordDebateRequest, stands: Sequence[Stand]) -> None:
        """Remove all of a debate that was forgotten, and is recorded anew with other content."""
        wanted = {each.key: to_fields(each) for each in stands}
        debate_key = storage_key(tenant, record.debate.debate_id)
        known = await self._documents.find(POSITIONS, {"debate_key": debate_key})
        if any(
            {**wanted.get(each.key, {}), "flipped": each.fields.get("flipped")} != each.fields
            for each in known
        ):
            await self.remove(tenant, record)

    def _list_writes(
        self, stands: Sequence[Stand], judged: Sequence[Judged]
    ) -> list[Coroutine[Any, Any, object]]:
        """Return the writes of a debate's stands and of how they, and others, stand to earlier ones."""
        flipped = find_flipped(judged)
        fields = {each.key: to_fields(each) for each in stands}
        marked = {key: {**each, "flipped": True} for key, each in fields.items() if key in flipped}
        others = {key: each for key, each in fields.items() if key not in flipped}
        return [
            self._documents.put(POSITIONS, marked),
            self._documents.put(POSITIONS, others, {"flipped": False}),
            *self._changes.list_writes(judged, fields.keys()),
        ]

    async def _compare(self, stands: Sequence[Stand], seen: set[str]) -> list[Judged]:
        """Return how the stands of a debate stand to the same agents' stands of others that are not among those `seen`, and add these to them."""
        pairs = await self._find_pairs(stands, seen)
        return [(*pair, outcome) for pair, outcome in zip(pairs, await self._judge(pairs), strict=True)]

    async def _find_pairs(self, stands: Sequence[Stand], seen: set[str]) -> list[tuple[Stand, Stand]]:
        """Return stands with each that they are compared with, the earlier one first."""
        found = [
            [each for each in latest if each.key not in seen] for latest in await self._latest.load(stands)
        ]
        seen |= {each.key for latest in found for each in latest}
        heads = await self._questions.load(each for latest in found for each in latest)
        matters = _judge_matters(stands, heads)
        chosen = [_choose(latest, matters, each) for each, latest in zip(stands, found, strict=True)]
        abouts = {each.key: each.about for latest in chosen for each in latest}
        others = await self._stands.load(abouts)
        return [
            (others[each.key], stand) if others[each.key].place < stand.place else (stand, others[each.key])
            for stand, latest in zip(stands, chosen, strict=True)
            for each in latest
            if each.key in others
        ]

    async def _judge(self, pairs: Sequence[tuple[Stand, Stand]]) -> list[pb.FlipOutcome.ValueType]:
        """Return how each later stand stands to the earlier one. What no record says is read by one call."""
        kept = [later.deduce_kept(earlier) for earlier, later in pairs]
        unread = [place for place, each in enumerate(kept) if each is None]
        read = await self._reader.read([(pairs[place][0].text, pairs[place][1].text) for place in unread])
        for place, each in zip(unread, read, strict=True):
            kept[place] = each
        compared = [pair for pair, each in zip(pairs, kept, strict=True) if each is False]
        texts = [text for pair in compared for each in pair for text in (each.question, each.text)]
        return await in_thread_if_large(
            texts, lambda: [_outcome(*pair, kept=each) for pair, each in zip(pairs, kept, strict=True)]
        )

    async def _settle_all(self, tenant: str, stands: Sequence[Stand], judged: Sequence[Judged]) -> None:
        """Write which side a debate's decision took of flips, and later decisions of the flips that came with it."""
        flips = [each[:2] for each in judged if each[2] == pb.FLIP_OUTCOME_FLIP]
        for each in stands:
            if any(each in flip for flip in flips):
                await self._settle_by_later(each)
        for key, earlier, later in await self._changes.list_unsettled(tenant):
            await self._settle(key, earlier, later, stands[0])

    async def _settle_by_later(self, stand: Stand) -> None:
        """Write which side of new flips the decisions took that were recorded before them although they are later."""
        where: Where = {"tenant": stand.tenant, "place": Above(stand.place)}
        found = await self._documents.find(POSITIONS, where, order=(Order("place"),), limit=MAX_LATEST)
        decisions = {each.debate: each for each in await asyncio.to_thread(read_stands, found)}
        if not decisions:
            return
        for key, earlier, later in await self._changes.list_unsettled(stand.tenant):
            for decision in decisions.values():
                await self._settle(key, earlier, later, decision)

    async def _settle(self, key: str, earlier: Stand, later: Stand, decision: Stand) -> None:
        """Write which side of a flip a decision took, if it is that of the flip's debate or a later one on the matter, and took one."""
        if decision.debate != later.debate and decision.concluded <= later.concluded:
            return
        took = {
            upheld is is_later
            for is_later, stand in ((False, earlier), (True, later))
            if (upheld := await self._read_upheld(stand, decision)) is not None
        }
        if len(took) == 1:
            await self._changes.settle(key, decision, took_later=took.pop())

    async def _read_upheld(self, stand: Stand, decision: Stand) -> bool | None:
        """Return whether a decision is what a stand of its debate or an earlier one asks for; None if it cannot be told, or is on another matter."""
        upheld = decision.deduce_upheld(stand)
        if upheld is not None or not decision.decided or decision.find_matter(stand) is not Matter.SAME:
            return upheld
        (upheld,) = await self._reader.read([(stand.text, decision.decided)])
        return upheld


def _judge_matters(stands: Sequence[Stand], heads: Mapping[str, StandHead]) -> dict[str, Matter]:
    """Return whether the debate of these stands, which is one, and that of each head are on one matter, by the keys of `heads`."""
    return {
        about: stand.find_matter(head) if head.concluded <= stand.concluded else head.find_matter(stand)
        for stand in stands[:1]
        for about, head in heads.items()
        if head.debate != stand.debate
    }


def _choose(latest: Sequence[LatestStand], matters: Mapping[str, Matter], stand: Stand) -> list[LatestStand]:
    """Return those that a stand is compared with; `latest` begins with the latest."""
    same, maybe, after = list[LatestStand](), list[LatestStand](), list[LatestStand]()
    for each in latest:
        matter = matters.get(each.about, Matter.OTHER)
        if matter is Matter.OTHER:
            continue
        if each.place > stand.place:
            after.append(each)
        else:
            (same if matter is Matter.SAME else maybe).append(each)
    return (same + maybe)[:_MAX_COMPARED] + after[:_MAX_COMPARED]


def _outcome(earlier: Stand, later: Stand, *, kept: bool | None) -> pb.FlipOutcome.ValueType:
    """Return the outcome for two stands, and whether the later one keeps the earlier one; None: it cannot be told."""
    if kept:
        return pb.FLIP_OUTCOME_NO_FLIP
    if kept is None or not later.is_on_matter(earlier):
        return pb.FLIP_OUTCOME_UNKNOWN
    return pb.FLIP_OUTCOME_FLIP


def _has_flip(entry: LedgerPosition) -> bool:
    return any(each.outcome == pb.FLIP_OUTCOME_FLIP for each in entry.changes)


def _place_of(place: object) -> Place:
    milliseconds, _, key = str(place).partition("/")
    return float(milliseconds), key
