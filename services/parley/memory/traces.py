"""The trace of a debate: the little that ranking needs to know of it, so that it need not read every candidate whole.

It never changes: a debate that is forgotten is not recorded again for longer than a process keeps its trace. So one that was read or
written here is not read again. Whether its debate is still stored is found by whoever shows it.
"""

from collections.abc import Collection as Keys
from collections.abc import Sequence
from datetime import UTC
from sys import intern
from typing import Any, Final

from msgspec import Struct

from parley.memory.debate import search_text, storage_key
from parley.memory.known_debates import KEPT_SECONDS
from parley.memory.words import list_words
from parley.memory.writing import Write, put_document
from parley.runtime.clock import Clock
from parley.runtime.expiring_cache import ExpiringCache
from parley.runtime.unreadable import skip_unreadable
from parley.storage.ports import Collection, Document, Documents, Fields, Index
from parley.storage.scan import find_by_keys
from parley.v1 import voting_pb2 as voting
from parley.v1.memory_pb2 import PastDebate, RecordDebateRequest

TRACES: Final = Collection("traces", private=("words",), superseded=(Index(("key",)),))
_FIELDS: Final = ("words", "importance", "concluded")
_KIND: Final = "trace of a debate"
_STRENGTHS: Final = {
    voting.VOTE_STRENGTH_UNANIMOUS: 1.0,
    voting.VOTE_STRENGTH_STRONG: 0.8,
    voting.VOTE_STRENGTH_MODERATE: 0.6,
    voting.VOTE_STRENGTH_WEAK: 0.3,
    voting.VOTE_STRENGTH_SPLIT: 0.1,
}
_MAX_KEPT: Final = 512
"""Traces that a process keeps, some kilobytes each."""
_UNKNOWN: Final = 0.5
_MANY_SOURCES: Final = 3
"""From so many sources on, more do not make a decision more important."""


class Trace(Struct, frozen=True):
    """What ranking knows of a debate.

    Attributes:
        words: The words of its question and conclusion.
        importance: 0 to 1.
        concluded: When it concluded, in seconds of Unix time; 0: not known.
    """

    words: frozenset[str] = frozenset()
    importance: float = _UNKNOWN
    concluded: float = 0.0


class Traces:
    """The traces of all debates; a record's trace is one of its effects."""

    def __init__(self, documents: Documents, clock: Clock) -> None:
        self._documents = documents
        self._clock = clock
        self._kept = ExpiringCache[str, Trace](_MAX_KEPT)

    async def apply(self, tenant: str, record: RecordDebateRequest, write: Write) -> None:
        """Write a debate's trace, and keep it."""
        key = storage_key(tenant, record.debate.debate_id)
        written = Document(key, _to_fields(key, record.debate))
        await write(put_document(self._documents, TRACES, key, written.fields))
        self._keep(*_from_document(written))

    async def remove(self, tenant: str, record: RecordDebateRequest) -> None:
        """Delete a debate's trace, if there is one."""
        key = storage_key(tenant, record.debate.debate_id)
        await self._documents.delete(TRACES, key)
        self._kept.remove(key)  # last, since it may be read meanwhile

    async def load(self, keys: Keys[str]) -> dict[str, Trace]:
        """Return the traces of debates by their keys, without those that are missing or cannot be read."""
        kept = self._kept.get_many(keys, self._clock.monotonic())
        read = await self._read([key for key in keys if key not in kept])
        for key, trace in read.items():
            self._keep(key, trace)
        return kept | read

    def _keep(self, key: str, trace: Trace) -> None:
        self._kept.put(key, trace, self._clock.monotonic() + KEPT_SECONDS)

    async def _read(self, keys: Sequence[str]) -> dict[str, Trace]:
        found = await find_by_keys(self._documents, TRACES, keys, fields=_FIELDS)
        return dict(skip_unreadable(found, _from_document, _KIND))


def judge_importance(debate: PastDebate) -> float:
    """Return how important a decision is, 0 to 1: by its strength, its confidence and its sources."""
    strength = _STRENGTHS.get(debate.strength, _UNKNOWN)
    sure = debate.confidence
    confidence = sure.percent / 100 if sure.HasField("percent") else _UNKNOWN
    sources = min(len(debate.evidence) / _MANY_SOURCES, 1.0)
    return 0.6 * strength + 0.3 * confidence + 0.1 * sources


def _to_fields(key: str, debate: PastDebate) -> Fields:
    return {
        "key": key,
        "words": list_words(search_text(debate)),
        "importance": judge_importance(debate),
        "concluded": debate.concluded_at.ToDatetime(UTC).timestamp(),
    }


def _from_document(document: Document) -> tuple[str, Trace]:
    fields: Any = document.fields
    words = frozenset(intern(str(each)) for each in fields["words"])  # most debates share most words
    return document.key, Trace(words, float(fields["importance"]), float(fields["concluded"]))
