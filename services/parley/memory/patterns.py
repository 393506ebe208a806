"""Critique patterns: which kinds of issue are raised again and again in a domain, by whom, and how often they are taken up.

A pattern is a fold over debates. What a debate contributes is written first, as one document; then each pattern counts it
under the debate's id. So the same debate again changes nothing, and a forgotten one is taken out of every pattern that counts it.
"""

import asyncio
import hashlib
import secrets
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from parley.memory.debate import debate_of, document_key, storage_key
from parley.memory.embedding import Embedding, EmbeddingClient
from parley.memory.issue_kinds import (
    MAX_ISSUES,
    Kind,
    add_part,
    join_twins,
    list_parts,
    oldest_debates,
    remove_part,
    shorten,
    stand_for,
    start_pattern,
    to_pattern,
)
from parley.memory.stored_vectors import decode_vector, find_likeness, to_vector
from parley.memory.writing import write_together
from parley.runtime.page_tokens import Place
from parley.runtime.unreadable import skip_unreadable
from parley.storage.ports import (
    Below,
    Collection,
    Document,
    Documents,
    DuplicateError,
    Fields,
    Index,
    Order,
    StoreUnavailableError,
    Where,
)
from parley.v1.memory_pb2 import CritiquePattern, RecordDebateRequest, RecordedIssue

CONTRIBUTIONS: Final = Collection(
    "pattern_contributions", (Index(("concluded",)),), private=("digest", "parts")
)
"""What each debate contributes, under its key."""
PATTERNS: Final = Collection("patterns", (Index(("tenant",)),), private=("examples", "vector"), key_parts=1)
MAX_PATTERNS: Final = 500
"""Of a tenant. A new one beyond takes the place of the one that the fewest debates raised, the oldest of these first."""
_MAX_TRIES: Final = 100
_BUSY: Final = "a critique pattern is changed by others again and again"
_KIND: Final = "critique pattern"


class Patterns:
    """The critique patterns of all tenants; an effect of records."""

    def __init__(self, documents: Documents, meanings: EmbeddingClient) -> None:
        self._documents = documents
        self._meanings = meanings

    async def apply(self, tenant: str, record: RecordDebateRequest) -> None:
        """Count a debate's issues in the patterns of its domain."""
        if not record.issues:
            return
        debate = record.debate
        known = await self._list(tenant)
        seen = {each.key: each for each in known}
        parts = await self._contribute(tenant, record, known)
        counted = {_pattern_key(tenant, each["pattern"]): each for each in parts}
        await write_together(
            *(
                self._add(key, tenant, debate.domain, debate.debate_id, each, seen.get(key))
                for key, each in counted.items()
            )
        )
        if len(seen.keys() | counted.keys()) > MAX_PATTERNS:
            await self._make_room(tenant)

    async def remove(self, tenant: str, record: RecordDebateRequest) -> None:
        """Take a debate's issues out of all patterns; one that no other debate raised is deleted."""
        key = storage_key(tenant, record.debate.debate_id)
        found = await self._documents.get(CONTRIBUTIONS, key)
        if found is None:
            return
        for part in _parts(found):
            await self._take_out(tenant, part["pattern"], record.debate.debate_id)
        await self._documents.delete(CONTRIBUTIONS, key)

    async def list_old(self, before: float, limit: int) -> list[tuple[str, str]]:
        """Return tenant and id of debates that are counted and concluded before a time, the oldest first."""
        where: Where = {"concluded": Below(before)}
        found = await self._documents.find(CONTRIBUTIONS, where, order=(Order("concluded"),), limit=limit)
        return [debate_of(each) for each in found]

    async def page(
        self,
        tenant: str,
        *,
        text: str,
        domain: str,
        only_successful: bool,
        after: Place | None,
        size: int,
        floor: float = 0.0,
    ) -> tuple[list[CritiquePattern], Place | None]:
        """Return a page of patterns, and the place at which it ends if there are more.

        With a text, those most like it come first, and none whose likeness is below `floor` percent; otherwise those that were raised
        most often.
        """
        documents = await self._list(tenant)
        # A memory without patterns loads no model.
        meaning = (await self._meanings.embed(text))[0] if text and documents else None
        found = await asyncio.to_thread(_read_all, documents, meaning)
        wanted = sorted(
            (
                each
                for each in found
                if domain in ("", each.domain)
                and (_is_successful(each) or not only_successful)
                and each.similarity_percent >= floor
            ),
            key=_place,
        )
        left = [each for each in wanted if after is None or _place(each) > after]
        return left[:size], _place(left[size - 1]) if len(left) > size else None

    async def _list(self, tenant: str) -> Sequence[Document]:
        return await self._documents.find(PATTERNS, {"tenant": tenant})

    async def _contribute(
        self, tenant: str, record: RecordDebateRequest, patterns: Sequence[Document]
    ) -> Sequence[Mapping[str, Any]]:
        """Return what a debate contributes to these patterns or to new ones, a part for each: what was written at first, or else it is written now."""
        key, digest = storage_key(tenant, record.debate.debate_id), _digest(record)
        while True:
            known = await self._documents.get(CONTRIBUTIONS, key)
            if known is not None and known.fields["digest"] == digest:
                return _parts(known)
            if known is not None:  # the debate was forgotten, and recorded anew with other issues
                await self.remove(tenant, record)
            parts = await self._make_parts(record, patterns)
            concluded = record.debate.concluded_at.seconds
            try:
                await self._documents.insert(
                    CONTRIBUTIONS, key, {"digest": digest, "parts": parts, "concluded": concluded}
                )
            except DuplicateError:  # another replica was faster, and may have chosen other patterns
                continue
            return parts

    async def _make_parts(
        self, record: RecordDebateRequest, patterns: Sequence[Document]
    ) -> list[dict[str, Any]]:
        issues = record.issues[:MAX_ISSUES]
        meanings = await self._meanings.embed(*(shorten(each.issue.text) for each in issues))
        return await asyncio.to_thread(_assign, record, issues, meanings, patterns)

    async def _add(
        self,
        key: str,
        tenant: str,
        domain: str,
        debate: str,
        part: Mapping[str, Any],
        seen: Document | None,
    ) -> None:
        """Count a debate in a pattern as it was seen; create the pattern if it is not there."""
        for _ in range(_MAX_TRIES):
            if seen is not None:
                if await self._replace(seen, add_part(seen.fields, debate, part)):
                    return
            else:
                fields = add_part(start_pattern(tenant, domain, debate, part), debate, part)
                with suppress(DuplicateError):  # another replica was faster
                    await self._documents.insert(PATTERNS, key, _with_new_version(fields))
                    return
            seen = await self._documents.get(PATTERNS, key)
        raise StoreUnavailableError(_BUSY)

    async def _take_out(self, tenant: str, pattern: str, debate: str) -> None:
        """Take a debate out of a pattern; delete the pattern if that leaves no debate that another issue stands for."""
        for _ in range(_MAX_TRIES):
            known = await self._documents.get(PATTERNS, _pattern_key(tenant, pattern))
            if known is None:
                return
            rest = remove_part(known.fields, debate)
            if rest == known.fields and known.fields["leader"] != debate:
                return
            if known.fields["leader"] == debate or not rest["examples"]:
                led = await self._lead_anew(tenant, pattern, rest)
                if led is None:
                    if await self._documents.delete(PATTERNS, known.key, _if_unchanged(known)):
                        return
                    continue
                rest = led
            if await self._replace(known, rest):
                return
        raise StoreUnavailableError(_BUSY)

    async def _lead_anew(self, tenant: str, pattern: str, fields: Fields) -> dict[str, Any] | None:
        """Return a pattern that the issue of its oldest debate stands for; None if it has none left."""
        for debate in oldest_debates(fields):
            found = await self._documents.get(CONTRIBUTIONS, storage_key(tenant, debate))
            for part in _parts(found) if found else ():
                if part["pattern"] == pattern:
                    return {**add_part(fields, debate, part), **stand_for(debate, part)}
        return None

    async def _replace(self, known: Document, fields: Fields) -> bool:
        """Write a pattern unless another replica has changed it since it was read; return whether it was written."""
        if fields == known.fields:
            return True
        changes = _with_new_version(fields)
        return await self._documents.update(PATTERNS, known.key, changes, _if_unchanged(known))

    async def _make_room(self, tenant: str) -> None:
        """Delete the patterns that are too many: those that the fewest debates raised, the oldest of these first."""
        found = await self._list(tenant)
        for each in sorted(found, key=_weight)[: max(0, len(found) - MAX_PATTERNS)]:
            await self._documents.delete(PATTERNS, each.key, _if_unchanged(each))


def _digest(record: RecordDebateRequest) -> str:
    """Return what differs if a debate's issues, domain or time do."""
    said = [each.SerializeToString(deterministic=True) for each in record.issues]
    said += [record.debate.domain.encode(), str(record.debate.concluded_at.seconds).encode()]
    return hashlib.sha256(b"".join(len(each).to_bytes(4) + each for each in said)).hexdigest()


def _parts(contribution: Document) -> Sequence[Mapping[str, Any]]:
    parts: Any = contribution.fields["parts"]
    return parts  # type: ignore[no-any-return]


def _pattern_key(tenant: str, pattern: str) -> str:
    return f"{tenant}/{pattern}"


def _with_new_version(fields: Fields) -> Fields:
    """Return a pattern with a version that no other state of it has, not even one that was deleted and created anew."""
    return {**fields, "version": secrets.token_hex(8)}


def _if_unchanged(known: Document) -> Where:
    version: Any = known.fields["version"]
    return {"version": version}


def _weight(document: Document) -> tuple[int, int, str]:
    fields: Any = document.fields
    return len(fields["tallies"]), fields["started"], document.key


def _read_kind(document: Document) -> Kind:
    return Kind(document.key.rpartition("/")[2], decode_vector(document.fields["vector"]))


def _assign(
    record: RecordDebateRequest,
    issues: Sequence[RecordedIssue],
    meanings: Sequence[Embedding],
    known: Sequence[Document],
) -> list[dict[str, Any]]:
    same = (record.debate.domain, meanings[0].model)
    alike = [each for each in known if (each.fields["domain"], each.fields["model"]) == same]
    kinds = list(skip_unreadable(alike, _read_kind, _KIND, document_key))
    return list_parts(issues, meanings, kinds, record.debate.concluded_at.seconds)


def _read_all(documents: Sequence[Document], meaning: Embedding | None) -> list[CritiquePattern]:
    """Return all patterns that can be read, those that are one kind together; with how like they are to a meaning."""
    alike = defaultdict[tuple[str, str], list[tuple[Kind, Fields]]](list)
    for kind, fields in skip_unreadable(sorted(documents, key=_age), _read, _KIND, document_key):
        alike[str(fields["domain"]), str(fields["model"])].append((kind, fields))
    found = [
        (kind, to_pattern(kind.pattern, fields), model)
        for (_, model), patterns in alike.items()
        for kind, fields in join_twins(patterns)
    ]
    if meaning is not None:
        vector = to_vector(meaning.vector)
        likeness = find_likeness(vector, [kind.vector for kind, _, _ in found])
        for (_, pattern, model), like in zip(found, likeness, strict=True):
            is_comparable = model == meaning.model
            pattern.similarity_percent = 100 * min(max(float(like), 0.0), 1.0) if is_comparable else 0.0
    return [pattern for _, pattern, _ in found]


def _read(document: Document) -> tuple[Kind, Fields]:
    """Return a pattern, all of which can be read."""
    kind = _read_kind(document)
    to_pattern(kind.pattern, document.fields)
    return kind, document.fields


def _age(document: Document) -> tuple[Any, str]:
    return document.fields["started"], document.key


def lowest_of_related(floor: float) -> float:
    """Return the likeness in percent from which a pattern may be about a text's matter, by the floor for debates.

    An issue has fewer words of a question than a decision on it, so that it is less like it.
    """
    return floor * 2 / 3


def _is_successful(pattern: CritiquePattern) -> bool:
    return 2 * pattern.taken_up >= pattern.raised


def _place(pattern: CritiquePattern) -> Place:
    """Return the place of a pattern in the list; the least comes first."""
    ranked = pattern.similarity_percent if pattern.HasField("similarity_percent") else pattern.raised
    return -ranked, pattern.pattern_id
