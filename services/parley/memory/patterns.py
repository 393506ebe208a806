"""Critique patterns: which kinds of issue are raised again and again in a domain, by whom, and how often they are taken up.

A pattern is a fold over debates. What a debate contributes is written as one document, together with the patterns that it starts; it
counts in a list from then on. The other patterns count it under the debate's id once many contributions wait for that. So the same
debate again changes nothing, and a forgotten one is taken out of every pattern that counts it.

A contribution and the patterns that it starts need no order: where one is there without the other, whoever finds it makes up for it.
"""

import asyncio
import hashlib
import secrets
from collections.abc import Collection, Iterable, Sequence
from contextlib import ExitStack
from functools import partial
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
    Expected,
    KnownPattern,
    KnownPatterns,
    TenantPatterns,
    read_contribution,
    read_contributions,
)
from parley.memory.record_texts import list_issues
from parley.memory.stored_vectors import find_likeness
from parley.memory.writing import Write, write_together
from parley.runtime.large_texts import in_thread_if_large
from parley.runtime.page_tokens import Place
from parley.runtime.unreadable import skip_unreadable
from parley.storage import ports
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
_CHARACTERS_TO_COMPARE: Final = 10
"""To compare an issue with a pattern takes about as long as to read so many."""
_CHARACTERS_OF_ISSUE: Final = 1_000
"""To make a part of a contribution of an issue."""
_MAX_TRIES: Final = 100
_BUSY: Final = "a critique pattern is changed by others again and again"


class Patterns:
    """The critique patterns of all tenants; an effect of records."""

    def __init__(self, documents: Documents, meanings: EmbeddingClient, *, alone: bool) -> None:
        """`alone`: no other process writes to the store, so that what is known of it need not be read."""
        self._documents = documents
        self._meanings = meanings
        self._known = KnownPatterns(documents, alone=alone)
        self._applying = WeakValueDictionary[str, asyncio.Lock]()

    async def apply(self, tenant: str, record: RecordDebateRequest, write: Write) -> None:
        """Count a debate's issues in the patterns of its domain."""
        if not record.issues:
            return
        issues, written = list_issues(record), None
        # Who holds the embeddings records the debate for the first time, as far as it knows: nothing of it is looked for.
        if not find_held(issues[0]):
            written = await self._find(tenant, record)
        if written is None:
            written = await self._contribute(tenant, record, await self._meanings.embed(*issues), write)
        if written:
            async with self._lock(tenant):
                await self._count(tenant, [written])

    async def remove(self, tenant: str, record: RecordDebateRequest) -> None:
        """Take a debate's issues out of all patterns; one that no other debate raised is deleted."""
        debate = record.debate.debate_id
        key = storage_key(tenant, debate)
        found = await self._documents.get(CONTRIBUTIONS, key)
        if found is not None:
            # First, so that who counts it meanwhile sees that, and takes it out again.
            with self._known.change(tenant):
                await self._documents.update(CONTRIBUTIONS, key, {"removed": True, "waiting": None})
            # So that a pattern counts all who raised it: the oldest of them stands for it from now on.
            await self._count(tenant, (await self._known.load(tenant)).waiting.values())
        for each in read_contributions([found] if found else []):
            await self._take_out(tenant, each)
        await self._take_out_remains(tenant, debate)
        if found is not None:
            await self._documents.delete(CONTRIBUTIONS, key)

    async def list_old(self, before: float, limit: int) -> list[tuple[str, str]]:
        """Return tenant and id of debates that are counted and concluded before a time, the oldest first."""
        where: Where = {"concluded": Below(before)}
        found = await self._documents.find(CONTRIBUTIONS, where, order=(Order("concluded"),), limit=limit)
        return [debate_of(each) for each in found]

    async def list_page(
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
        """Return a tenant's patterns as they are expected to be, and none of them missing to which a waiting contribution belongs."""
        known = await self._known.load_expected(tenant)
        if known.has_orphans:
            await self._count(tenant, (await self._known.load(tenant)).waiting.values())
            known = await self._known.load_expected(tenant)
        return known

    async def _find(self, tenant: str, record: RecordDebateRequest) -> Contribution | None:
        """Return what was written of a debate's issues; None if that is still to be done."""
        found = await self._documents.get(CONTRIBUTIONS, storage_key(tenant, record.debate.debate_id))
        if found is None:
            await self._take_out_remains(tenant, record.debate.debate_id)
            return None
        if found.fields["digest"] != _digest(record):
            await self.remove(tenant, record)  # the debate was forgotten, and recorded anew with other issues
            return None
        # An earlier version did not write the domain.
        return replace(read_contribution(found), domain=record.debate.domain)

    async def _contribute(
        self, tenant: str, record: RecordDebateRequest, meanings: Sequence[Embedding], write: Write
    ) -> Contribution | None:
        """Write what a debate contributes, and the patterns that it starts.

        Return what another replica has written that was faster, and may have chosen other patterns.
        """
        while True:
            with ExitStack() as held:
                # One after the other, so that two debates of this process do not both start the same kind.
                async with self._lock(tenant):
                    known = await self._load(tenant)
                    size = len(meanings) * (
                        len(known.patterns) * _CHARACTERS_TO_COMPARE + _CHARACTERS_OF_ISSUE
                    )
                    plan = partial(_plan, tenant, record, meanings, known)
                    expected = await in_thread_if_large(size, plan)
                    held.enter_context(self._known.expect(tenant, expected))
                is_first = await self._write_expected(tenant, record, expected, write)
            if is_first:
                if len(known.versions) + len(expected.started) > MAX_PATTERNS:
                    await self._make_room(tenant)
                if len(known.waiting) + 1 >= MAX_WAITING:
                    await self._count_waiting(tenant)
                return None
            for each in expected.started:
                await self._take_out_of(tenant, each.key, expected.contribution.debate)
            if written := await self._find(tenant, record):
                return written

    async def _write_expected(
        self, tenant: str, record: RecordDebateRequest, expected: Expected, write: Write
    ) -> bool:
        """Write a contribution and the patterns that it starts; return whether there was no contribution of the debate."""
        new = expected.contribution
        fields: Fields = {
            "digest": _digest(record),
            "parts": to_builtins(new.parts),
            "concluded": record.debate.concluded_at.seconds,
            "domain": new.domain,
            "waiting": tenant,
            "version": new.version,
        }
        contributed, *started = await write(
            self._create(CONTRIBUTIONS, new.key, fields),
            *(self._create(PATTERNS, each.key, each.fields) for each in expected.started),
        )
        if contributed is None:
            return False
        self._known.add(tenant, new)
        await self._known.renew(tenant, [each for each in started if each])
        if expected.started:
            found = await self._documents.get(CONTRIBUTIONS, new.key)
            if found is None or found.fields.get("removed"):
                await self._take_out(tenant, new)
        return True

    async def _count_waiting(self, tenant: str) -> None:
        async with self._lock(tenant):
            waiting = (await self._known.load(tenant)).waiting.values()
            if len(waiting) >= MAX_WAITING:  # nobody else has counted them
                await self._count(tenant, waiting)

    async def _count(self, tenant: str, contributions: Collection[Contribution]) -> None:
        """Count debates in their patterns, so that their contributions wait no more."""
        with self._known.change(tenant):
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
        return await self._create(PATTERNS, key, _with_new_version(key, fields))

    async def _create(self, collection: ports.Collection, key: str, fields: Fields) -> Document | None:
        """Insert a document and return it; None if one is there."""
        try:
            await self._documents.insert(collection, key, fields)
        except DuplicateError:
            return None
        return Document(key, fields)

    async def _take_out(self, tenant: str, contribution: Contribution) -> None:
        """Take a debate out of its patterns."""
        for key in contribution.by_pattern:
            await self._take_out_of(tenant, key, contribution.debate)

    async def _take_out_remains(self, tenant: str, debate: str) -> None:
        """Take a debate out of what counts it: patterns that whoever was killed had started without its contribution, or could not take it out of again."""
        for key in (await self._known.load(tenant)).list_counting(debate):
            await self._take_out_of(tenant, key, debate)

    async def _take_out_of(self, tenant: str, key: str, debate: str) -> None:
        """Take a debate out of a pattern; delete the pattern if that leaves no debate that another issue stands for."""
        with self._known.change(tenant):
            for _ in range(_MAX_TRIES):
                known = await self._documents.get(PATTERNS, key)
                if known is None or await self._write_without(tenant, known, debate):
                    return
        raise StoreUnavailableError(_BUSY)

    async def _write_without(self, tenant: str, known: Document, debate: str) -> bool:
        """Write a pattern without a debate, or delete it; return False if it was changed since it was read."""
        rest = remove_part(known.fields, debate)
        if rest == known.fields and known.fields["leader"] != debate:
            return True
        if known.fields["leader"] == debate or not rest["examples"]:
            led = await self._lead_anew(tenant, known.key, rest)
            if led is None:
                return await self._documents.delete(PATTERNS, known.key, _require_unchanged(known))
            rest = led
        return await self._replace(known, rest) is not None

    async def _lead_anew(self, tenant: str, key: str, fields: Fields) -> dict[str, Any] | None:
        """Return a pattern that the issue of its oldest debate stands for; None if it has none left."""
        for debate in oldest_debates(fields):
            found = await self._documents.get(CONTRIBUTIONS, storage_key(tenant, debate))
            for each in read_contributions([found] if found else []):
                if part := each.by_pattern.get(key):
                    return {**add_parts(fields, {debate: part}), **stand_for(debate, part)}
        return None

    async def _replace(self, known: Document, fields: Fields) -> Document | None:
        """Write a pattern unless another replica has changed it since it was read; return it if it was written."""
        changes = {name: value for name, value in fields.items() if known.fields.get(name) != value}
        if not changes:
            return known
        changes = _with_new_version(known.key, changes)
        if await self._documents.update(PATTERNS, known.key, changes, _require_unchanged(known)):
            return Document(known.key, {**known.fields, **changes})
        return None

    async def _make_room(self, tenant: str) -> None:
        """Delete the patterns that are too many: those that the fewest debates raised, the oldest of these first."""
        known = (await self._known.load(tenant)).patterns.values()
        with self._known.change(tenant):
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


def _require_unchanged(known: Document) -> Where:
    version: Any = known.fields["version"]
    return {"version": version}


def _weigh(known: KnownPattern) -> tuple[int, int, str]:
    return len(known.totals.debates), known.started, known.key


def _plan(
    tenant: str, record: RecordDebateRequest, meanings: Sequence[Embedding], known: TenantPatterns
) -> Expected:
    """Return what a debate contributes to these patterns, and the new ones that it starts."""
    debate, group = record.debate, (record.debate.domain, meanings[0].model)
    kinds = [each.kind for each in known.patterns.values() if each.group == group]
    parts = list_parts(record.issues[:MAX_ISSUES], meanings, kinds, debate.concluded_at.seconds)
    new = Contribution(storage_key(tenant, debate.debate_id), _new_version(), debate.domain, parts)
    starting = [
        (key, None, [(new, part)]) for key, part in new.by_pattern.items() if key not in known.versions
    ]
    started = _count_all(tenant, starting)
    return Expected(new, [Document(key, _with_new_version(key, fields)) for key, _, fields in started])


_Parts = Sequence[tuple[Contribution, Part]]


def _group_by_pattern(contributions: Iterable[Contribution]) -> dict[str, _Parts]:
    """Return the parts of contributions by the keys of their patterns."""
    parts: dict[str, list[tuple[Contribution, Part]]] = {}
    for each in contributions:
        for key, part in each.by_pattern.items():
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
