"""The recording, deletion and recall of debates."""

from collections.abc import AsyncIterator, Sequence

from parley.memory.debate import (
    DEBATES,
    KIND,
    document_key,
    from_document,
    search_text,
    storage_key,
    stored_embedding,
    to_fields,
)
from parley.memory.embedding import EmbeddingClient
from parley.memory.index import DebateIndex
from parley.runtime.unreadable import skip_unreadable
from parley.storage.ports import Document, Documents, DuplicateError
from parley.v1.memory_pb2 import PastDebate, RecordDebateRequest


class DebateReusedError(Exception):
    """This debate is already recorded with other content."""


class Memories:
    """The debates of all tenants: content in documents, vectors in the index."""

    def __init__(self, documents: Documents, index: DebateIndex, meanings: EmbeddingClient) -> None:
        self._documents = documents
        self._index = index
        self._embedding_client = meanings

    async def record(self, tenant: str, record: RecordDebateRequest) -> bool:
        """Record a debate and return whether it was recorded before; it is durable and can be recalled from now on.

        Raises:
            DebateReusedError: it is already recorded with other content.
            ParleyError: the convergence service does not answer.
            StorageError: a store failed.
        """
        key = storage_key(tenant, record.debate.debate_id)
        known = await self._documents.get(DEBATES, key)
        if known is None:
            (meaning,) = await self._embedding_client.embed(search_text(record.debate))
            document = Document(key, to_fields(tenant, record, meaning))
            try:
                await self._documents.insert(DEBATES, key, document.fields)
            except DuplicateError:
                known = await self._documents.get(DEBATES, key)
            else:
                await self._index.add(document, meaning)
                return False
        if known is None or from_document(known) != record:
            raise DebateReusedError(record.debate.debate_id)
        # An earlier call may have ended between the document and the index.
        await self._index.add(known, stored_embedding(known))
        return True

    async def forget(self, tenant: str, debate_id: str) -> bool:
        """Delete a debate and return whether it was recorded; nothing of it is left then.

        Raise StorageError if a store failed; another call deletes the rest.
        """
        key = storage_key(tenant, debate_id)
        document = await self._documents.get(DEBATES, key)
        if document is None:
            return False
        # The vector first: the document tells in which index it is.
        await self._index.remove(document)
        return await self._documents.delete(DEBATES, key)

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
            for record in skip_unreadable([document] if document else [], from_document, KIND, document_key):
                record.debate.relevance.similarity_percent = 100 * min(max(near.score, 0.0), 1.0)
                yield record.debate
