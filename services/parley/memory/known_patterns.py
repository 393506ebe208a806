"""Critique patterns as they are now, of which those alone are read that have changed since they were last asked for."""

import asyncio
from collections import OrderedDict, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec import Struct, field
from msgspec.structs import replace

from parley.memory.debate import document_key
from parley.memory.issue_kinds import SAME_KIND, Kind, join_twins, to_pattern
from parley.memory.stored_vectors import decode_vector, find_likeness
from parley.runtime.unreadable import skip_unreadable
from parley.storage.ports import Collection, Document, Documents, Index, Order
from parley.storage.scan import find_by_keys
from parley.v1.memory_pb2 import CritiquePattern

PATTERNS: Final = Collection(
    "patterns",
    (Index(("tenant", "version")),),
    private=("examples", "vector"),
    key_parts=1,
    superseded=(Index(("tenant",)), Index(("key",))),
)
_MAX_KNOWN: Final = 2_000
"""Patterns of all tenants that are kept, some kilobytes each. The tenants that were not asked for for longest go."""
_FEW: Final = 32
"""Patterns that are read by their keys; of more, all of the tenant are read."""
_MAX_WRITTEN: Final = 32
"""Whole patterns that are kept, up to 300 KB each."""
_NAME: Final = "critique pattern"


class KnownPattern(Struct, frozen=True):
    """A pattern: how it is listed, and what it is compared by.

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
    listed: CritiquePattern


class _Tenant(Struct, frozen=True):
    """The patterns of a tenant.

    Attributes:
        versions: Of all, also of those that cannot be read.
        patterns: Those that can be read, by key.
        twins: Of each that is of one kind with others, the keys of these.
    """

    versions: Mapping[str, Any] = field(default_factory=dict)
    patterns: Mapping[str, KnownPattern] = field(default_factory=dict)
    twins: Mapping[str, set[str]] = field(default_factory=dict)


class KnownPatterns:
    """The patterns of the tenants that were last asked for."""

    def __init__(self, documents: Documents) -> None:
        self._documents = documents
        self._tenants: OrderedDict[str, _Tenant] = OrderedDict()
        self._written: OrderedDict[str, Document] = OrderedDict()

    async def load(self, tenant: str) -> list[KnownPattern]:
        """Return a tenant's patterns as they are now, without those that cannot be read."""
        return list((await self._renew(tenant)).patterns.values())

    async def load_kinds(self, tenant: str) -> list[KnownPattern]:
        """Return them as `load` does, those that are one kind together, as the oldest of them."""
        known = await self._renew(tenant)
        if not known.twins:
            return list(known.patterns.values())
        documents = await self.read(tenant, {key: known.versions[key] for key in known.twins})
        alone = [each for key, each in known.patterns.items() if key not in known.twins]
        return alone + await asyncio.to_thread(_join, documents)

    async def read(self, tenant: str, versions: Mapping[str, Any]) -> list[Document]:
        """Return the whole patterns of these keys, as far as they are there, in these states or in later ones."""
        written = [
            each
            for key, version in versions.items()
            if (each := self._written.get(key)) and each.fields["version"] == version
        ]
        return written + await self._read_stored(tenant, versions.keys() - {each.key for each in written})

    async def _read_stored(self, tenant: str, keys: set[str]) -> list[Document]:
        if not keys:
            return []
        if len(keys) > _FEW:
            found = await self._documents.find(PATTERNS, {"tenant": tenant})
        else:
            found = await find_by_keys(self._documents, PATTERNS, keys)
        return [each for each in found if each.key in keys]

    def put(self, written: Document) -> None:
        """Keep a pattern as this process has written it: it is not read again soon unless another process changes it."""
        self._written[written.key] = written
        self._written.move_to_end(written.key)
        while len(self._written) > _MAX_WRITTEN:
            self._written.popitem(last=False)

    async def _renew(self, tenant: str) -> _Tenant:
        # In the order of the index that has the versions, so that nothing is sorted.
        by_version = (Order("version"),)
        heads = await self._documents.find(
            PATTERNS, {"tenant": tenant}, order=by_version, fields=("version",)
        )
        versions = {each.key: each.fields["version"] for each in heads}
        known = self._tenants.get(tenant, _Tenant())
        if versions != known.versions:
            changed = {
                key: version for key, version in versions.items() if known.versions.get(key) != version
            }
            read = await self.read(tenant, changed)
            same = {key: version for key, version in versions.items() if key not in changed}
            known = await asyncio.to_thread(_renew, known, same, read)
        self._keep(tenant, known)
        return known

    def _keep(self, tenant: str, known: _Tenant) -> None:
        self._tenants[tenant] = known
        self._tenants.move_to_end(tenant)
        while len(self._tenants) > 1 and self._count() > _MAX_KNOWN:
            self._tenants.popitem(last=False)

    def _count(self) -> int:
        return sum(1 + len(each.versions) for each in self._tenants.values())


def _renew(before: _Tenant, same: Mapping[str, Any], changed: Sequence[Document]) -> _Tenant:
    """Return the patterns of a tenant: those of before that are the same, by their versions, and those that have changed."""
    read = skip_unreadable(changed, partial(_read, before.patterns), _NAME, document_key)
    kept = {key: before.patterns[key] for key in same if key in before.patterns}
    patterns = kept | {each.key: each for each in read}
    versions = {**same, **{each.key: each.fields["version"] for each in changed}}
    return _Tenant(versions, patterns, _find_twins(before, patterns))


def _read(before: Mapping[str, KnownPattern], document: Document) -> KnownPattern:
    fields: Any = document.fields
    pattern = document.key.rpartition("/")[2]
    kind = Kind(pattern, decode_vector(fields["vector"]))
    if (known := before.get(document.key)) and known.kind.vector.tobytes() == kind.vector.tobytes():
        kind = known.kind  # so that it is not compared again
    return KnownPattern(
        key=document.key,
        version=fields["version"],
        group=(str(fields["domain"]), str(fields["model"])),
        started=int(fields["started"]),
        kind=kind,
        listed=to_pattern(pattern, fields),
    )


def _find_twins(before: _Tenant, patterns: Mapping[str, KnownPattern]) -> dict[str, set[str]]:
    """Return the twins of patterns; those of before are not compared with each other again."""
    compared = {
        key
        for key, each in patterns.items()
        if (known := before.patterns.get(key)) and (known.kind, known.group) == (each.kind, each.group)
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


def _join(documents: Sequence[Document]) -> list[KnownPattern]:
    """Return patterns, those together that are one kind."""
    fields = {each.key: each.fields for each in documents}
    known = skip_unreadable(documents, partial(_read, {}), _NAME, document_key)
    joined = []
    for group in _group(known):
        by_kind = {each.kind.pattern: each for each in group}
        for kind, its in join_twins([(each.kind, fields[each.key]) for each in group]):
            joined.append(replace(by_kind[kind.pattern], listed=to_pattern(kind.pattern, its)))
    return joined
