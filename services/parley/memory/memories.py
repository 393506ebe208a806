"""The recording, deletion and recall of debates."""

from collections.abc import AsyncIterator, Sequence

from parley.memory.debate import (
    DEBATES,
    FORGETTING,
    KIND,
    RECORDING,
    document_key,
    from_document,
    is_forgetting,
    search_text,
    storage_key,
    to_fields,
)
from parley.memory.embedding import EmbeddingClient
from parley.memory.index import DebateIndex
from parley.memory.outbox import Outbox
from parley.runtime.unreadable import skip_unreadable
from parley.storage.ports import Document, Documents, DuplicateError
from parley.v1.memory_pb2 import PastDebate, RecordDebateRequest


class DebateReusedError(Exception):
    """This debate is already recorded with other content."""


class Memories:
    """The debates of all tenants: content in documents, vectors in the index, and what else follows from them in effects."""

    def __init__(
        self, documents: Documents, index: DebateIndex, meanings: EmbeddingClient, outbox: Outbox
    ) -> None:
        self._documents = documents
        self._index = index
        self._embedding_client = meanings
        self._outbox = outbox

    async def record(self, tenant: str, record: RecordDebateRequest) -> bool:
        """Record a debate and return whether it was recorded before; it is durable and can be recalled from now on.

        Raises:
            DebateReusedError: it is already recorded with other content.
            ParleyError: the convergence service does not answer.
            StorageError: a store failed.
        """
        key = storage_key(tenant, record.debate.debate_id)
        while True:
            known = await self._documents.get(DEBATES, key)
            if known is not None and is_forgetting(known):
                await self._outbox.finish(known)
            elif known is not None:
                await self._confirm(known, record)
                return True
            elif await self._insert(tenant, record):
                return False

    async def _confirm(self, known: Document, record: RecordDebateRequest) -> None:
        """Finish a record that an earlier call may have left unfinished."""
        if from_document(known) != record:
            raise DebateReusedError(record.debate.debate_id)
        if known.fields.get("unfinished"):
            await self._outbox.finish(known)

    async def _insert(self, tenant: str, record: RecordDebateRequest) -> bool:
        (meaning,) = await self._embedding_client.embed(search_text(record.debate))
        fields = {**to_fields(tenant, record, meaning), "unfinished": RECORDING}
        document = Document(storage_key(tenant, record.debate.debate_id), fields)
        try:
            await self._documents.insert(DEBATES, document.key, fields)
        except DuplicateError:  # another replica was faster
            return False
        await self._outbox.finish(document)
        return True

    async def forget(self, tenant: str, debate_id: str) -> bool:
        """Delete a debate and return whether it was recorded; nothing of it is left then.

        Raise StorageError or ParleyError if a part of it cannot be deleted now: it is not recalled any more, and deleted later.
        """
        key = storage_key(tenant, debate_id)
        if not await self._documents.update(DEBATES, key, {"unfinished": FORGETTING}):
            return False
        marked = await self._documents.get(DEBATES, key)
        if marked is not None:
            await self._outbox.finish(marked)
        return True

    async def recall(
        self, tenant: str, text: str, *, domain: str, excluded: Sequence[str], limit: int, floor: float
    ) -> AsyncIterator[PastDebate]:
        """Yield the debates that are most similar to a text, best first; errors as with `record`."""
        (meaning,) = await self._embedding_client.embed(text)
        found = await self._index.nearest(
            meaning,
            tenant=tenant,
            domain=domain,
            excluded=[storage_key(tenant, debate_id) for debate_id in excluded],
            limit=limit,
            floor=floor,
        )
        for near in found:
            document = await self._documents.get(DEBATES, near.fields["key"])
            readable = [document] if document and not is_forgetting(document) else []
            for record in skip_unreadable(readable, from_document, KIND, document_key):
                record.debate.relevance.similarity_percent = 100 * min(max(near.score, 0.0), 1.0)
                yield record.debate
