"""Critique patterns as they are now, of which those alone are read that have changed since they were last asked for.

A process that is alone on its store does not look for changes: it has made them all.
"""

import asyncio
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property, partial
from typing import Any, Final

from msgspec import Struct, convert, field
from msgspec.structs import replace

from parley.memory.issue_kinds import SAME_KIND, Kind, Part, read_totals
from parley.memory.stored_vectors import decode_vector, find_likeness
from parley.memory.totals import Totals, sum_up
from parley.runtime.large_texts import in_thread_if_large
from parley.runtime.unreadable import skip_unreadable
from parley.storage.ports import Collection, Document, Documents, Index, Order, Where
from parley.storage.scan import find_by_keys

CONTRIBUTIONS: Final = Collection(
    "pattern_contributions",
    (Index(("concluded",)), Index(("waiting", "version"))),
    private=("digest", "parts"),
)
"""What each debate contributes, under its key. One whose patterns may not count it yet is `waiting`: the field has its tenant."""
PATTERNS: Final = Collection(
    "patterns",
    (Index(("tenant", "version")),),
    private=("examples", "vector"),
    key_parts=1,
    superseded=(Index(("tenant",)), Index(("key",))),
)
_MAX_BYTES: Final = 32_000_000
"""Of the patterns of all tenants that are kept. The tenants that were not asked for for longest go."""
_BYTES_OF_PART: Final = 5_000
"""About what a pattern takes, or a part of a contribution, with its vector and its texts."""
_BYTES_OF_DEBATE: Final = 150
"""About what the id of a debate takes that a pattern counts."""
_CHARACTERS_OF_PATTERN: Final = 100
"""To go through a known pattern takes about as long as to read so many."""
_CHARACTERS_OF_CHANGE: Final = 2_000
"""To read one that has changed, and to compare it with the others."""
PATTERN: Final = "critique pattern"
"""The kind of an unreadable pattern in logs and metrics."""


class Contribution(Struct, frozen=True, dict=True):
    """What a debate contributes, a part for each pattern, and the version of its document."""

    key: str
    version: Any
    domain: str
    parts: list[Part]

    @property
    def debate(self) -> str:
        """The id of the debate."""
        return self.key.rpartition("/")[2]

    @cached_property
    def by_pattern(self) -> Mapping[str, Part]:
        """Its parts by the keys of their patterns."""
        tenant = self.key.rpartition("/")[0]
        return {f"{tenant}/{each.pattern}": each for each in self.parts}


class Expected(Struct, frozen=True):
    """What this process is about to write of a debate: its contribution, and the documents of the patterns that it starts."""

    contribution: Contribution
    started: Sequence[Document]


class KnownPattern(Struct, frozen=True):
    """A pattern: what it is listed and compared by.

    Attributes:
        version: Of the state that is known.
        group: Its domain and embedding model; patterns of one group alone are compared.
        started: When the debate concluded that started it, in seconds since 1970.
    """

    key: str
    version: Any
    group: tuple[str, str]
    started: int
    kind: Kind
    totals: Totals

    def add(self, debate: str, part: Part) -> "KnownPattern":
        """Return it with what a debate contributes; the same if it counts that already."""
        if debate in self.totals.debates:
            return self
        added = sum_up({debate: part.tally}, [part.create_example(debate)])
        return replace(self, totals=self.totals.join(added))


class TenantPatterns(Struct, frozen=True, dict=True):
    """The patterns of a tenant.

    Attributes:
        versions: Of all, also of those that cannot be read.
        stored: Those that can be read, by key, as they are stored.
        twins: Of each that is of one kind with others, the keys of these.
        waiting: The contributions that stored patterns may not count yet, by key.
        patterns: The stored ones with what is waiting.
        has_orphans: Whether a pattern is not there to which one of the waiting contributions belongs.
    """

    versions: Mapping[str, Any] = field(default_factory=dict)
    stored: Mapping[str, KnownPattern] = field(default_factory=dict)
    twins: Mapping[str, set[str]] = field(default_factory=dict)
    waiting: Mapping[str, Contribution] = field(default_factory=dict)
    patterns: Mapping[str, KnownPattern] = field(default_factory=dict)
    has_orphans: bool = False

    @cached_property
    def kinds(self) -> list[KnownPattern]:
        """The patterns, those that are one kind together, as the oldest of them."""
        if not self.twins:
            return list(self.patterns.values())
        alone = [each for key, each in self.patterns.items() if key not in self.twins]
        return alone + _join([self.patterns[key] for key in self.twins])

    @cached_property
    def size(self) -> int:
        """About how many bytes they take; a tenant that has none takes some, too."""
        parts = 1 + len(self.versions) + sum(1 + len(each.parts) for each in self.waiting.values())
        debates = sum(len(each.totals.debates) for each in self.stored.values())
        return _BYTES_OF_PART * parts + _BYTES_OF_DEBATE * debates

    def list_counting(self, debate: str) -> list[str]:
        """Return the keys of the stored patterns that count a debate."""
        return [key for key, each in self.stored.items() if debate in each.totals.debates]

    def add(self, contributions: Iterable[Contribution]) -> "TenantPatterns":
        """Return them with more that is waiting."""
        waiting, patterns, has_orphans = dict(self.waiting), dict(self.patterns), self.has_orphans
        for each in contributions:
            waiting[each.key] = each
            for key in each.by_pattern.keys() & patterns.keys():
                patterns[key] = patterns[key].add(each.debate, each.by_pattern[key])
            has_orphans |= not each.by_pattern.keys() <= self.versions.keys()
        return replace(self, waiting=waiting, patterns=patterns, has_orphans=has_orphans)

    def expect(self, expected: Iterable[Expected]) -> "TenantPatterns":
        """Return them with what is expected and is not among them."""
        known = self
        for each in expected:
            started = [pattern for pattern in each.started if pattern.key not in known.versions]
            known = known.renew(known.versions, started) if started else known
            if each.contribution.key not in known.waiting:
                known = known.add([each.contribution])
        return known

    def keep(self, waiting: Iterable[str]) -> "TenantPatterns":
        """Return them with only those of the waiting contributions that have these keys."""
        kept = [self.waiting[key] for key in waiting if key in self.waiting]
        if len(kept) == len(self.waiting):
            return self
        return replace(self, waiting={}, patterns=self.stored, has_orphans=False).add(kept)

    def renew(self, versions: Mapping[str, Any], changed: Sequence[Document]) -> "TenantPatterns":
        """Return the patterns of these versions: those of before that are the same, and those that have changed."""
        read = {
            each.key: each for each in skip_unreadable(changed, partial(_read_pattern, self.stored), PATTERN)
        }
        stored = {key: each for key, each in self.stored.items() if key in versions} | read
        versions = {**versions, **{each.key: each.fields["version"] for each in changed}}
        # What waits is in those that have not changed already.
        patterns = {key: read.get(key) or self.patterns[key] for key in stored}
        for each in self.waiting.values():
            for key in each.by_pattern.keys() & read.keys():
                patterns[key] = patterns[key].add(each.debate, each.by_pattern[key])
        has_orphans = any(not each.by_pattern.keys() <= versions.keys() for each in self.waiting.values())
        twins = _find_twins(self, stored)
        return TenantPatterns(versions, stored, twins, self.waiting, patterns, has_orphans)


class KnownPatterns:
    """The patterns of the tenants that were last asked for."""

    def __init__(self, documents: Documents, *, alone: bool) -> None:
        """`alone`: no other process writes to the store."""
        self._documents = documents
        self._alone = alone
        self._tenants: OrderedDict[str, TenantPatterns] = OrderedDict()
        self._current = set[str]()
        """Tenants whose patterns are known with all that was changed since they were read."""
        self._changes = 0
        self._expected: list[tuple[str, Expected]] = []

    @contextmanager
    def expect(self, tenant: str, expected: Expected) -> Iterator[None]:
        """Let a tenant's patterns have something while the block writes it, so that other debates of this process join it."""
        self._expected.append((tenant, expected))
        try:
            yield
        except BaseException:  # it may be written or not
            self._doubt(tenant)
            raise
        finally:
            self._expected.remove((tenant, expected))

    @contextmanager
    def change(self, tenant: str) -> Iterator[None]:
        """Let the block change a tenant's patterns and contributions in any way; they are looked at anew after it."""
        try:
            yield
        finally:
            self._doubt(tenant)

    async def load_expected(self, tenant: str) -> TenantPatterns:
        """Return a tenant's patterns as they will be once what this process writes is written."""
        expected = [each for its, each in self._expected if its == tenant]  # before they may be written
        return (await self.load(tenant)).expect(expected)

    async def load(self, tenant: str) -> TenantPatterns:
        """Return a tenant's patterns as they are now, without those that cannot be read."""
        if tenant not in self._current:
            changes, known = self._changes, await self._read(tenant)
            self._keep(tenant, known)
            if self._alone and changes == self._changes:
                self._current.add(tenant)
            else:  # it may lack what was written meanwhile
                self._current.discard(tenant)
            return known
        self._tenants.move_to_end(tenant)
        return self._tenants[tenant]

    async def _read(self, tenant: str) -> TenantPatterns:
        # In this order: what patterns count between the two reads is in both then, and counts once.
        waiting = await self._find_versions(CONTRIBUTIONS, {"waiting": tenant})
        versions = await self._find_versions(PATTERNS, {"tenant": tenant})
        known = self._tenants.get(tenant, _NONE)
        if versions != known.versions:
            changed = {key for key, each in versions.items() if known.versions.get(key) != each}
            read = await find_by_keys(self._documents, PATTERNS, changed)
            there = {key: version for key, version in versions.items() if key not in changed}
            known = await asyncio.to_thread(known.renew, there, read)
        same = [key for key, each in known.waiting.items() if waiting.get(key) == each.version]
        known = known.keep(same)
        if missing := waiting.keys() - set(same):
            known = known.add(read_contributions(await find_by_keys(self._documents, CONTRIBUTIONS, missing)))
        return known

    def add(self, tenant: str, written: Contribution) -> None:
        """Note what a debate contributes, as this process has written it."""
        self._changes += 1
        if known := self._tenants.get(tenant):
            self._keep(tenant, known.add([written]))

    async def renew(self, tenant: str, written: Sequence[Document]) -> None:
        """Note patterns as this process has written them: they are not read again unless another process changes them."""
        self._changes += 1
        while written and (known := self._tenants.get(tenant)):
            size = len(known.versions) * _CHARACTERS_OF_PATTERN + len(written) * _CHARACTERS_OF_CHANGE
            renewed = await in_thread_if_large(size, partial(known.renew, known.versions, written))
            if self._tenants.get(tenant) is known:  # else more was noted meanwhile
                self._keep(tenant, renewed)
                return

    async def _find_versions(self, collection: Collection, where: Where) -> dict[str, Any]:
        # In the order of the index that has the versions, so that nothing is sorted.
        heads = await self._documents.find(collection, where, order=(Order("version"),), fields=("version",))
        return {each.key: each.fields["version"] for each in heads}

    def _keep(self, tenant: str, known: TenantPatterns) -> None:
        self._tenants[tenant] = known
        self._tenants.move_to_end(tenant)
        while len(self._tenants) > 1 and sum(each.size for each in self._tenants.values()) > _MAX_BYTES:
            gone, _ = self._tenants.popitem(last=False)
            self._current.discard(gone)

    def _doubt(self, tenant: str) -> None:
        self._changes += 1
        self._current.discard(tenant)


_NONE: Final = TenantPatterns()


def read_contributions(found: Iterable[Document]) -> Iterable[Contribution]:
    """Return contributions of their documents, without those that cannot be read."""
    return skip_unreadable(found, read_contribution, "contribution to critique patterns")


def read_contribution(document: Document) -> Contribution:
    """Return a contribution of its document. Raise ValueError if it cannot be read."""
    fields: Any = document.fields
    parts = convert(fields["parts"], list[Part])
    return Contribution(document.key, fields.get("version"), str(fields.get("domain", "")), parts)


def _read_pattern(before: Mapping[str, KnownPattern], document: Document) -> KnownPattern:
    fields: Any = document.fields
    kind = Kind(document.key.rpartition("/")[2], decode_vector(fields["vector"]))
    if (known := before.get(document.key)) and known.kind.vector.tobytes() == kind.vector.tobytes():
        kind = known.kind  # so that it is not compared again
    return KnownPattern(
        key=document.key,
        version=fields["version"],
        group=(str(fields["domain"]), str(fields["model"])),
        started=int(fields["started"]),
        kind=kind,
        totals=read_totals(fields),
    )


def _find_twins(before: TenantPatterns, patterns: Mapping[str, KnownPattern]) -> dict[str, set[str]]:
    """Return the twins of patterns; those of before are not compared with each other again."""
    compared = {
        key
        for key, each in patterns.items()
        if (known := before.stored.get(key)) and (known.kind, known.group) == (each.kind, each.group)
    }
    twins = defaultdict[str, set[str]](set)
    for key in compared & before.twins.keys():
        if left := before.twins[key] & compared:
            twins[key] |= left
    for group in _group(patterns.values()):
        added = [each for each in group if each.key not in compared]
        likeness = find_likeness([each.kind.vector for each in added], [each.kind.vector for each in group])
        for one, other in zip(*(likeness >= SAME_KIND).nonzero(), strict=True):
            if added[one] is not group[other]:
                twins[added[one].key].add(group[other].key)
                twins[group[other].key].add(added[one].key)
    return dict(twins)


def _group(patterns: Iterable[KnownPattern]) -> Iterable[list[KnownPattern]]:
    """Return the patterns of each group, the oldest first."""
    groups = defaultdict[tuple[str, str], list[KnownPattern]](list)
    for each in sorted(patterns, key=lambda each: (each.started, each.key)):
        groups[each.group].append(each)
    return groups.values()


def _join(patterns: Iterable[KnownPattern]) -> list[KnownPattern]:
    """Return patterns, each with the later ones that are of one kind with it."""
    joined: list[KnownPattern] = []
    for group in _group(patterns):
        firsts: list[KnownPattern] = []
        for each in group:
            (likeness,) = find_likeness([each.kind.vector], [first.kind.vector for first in firsts])
            if firsts and likeness.max() >= SAME_KIND:
                place = int(likeness.argmax())
                firsts[place] = replace(firsts[place], totals=firsts[place].totals.join(each.totals))
            else:
                firsts.append(each)
        joined += firsts
    return joined
