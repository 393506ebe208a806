"""Critique patterns: which kinds of issue are raised again and again in a domain, by whom, and how often they are taken up.

A pattern is a fold over debates. What a debate contributes is written first, as one document; it counts in a list from then on. The
patterns themselves count it under the debate's id once many contributions wait for that. So the same debate again changes nothing, and
a forgotten one is taken out of every pattern that counts it.
"""

import asyncio
import hashlib
import secrets
from collections.abc import Collection, Iterable, Sequence
from operator import itemgetter
from typing import Any, Final
from weakref import WeakValueDictionary

from msgspec import Struct, to_builtins
from msgspec.structs import replace

from parley.memory.debate import debate_of, storage_key
from parley.memory.embedding import Embedding, EmbeddingClient, find_held
from parley.memory.issue_kinds import (
    MAX_ISSUES,
    Part,
    add_parts,
    list_parts,
    oldest_debates,
    remove_part,
    stand_for,
    start_pattern,
)
from parley.memory.known_patterns import (
    CONTRIBUTIONS,
    PATTERN,
    PATTERNS,
    Contribution,
    KnownPattern,
    KnownPatterns,
    TenantPatterns,
    list_patterns,
    read_contribution,
    read_contributions,
)
from parley.memory.record_texts import list_issues
from parley.memory.stored_vectors import find_likeness
from parley.memory.writing import write_together
from parley.runtime.page_tokens import Place
from parley.runtime.unreadable import skip_unreadable
from parley.storage.ports import (
    Below,
    Document,
    Documents,
    DuplicateError,
    Fields,
    Order,
    StoreUnavailableError,
    Where,
)
from parley.storage.scan import find_by_keys
from parley.v1.memory_pb2 import CritiquePattern, RecordDebateRequest

MAX_PATTERNS: Final = 500
"""Of a tenant. A new one beyond takes the place of the one that the fewest debates raised, the oldest of these first."""
MAX_WAITING: Final = 64
"""Contributions of a tenant that wait until patterns count them all together: a pattern is written once for all that raised it."""
_PAGE: Final = 32
"""Patterns that are read and written together, up to 300 KB each."""
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
        issues = list_issues(record)
        # Who holds the embeddings records the debate for the first time, as far as it knows: nothing of it is looked for.
        written = None if find_held(issues[0]) else await self._find(tenant, record)
        meanings = () if written else await self._meanings.embed(*issues)
        # One after the other, so that two debates of this process do not both start the same kind.
        async with self._lock(tenant):
            known = await self._load(tenant)
            written = written or await self._contribute(tenant, record, meanings, known)
            if written:
                await self._count(tenant, [written])
            elif len(known.waiting) + 1 >= MAX_WAITING:
                await self._count(tenant, (await self._load(tenant)).waiting.values())

    async def remove(self, tenant: str, record: RecordDebateRequest) -> None:
        """Take a debate's issues out of all patterns; one that no other debate raised is deleted."""
        debate = record.debate.debate_id
        key = storage_key(tenant, debate)
        found = await self._documents.get(CONTRIBUTIONS, key)
        if found is not None:
            # First, so that who counts it meanwhile sees that, and takes it out again.
            await self._documents.update(CONTRIBUTIONS, key, {"removed": True, "waiting": None})
            # So that a pattern counts all who raised it: the oldest of them stands for it from now on.
            await self._count(tenant, (await self._known.load(tenant)).waiting.values())
        joined = [
            key for each in read_contributions([found] if found else []) for key, _ in list_patterns(each)
        ]
        # Whoever was killed while it counted the debate could not take it out again.
        counting = (await self._known.load(tenant)).list_counting(debate)
        for pattern in dict.fromkeys([*joined, *counting]):
            await self._take_out_of(tenant, pattern, debate)
        if found is not None:
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
        known = await self._known.load(tenant)
        if known.has_orphans:  # of a process that is at work on them, or was killed
            async with self._lock(tenant):
                known = await self._load(tenant)
        found = [
            each
            for each in known.kinds
            if domain in ("", each.group[0]) and (each.totals.is_successful or not only_successful)
        ]
        # A memory without patterns loads no model.
        meaning = (await self._meanings.embed(text))[0] if text and found else None
        listed = [each for each in _list(found, meaning) if (each.percent or 0.0) >= floor]
        left = sorted(
            (each for each in listed if after is None or each.place > after), key=lambda each: each.place
        )
        page = [each.to_message() for each in left[:size]]
        return page, left[size - 1].place if len(left) > size else None

    def _lock(self, tenant: str) -> asyncio.Lock:
        return self._applying.setdefault(tenant, asyncio.Lock())

    async def _load(self, tenant: str) -> TenantPatterns:
        """Return a tenant's patterns, and none of them missing to which a waiting contribution belongs."""
        known = await self._known.load(tenant)
        if known.has_orphans:
            await self._count(tenant, known.waiting.values())
            known = await self._known.load(tenant)
        return known

    async def _find(self, tenant: str, record: RecordDebateRequest) -> Contribution | None:
        """Return what was written of a debate's issues; None if that is still to be done."""
        found = await self._documents.get(CONTRIBUTIONS, storage_key(tenant, record.debate.debate_id))
        if found is None:
            return None
        if found.fields["digest"] != _digest(record):
            await self.remove(tenant, record)  # the debate was forgotten, and recorded anew with other issues
            return None
        # An earlier version did not write the domain.
        return replace(read_contribution(found), domain=record.debate.domain)

    async def _contribute(
        self, tenant: str, record: RecordDebateRequest, meanings: Sequence[Embedding], known: TenantPatterns
    ) -> Contribution | None:
        """Write what a debate contributes to these patterns, and the new ones that it starts.

        Return what another replica has written that was faster, and may have chosen other patterns.
        """
        key, concluded = storage_key(tenant, record.debate.debate_id), record.debate.concluded_at.seconds
        while True:
            parts = await asyncio.to_thread(_assign, record, meanings, known.patterns.values())
            new = Contribution(key, _new_version(), record.debate.domain, parts)
            fields = {
                "digest": _digest(record),
                "parts": to_builtins(parts),
                "concluded": concluded,
                "domain": new.domain,
                "waiting": tenant,
                "version": new.version,
            }
            try:
                await self._documents.insert(CONTRIBUTIONS, key, fields)
            except DuplicateError:
                if written := await self._find(tenant, record):
                    return written
            else:
                self._known.add(tenant, new)
                await self._start(tenant, new, known)
                return None

    async def _start(self, tenant: str, contribution: Contribution, known: TenantPatterns) -> None:
        """Create the patterns that a debate starts."""
        started = [part for key, part in list_patterns(contribution) if key not in known.versions]
        if started:
            starting = replace(contribution, parts=started)
            await self._write(tenant, [starting])
            if len(known.versions) + len(started) > MAX_PATTERNS:
                await self._make_room(tenant)
            found = await self._documents.get(CONTRIBUTIONS, contribution.key)
            if found is None or found.fields.get("removed"):
                await self._take_out(tenant, starting)

    async def _count(self, tenant: str, contributions: Collection[Contribution]) -> None:
        """Count debates in their patterns, so that their contributions wait no more."""
        await self._write(tenant, contributions)
        await self._make_room(tenant)
        counted = await write_together(*(self._settle(each) for each in contributions))
        for each, is_there in zip(contributions, counted, strict=True):
            if not is_there:
                await self._take_out(tenant, each)

    async def _settle(self, contribution: Contribution) -> bool:
        """Let a contribution wait no more; return whether it is there and is not being removed."""
        return await self._documents.update(
            CONTRIBUTIONS, contribution.key, {"waiting": None}, {"removed": None}
        )

    async def _write(self, tenant: str, contributions: Iterable[Contribution]) -> None:
        """Write patterns that count debates; create those that are not there."""
        parts = _group_by_pattern(contributions)
        keys = list(parts)
        for start in range(0, len(keys), _PAGE):
            left = keys[start : start + _PAGE]
            for _ in range(_MAX_TRIES):
                seen = {each.key: each for each in await find_by_keys(self._documents, PATTERNS, left)}
                counting = [(key, seen.get(key), parts[key]) for key in left]
                counted = await asyncio.to_thread(_count_all, tenant, counting)
                written = await write_together(*(self._put(*each) for each in counted))
                await self._known.renew(tenant, [each for each in written if each])
                left = [key for (key, _, _), each in zip(counted, written, strict=True) if each is None]
                if not left:
                    break
            else:
                raise StoreUnavailableError(_BUSY)

    async def _put(self, key: str, known: Document | None, fields: Fields) -> Document | None:
        """Write a pattern unless another replica has changed it since it was read; return it if it was written."""
        if known is not None:
            return await self._replace(known, fields)
        started = Document(key, _with_new_version(key, fields))
        try:
            await self._documents.insert(PATTERNS, key, started.fields)
        except DuplicateError:
            return None
        return started

    async def _take_out(self, tenant: str, contribution: Contribution) -> None:
        """Take a debate out of its patterns."""
        for key, _ in list_patterns(contribution):
            await self._take_out_of(tenant, key, contribution.debate)

    async def _take_out_of(self, tenant: str, key: str, debate: str) -> None:
        """Take a debate out of a pattern; delete the pattern if that leaves no debate that another issue stands for."""
        for _ in range(_MAX_TRIES):
            known = await self._documents.get(PATTERNS, key)
            if known is None:
                return
            rest = remove_part(known.fields, debate)
            if rest == known.fields and known.fields["leader"] != debate:
                return
            if known.fields["leader"] == debate or not rest["examples"]:
                led = await self._lead_anew(tenant, key, rest)
                if led is None:
                    if await self._documents.delete(PATTERNS, known.key, _if_unchanged(known)):
                        return
                    continue
                rest = led
            if await self._replace(known, rest):
                return
        raise StoreUnavailableError(_BUSY)

    async def _lead_anew(self, tenant: str, key: str, fields: Fields) -> dict[str, Any] | None:
        """Return a pattern that the issue of its oldest debate stands for; None if it has none left."""
        for debate in oldest_debates(fields):
            found = await self._documents.get(CONTRIBUTIONS, storage_key(tenant, debate))
            for each in read_contributions([found] if found else []):
                for its, part in list_patterns(each):
                    if its == key:
                        return {**add_parts(fields, {debate: part}), **stand_for(debate, part)}
        return None

    async def _replace(self, known: Document, fields: Fields) -> Document | None:
        """Write a pattern unless another replica has changed it since it was read; return it if it was written."""
        changes = {name: value for name, value in fields.items() if known.fields.get(name) != value}
        if not changes:
            return known
        changes = _with_new_version(known.key, changes)
        if await self._documents.update(PATTERNS, known.key, changes, _if_unchanged(known)):
            return Document(known.key, {**known.fields, **changes})
        return None

    async def _make_room(self, tenant: str) -> None:
        """Delete the patterns that are too many: those that the fewest debates raised, the oldest of these first."""
        known = (await self._known.load(tenant)).patterns.values()
        for each in sorted(known, key=_weigh)[: max(0, len(known) - MAX_PATTERNS)]:
            await self._documents.delete(PATTERNS, each.key, {"version": each.version})


def _digest(record: RecordDebateRequest) -> str:
    """Return what differs if a debate's issues, domain or time do."""
    said = [each.SerializeToString(deterministic=True) for each in record.issues]
    said += [record.debate.domain.encode(), str(record.debate.concluded_at.seconds).encode()]
    return hashlib.sha256(b"".join(len(each).to_bytes(4) + each for each in said)).hexdigest()


def _with_new_version(key: str, fields: Fields) -> dict[str, Any]:
    """Return fields of a pattern with a version that no other state of it has, not even one that was deleted and created anew."""
    return {**fields, "key": key, "version": _new_version()}


def _new_version() -> str:
    return secrets.token_hex(8)


def _if_unchanged(known: Document) -> Where:
    version: Any = known.fields["version"]
    return {"version": version}


def _weigh(known: KnownPattern) -> tuple[int, int, str]:
    return len(known.totals.debates), known.started, known.key


def _assign(
    record: RecordDebateRequest, meanings: Sequence[Embedding], known: Iterable[KnownPattern]
) -> list[Part]:
    group = (record.debate.domain, meanings[0].model)
    kinds = [each.kind for each in known if each.group == group]
    return list_parts(record.issues[:MAX_ISSUES], meanings, kinds, record.debate.concluded_at.seconds)


_Parts = Sequence[tuple[Contribution, Part]]


def _group_by_pattern(contributions: Iterable[Contribution]) -> dict[str, _Parts]:
    """Return the parts of contributions by the keys of their patterns."""
    parts: dict[str, list[tuple[Contribution, Part]]] = {}
    for each in contributions:
        for key, part in list_patterns(each):
            parts.setdefault(key, []).append((each, part))
    return dict(parts)


def _count_all(
    tenant: str, counting: Iterable[tuple[str, Document | None, _Parts]]
) -> list[tuple[str, Document | None, Fields]]:
    """Return patterns as they were seen, and with what they are to count; without those that cannot be read."""

    def count(pattern: tuple[str, Document | None, _Parts]) -> tuple[str, Document | None, Fields]:
        key, seen, parts = pattern
        fields = seen.fields if seen else _start_pattern(tenant, parts)
        return key, seen, add_parts(fields, {each.debate: part for each, part in parts})

    return list(skip_unreadable(counting, count, PATTERN, itemgetter(0)))


def _start_pattern(tenant: str, parts: _Parts) -> Fields:
    """Return a new pattern that the issue of the oldest of these debates stands for."""
    first, part = min(parts, key=lambda each: (each[1].tally.at, each[0].key))
    return start_pattern(tenant, first.domain, first.debate, part)


class _Listed(Struct, frozen=True):
    """A pattern in a list; `percent` is how like it is to the text, None without one."""

    pattern: KnownPattern
    percent: float | None = None

    @property
    def place(self) -> Place:
        """Its place in the list; the least comes first."""
        ranked = self.pattern.totals.raised if self.percent is None else self.percent
        return -ranked, self.pattern.kind.pattern

    def to_message(self) -> CritiquePattern:
        """Return it as it is listed."""
        return self.pattern.totals.to_message(self.pattern.kind.pattern, self.pattern.group[0], self.percent)


def _list(known: Sequence[KnownPattern], meaning: Embedding | None) -> list[_Listed]:
    """Return patterns with how like they are to a meaning."""
    if meaning is None:
        return [_Listed(each) for each in known]
    (likeness,) = find_likeness([meaning.vector], [each.kind.vector for each in known])
    return [
        _Listed(each, 100 * min(max(like, 0.0), 1.0) if each.group[1] == meaning.model else 0.0)
        for each, like in zip(known, likeness.tolist(), strict=True)
    ]


def lowest_of_related(floor: float) -> float:
    """Return the likeness in percent from which a pattern may be about a text's matter, by the floor for debates.

    An issue has fewer words of a question than a decision on it, so that it is less like it.
    """
    return floor * 2 / 3
