"""Critique patterns: which kinds of issue are raised again and again in a domain, by whom, and how often they are taken up.

A pattern is a fold over debates. What a debate contributes is written first, as one document; then each pattern counts it
under the debate's id. So the same debate again changes nothing, and a forgotten one is taken out of every pattern that counts it.
"""

import asyncio
import hashlib
import secrets
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any, Final
from weakref import WeakValueDictionary

from msgspec import Struct

from parley.memory.debate import debate_of, storage_key
from parley.memory.embedding import Embedding, EmbeddingClient
from parley.memory.issue_kinds import (
    MAX_ISSUES,
    add_part,
    list_parts,
    oldest_debates,
    remove_part,
    stand_for,
    start_pattern,
)
from parley.memory.known_patterns import PATTERNS, KnownPattern, KnownPatterns
from parley.memory.record_texts import list_issues
from parley.memory.stored_vectors import find_likeness
from parley.memory.writing import write_together
from parley.runtime.page_tokens import Place
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
from parley.v1.memory_pb2 import CritiquePattern, PastDebate, RecordDebateRequest

CONTRIBUTIONS: Final = Collection(
    "pattern_contributions", (Index(("concluded",)),), private=("digest", "parts")
)
"""What each debate contributes, under its key."""
MAX_PATTERNS: Final = 500
"""Of a tenant. A new one beyond takes the place of the one that the fewest debates raised, the oldest of these first."""
_MAX_TRIES: Final = 100
_BUSY: Final = "a critique pattern is changed by others again and again"


class Patterns:
    """The critique patterns of all tenants; an effect of records."""

    def __init__(self, documents: Documents, meanings: EmbeddingClient) -> None:
        self._documents = documents
        self._meanings = meanings
        self._known = KnownPatterns(documents)
        self._applying = WeakValueDictionary[str, asyncio.Lock]()

    async def apply(self, tenant: str, record: RecordDebateRequest) -> None:
        """Count a debate's issues in the patterns of its domain."""
        if not record.issues:
            return
        parts = await self._find_parts(tenant, record)
        meanings = () if parts else await self._meanings.embed(*list_issues(record))
        # One after the other, so that two debates of this process do not both start the same kind.
        async with self._applying.setdefault(tenant, asyncio.Lock()):
            known = await self._known.load(tenant)
            parts = parts or await self._contribute(tenant, record, meanings, known)
            await self._count(tenant, record.debate, parts, {each.key: each.version for each in known})
        await self._take_out_if_removed(tenant, record.debate.debate_id, parts)

    async def remove(self, tenant: str, record: RecordDebateRequest) -> None:
        """Take a debate's issues out of all patterns; one that no other debate raised is deleted."""
        key = storage_key(tenant, record.debate.debate_id)
        found = await self._documents.get(CONTRIBUTIONS, key)
        if found is None:
            return
        # First, so that who counts it meanwhile sees that, and takes it out again.
        await self._documents.update(CONTRIBUTIONS, key, {"removed": True})
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
        known = await self._known.load_kinds(tenant)
        # A memory without patterns loads no model.
        meaning = (await self._meanings.embed(text))[0] if text and known else None
        listed = [
            each
            for each in _list(known, meaning)
            if domain in ("", each.pattern.domain)
            and (_is_successful(each.pattern) or not only_successful)
            and (each.percent or 0.0) >= floor
        ]
        left = sorted(
            (each for each in listed if after is None or each.place > after), key=lambda each: each.place
        )
        page = [each.to_message() for each in left[:size]]
        return page, left[size - 1].place if len(left) > size else None

    async def _find_parts(self, tenant: str, record: RecordDebateRequest) -> Sequence[Mapping[str, Any]]:
        """Return what was written of a debate's issues; nothing if that is still to be done."""
        known = await self._documents.get(CONTRIBUTIONS, storage_key(tenant, record.debate.debate_id))
        if known is None or known.fields["digest"] == _digest(record):
            return _parts(known) if known else ()
        await self.remove(tenant, record)  # the debate was forgotten, and recorded anew with other issues
        return ()

    async def _contribute(
        self,
        tenant: str,
        record: RecordDebateRequest,
        meanings: Sequence[Embedding],
        known: Sequence[KnownPattern],
    ) -> Sequence[Mapping[str, Any]]:
        """Write what a debate contributes to these patterns or to new ones. Return what is written then, a part for each."""
        key, concluded = storage_key(tenant, record.debate.debate_id), record.debate.concluded_at.seconds
        while True:
            parts = await asyncio.to_thread(_assign, record, meanings, known)
            try:
                await self._documents.insert(
                    CONTRIBUTIONS, key, {"digest": _digest(record), "parts": parts, "concluded": concluded}
                )
            except DuplicateError:  # another replica was faster, and may have chosen other patterns
                if written := await self._find_parts(tenant, record):
                    return written
            else:
                return parts

    async def _count(
        self, tenant: str, debate: PastDebate, parts: Sequence[Mapping[str, Any]], known: Mapping[str, Any]
    ) -> None:
        """Count a debate in its patterns; `known` are the versions of those that are there, by key."""
        counted = {_pattern_key(tenant, each["pattern"]): each for each in parts}
        there = {key: known[key] for key in counted if key in known}
        seen = {each.key: each for each in await self._known.read(tenant, there)}
        await write_together(
            *(
                self._add(key, tenant, debate.domain, debate.debate_id, each, seen.get(key))
                for key, each in counted.items()
            )
        )
        if len(known.keys() | counted.keys()) > MAX_PATTERNS:
            await self._make_room(tenant)

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
                started = Document(key, _with_new_version(key, fields))
                with suppress(DuplicateError):  # another replica was faster
                    await self._documents.insert(PATTERNS, key, started.fields)
                    self._known.put(started)
                    return
            seen = await self._documents.get(PATTERNS, key)
        raise StoreUnavailableError(_BUSY)

    async def _take_out_if_removed(
        self, tenant: str, debate: str, parts: Sequence[Mapping[str, Any]]
    ) -> None:
        """Take a debate out of the patterns that counted it while it was removed."""
        found = await self._documents.get(CONTRIBUTIONS, storage_key(tenant, debate))
        kept = (
            {each["pattern"] for each in _parts(found)} if found and not found.fields.get("removed") else ()
        )
        for part in parts:
            if part["pattern"] not in kept:
                await self._take_out(tenant, part["pattern"], debate)

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
        changes = {name: value for name, value in fields.items() if known.fields.get(name) != value}
        if not changes:
            return True
        changes = _with_new_version(known.key, changes)
        is_written = await self._documents.update(PATTERNS, known.key, changes, _if_unchanged(known))
        if is_written:
            self._known.put(Document(known.key, {**known.fields, **changes}))
        return is_written

    async def _make_room(self, tenant: str) -> None:
        """Delete the patterns that are too many: those that the fewest debates raised, the oldest of these first."""
        known = await self._known.load(tenant)
        for each in sorted(known, key=_weight)[: max(0, len(known) - MAX_PATTERNS)]:
            await self._documents.delete(PATTERNS, each.key, {"version": each.version})


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


def _with_new_version(key: str, fields: Fields) -> dict[str, Any]:
    """Return fields of a pattern with a version that no other state of it has, not even one that was deleted and created anew."""
    return {**fields, "key": key, "version": secrets.token_hex(8)}


def _if_unchanged(known: Document) -> Where:
    version: Any = known.fields["version"]
    return {"version": version}


def _weight(known: KnownPattern) -> tuple[int, int, str]:
    return known.listed.debates, known.started, known.key


def _assign(
    record: RecordDebateRequest, meanings: Sequence[Embedding], known: Sequence[KnownPattern]
) -> list[dict[str, Any]]:
    group = (record.debate.domain, meanings[0].model)
    kinds = [each.kind for each in known if each.group == group]
    return list_parts(record.issues[:MAX_ISSUES], meanings, kinds, record.debate.concluded_at.seconds)


class _Listed(Struct, frozen=True):
    """A pattern in a list; `percent` is how like it is to the text, None without one."""

    pattern: CritiquePattern
    percent: float | None = None

    @property
    def place(self) -> Place:
        """Its place in the list; the least comes first."""
        ranked = self.pattern.raised if self.percent is None else self.percent
        return -ranked, self.pattern.pattern_id

    def to_message(self) -> CritiquePattern:
        """Return it as it is listed; the pattern itself stays as it is."""
        if self.percent is None:
            return self.pattern
        listed = CritiquePattern(similarity_percent=self.percent)
        listed.MergeFrom(self.pattern)
        return listed


def _list(known: Sequence[KnownPattern], meaning: Embedding | None) -> list[_Listed]:
    """Return patterns with how like they are to a meaning."""
    if meaning is None:
        return [_Listed(each.listed) for each in known]
    (likeness,) = find_likeness([meaning.vector], [each.kind.vector for each in known])
    return [
        _Listed(each.listed, 100 * min(max(like, 0.0), 1.0) if each.group[1] == meaning.model else 0.0)
        for each, like in zip(known, likeness.tolist(), strict=True)
    ]


def lowest_of_related(floor: float) -> float:
    """Return the likeness in percent from which a pattern may be about a text's matter, by the floor for debates.

    An issue has fewer words of a question than a decision on it, so that it is less like it.
    """
    return floor * 2 / 3


def _is_successful(pattern: CritiquePattern) -> bool:
    return 2 * pattern.taken_up >= pattern.raised
