"""Debates remembered and recalled."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass

from parley.memory.debate import (
    DEBATES,
    KIND,
    RememberedDebate,
    document_key,
    from_document,
    storage_key,
    stored_embedding,
    to_fields,
)
from parley.memory.embedding import EmbeddingClient
from parley.memory.index import DebateIndex
from parley.runtime.unreadable import skip_unreadable
from parley.storage.ports import Document, Documents, DuplicateError

__all__ = ["DebateReusedError", "Memories", "RecalledDebate"]


class DebateReusedError(Exception):
    """Other content is recorded for this debate."""


@dataclass(frozen=True, slots=True)
class RecalledDebate:
    """A debate and how like it is to what was asked for, 0 to 1."""

    debate: RememberedDebate
    likeness: float


class Memories:
    """The debates of all tenants: content in documents, meaning in the index."""

    def __init__(self, documents: Documents, index: DebateIndex, meanings: EmbeddingClient) -> None:
        self._documents = documents
        self._index = index
        self._embedding_client = meanings

    async def record(self, tenant: str, debate: RememberedDebate) -> bool:
        """Remember a debate and return whether it was there before; it is durable and can be recalled from now on.

        Raises:
            DebateReusedError: other content is recorded for it.
            ParleyError: the convergence service does not answer.
            StorageError: a store failed.
        """
        key = storage_key(tenant, debate.debate_id)
        known = await self._documents.get(DEBATES, key)
        if known is None:
            (meaning,) = await self._embedding_client.embed(debate.text)
            document = Document(key, to_fields(tenant, debate, meaning))
            try:
                await self._documents.insert(DEBATES, key, document.fields)
            except DuplicateError:
                known = await self._documents.get(DEBATES, key)
            else:
                await self._index.add(document, meaning)
                return False
        if known is None or from_document(known) != debate:
            raise DebateReusedError(debate.debate_id)
        # The call before may have ended between the document and the index.
        await self._index.add(known, stored_embedding(known))
        return True

    async def forget(self, tenant: str, debate_id: str) -> bool:
        """Forget a debate and return whether it was remembered; nothing of it is left then.

        Raises:
            StorageError: a store failed; what is left is removed when it is forgotten again.
        """
        key = storage_key(tenant, debate_id)
        document = await self._documents.get(DEBATES, key)
        if document is None:
            return False
        # The vector first: what it belongs to tells which index it is in.
        await self._index.remove(document)
        return await self._documents.delete(DEBATES, key)

    async def recall(
        self, tenant: str, text: str, *, domain: str, excluded: Sequence[str], limit: int, floor: float
    ) -> AsyncIterator[RecalledDebate]:
        """Recall the debates most like a text, best first; errors as with `record`."""
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
            for debate in skip_unreadable([document] if document else [], from_document, KIND, document_key):
                yield RecalledDebate(debate, min(max(near.score, 0.0), 1.0))
