"""The meanings of the questions of stands: of a debate that was looked at before they are not read again."""

import asyncio
from collections import OrderedDict
from collections.abc import Sequence
from typing import Final

from parley.memory.debate import document_key
from parley.memory.stands import KIND, POSITIONS, StandHead
from parley.memory.stored_vectors import Matrix, decode_vector
from parley.runtime.unreadable import skip_unreadable
from parley.storage.ports import Document, Documents, OneOf

_MAX_KNOWN: Final = 2_000
"""Debates whose question is known, two kilobytes each; those that were not asked for for longest go."""


class KnownQuestions:
    """The vectors of the questions of all tenants' debates that were last asked for."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._vectors: OrderedDict[tuple[str, str, str], Matrix] = OrderedDict()

    async def load(self, heads: Sequence[Document]) -> dict[str, Matrix]:
        """Return the vectors of stands by their keys, without those that cannot be read; `heads` have the fields `HEAD_FIELDS`."""
        debates = {each.key: _debate_of(each) for each in heads}
        unknown = [key for key, debate in debates.items() if debate not in self._vectors]
        read: dict[str, Matrix] = {}
        if unknown:
            found = await self._documents.find(
                POSITIONS, {"key": OneOf(tuple(unknown))}, limit=len(unknown), fields=("vector",)
            )
            read = await asyncio.to_thread(_read, found)
        for key, vector in read.items():
            self._vectors[debates[key]] = vector
        vectors = {key: self._vectors[debate] for key, debate in debates.items() if debate in self._vectors}
        for debate in debates.values():
            if debate in self._vectors:
                self._vectors.move_to_end(debate)
        while len(self._vectors) > _MAX_KNOWN:
            self._vectors.popitem(last=False)
        return vectors

    def put(self, stand: StandHead) -> None:
        """Keep the vector of a debate's question as it is recorded."""
        self._vectors[stand.debate_key, str(stand.concluded), stand.model] = stand.vector


def _debate_of(head: Document) -> tuple[str, str, str]:
    """Return which debate a stand is of, when that concluded, and the model of its vector: recorded anew, it is another one."""
    return head.key.rpartition("/")[0], str(head.fields["concluded"]), str(head.fields["model"])


def _read(found: Sequence[Document]) -> dict[str, Matrix]:
    return dict(
        skip_unreadable(
            found, lambda each: (each.key, decode_vector(each.fields["vector"])), KIND, document_key
        )
    )
