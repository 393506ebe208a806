"""The recording, deletion and recall of debates."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Sequence

from msgspec.structs import replace

from parley.memory.approvals import Approvals, weigh_importance
from parley.memory.debate import (
    DEBATES,
    FORGETTING,
    RECORDING,
    from_document,
    is_forgetting,
    storage_key,
    to_fields,
)
from parley.memory.embedding import EmbeddingClient, hold_embeddings
from parley.memory.index import DebateIndex
from parley.memory.known_debates import KnownDebates, read_by_key
from parley.memory.outbox import Outbox
from parley.memory.ranking import CANDIDATES, Candidate, lowest_similarity, rank
from parley.memory.record_texts import list_texts
from parley.memory.tiers import Tiers
from parley.memory.tombstones import Tombstones
from parley.memory.traces import Trace, Traces
from parley.memory.words import list_words
from parley.runtime.clock import Clock
from parley.storage.ports import Above, Document, Documents, DuplicateError, Neighbor, Order
from parley.v1.memory_pb2 import PastDebate, RecordDebateRequest


class DebateReusedError(Exception):
    """This debate is already recorded with other content."""


class Memories:
    """The debates of all tenants: content in documents, vectors in the index, and what else follows from them in effects."""

    def __init__(
        self,
        documents: Documents,
        index: DebateIndex,
        traces: Traces,
        tiers: Tiers,
        meanings: EmbeddingClient,
        outbox: Outbox,
        clock: Clock,
        *,
        alone: bool,
    ) -> None:
        """`alone`: no other process writes to the store, so that what is known of it need not be read."""
        self._documents = documents
        self._index = index
        self._traces = traces
        self._tiers = tiers
        self._meanings = meanings
        self._outbox = outbox
        self._clock = clock
        self._tombstones = Tombstones(documents, clock)
        self._approvals = Approvals(documents)
        self._known = KnownDebates(documents, clock, alone=alone)
        self._recalled = Counter[str]()
        self._tenants = set[str]()

    async def record(self, tenant: str, record: RecordDebateRequest) -> bool:
        """Record a debate and return whether it was recorded before; it is durable and can be recalled from now on.

        One that was forgotten before stays forgotten.

        Raises:
            DebateReusedError: it is already recorded with other content.
            ParleyError: the convergence service does not answer.
            StorageError: a store failed.
        """
        key = storage_key(tenant, record.debate.debate_id)
        while not await self._tombstones.has(key):
            if await self._insert(tenant, record):
                return False
            known = await self._documents.get(DEBATES, key)
            if known is not None and is_forgetting(known):
                await self._outbox.finish(known)
            elif known is not None:
                await self._confirm(known, record)
                return True
        return False

    async def _confirm(self, known: Document, record: RecordDebateRequest) -> None:
        """Finish a record that an earlier call may have left unfinished."""
        if from_document(known) != record:
            raise DebateReusedError(record.debate.debate_id)
        if known.fields.get("unfinished"):
            await self._outbox.finish(known)

    async def _insert(self, tenant: str, record: RecordDebateRequest) -> bool:
        texts = list_texts(record)
        meanings = await self._meanings.embed(*texts)
        fields = {**to_fields(tenant, record, meanings[0]), "unfinished": RECORDING}
        document = Document(storage_key(tenant, record.debate.debate_id), fields)
        try:
            await self._documents.insert(DEBATES, document.key, fields)
        except DuplicateError:
            return False
        with hold_embeddings(texts, meanings):
            await self._outbox.finish(document, record)
        return True

    async def forget(self, tenant: str, debate_id: str) -> bool:
        """Delete a debate and return whether it was recorded; nothing of it is left then, and nothing is recorded later.

        Raise StorageError or ParleyError if a part of it cannot be deleted now: it is not recalled any more, and deleted later.
        """
        key = storage_key(tenant, debate_id)
        # Before the look at what is there: a record or feedback that this does not see sees the tombstone.
        await self._tombstones.put(key)
        await self._approvals.delete(key)
        try:
            if not await self._documents.update(DEBATES, key, {"unfinished": FORGETTING}):
                return False
        finally:
            self._known.remove(key)  # it may be read until it has that mark
        marked = await self._documents.get(DEBATES, key)
        if marked is not None:
            await self._outbox.finish(marked)
        return True

    async def rate(self, tenant: str, debate_id: str, number: int, value: int) -> bool:
        """Record a person's feedback on a debate, 1 or -1; return whether that or later feedback was recorded before.

        One that was forgotten stays so. Raise StorageError if the store failed.
        """
        key = storage_key(tenant, debate_id)
        existed = await self._approvals.put(key, number, value)
        if await self._tombstones.has(key):
            await self._approvals.delete(key)
        return existed

    async def get(self, tenant: str, debate_id: str) -> RecordDebateRequest | None:
        """Return what was recorded of a debate; None if it is not remembered. Raise StorageError if the store failed."""
        return await self._read(storage_key(tenant, debate_id))

    async def recall(
        self, tenant: str, text: str, *, domain: str, excluded: Sequence[str], limit: int, floor: float
    ) -> AsyncIterator[PastDebate]:
        """Yield the debates that are most relevant to a text, best first; errors as with `record`.

        None if none is as similar to it as the floor, a cosine.
        """
        if not await self._has_debates(tenant):  # no model is needed before this debate's own record
            self._meanings.expect_text()
            return
        (meaning,) = await self._meanings.embed(text)
        found = await self._index.find_nearest(
            meaning,
            tenant=tenant,
            domain=domain,
            excluded=[storage_key(tenant, debate_id) for debate_id in excluded],
            limit=max(CANDIDATES, limit),
            floor=lowest_similarity(floor),
        )
        now = self._clock.now().timestamp()
        candidates = await self._load_candidates(found, now)
        ranked = rank(list_words(text), candidates, floor, now)
        while limit and ranked:  # again if some of the first cannot be read
            best, ranked = ranked[:limit], ranked[limit:]
            debates = await self._known.load([each.key for each in best])
            for each in best:
                if known := debates.get(each.key):
                    debate = PastDebate(relevance=each.relevance)
                    debate.MergeFrom(known)
                    self._recalled[each.key] += 1
                    yield debate
                    limit -= 1

    async def _has_debates(self, tenant: str) -> bool:
        """Return whether a tenant has debates, or had some in the life of this process: to search in vain then costs little."""
        if tenant not in self._tenants:
            first = storage_key(tenant, "")
            found = await self._documents.find(
                DEBATES, {"key": Above(first)}, order=(Order("key"),), limit=1, fields=("key",)
            )
            if any(each.key.startswith(first) for each in found):
                self._tenants.add(tenant)
        return tenant in self._tenants

    def take_recalled(self) -> Counter[str]:
        """Return how often each debate was recalled since the last call, by key."""
        taken, self._recalled = self._recalled, Counter[str]()
        return taken

    async def _load_candidates(self, found: Sequence[Neighbor], now: float) -> list[Candidate]:
        keys = [near.fields["key"] for near in found]
        traces, standings, approvals = await asyncio.gather(
            self._traces.load(keys), self._tiers.load_recent(keys), self._approvals.load(keys)
        )
        return [
            Candidate(
                key,
                near.score,
                near.vector,
                _add_feedback(traces.get(key, Trace()), approvals.get(key, 0)),
                standings[key].measure_presence(now) if key in standings else 0.0,
            )
            for key, near in zip(keys, found, strict=True)
        ]

    async def _read(self, key: str) -> RecordDebateRequest | None:
        """Return what is recorded under a key; None if nothing is, if it cannot be read, or is being forgotten."""
        document = await self._documents.get(DEBATES, key)
        return read_by_key([document] if document else [], from_document).get(key)


def _add_feedback(trace: Trace, value: int) -> Trace:
    return replace(trace, importance=weigh_importance(trace.importance, value)) if value else trace
