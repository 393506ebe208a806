"""Data keys: one for what belongs together, stored wrapped in a collection of the service's own database, and kept unwrapped while in use.

A *scope* is what one data key is for: a debate, a log, a collection, a day. Whoever deletes the data key of a scope makes all that it
sealed unreadable, wherever remains of it are.
"""

import asyncio
import base64
from collections import OrderedDict
from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Final, TypeVar
from weakref import WeakValueDictionary

from msgspec import Struct

from parley.runtime.unreadable import report_unreadable
from parley.storage.encryption.sealed import DataKey
from parley.storage.encryption.wrapping import Wrapped, WrappingKeys
from parley.storage.ports import (
    Above,
    Collection,
    Document,
    Documents,
    DuplicateError,
    Index,
    OneOf,
    Order,
    StoreDamagedError,
)
from parley.storage.scan import scan

K = TypeVar("K")
V = TypeVar("V")

DATA_KEYS: Final = Collection(
    "data_keys",
    (Index(("scope",), unique=True), Index(("id",)), Index(("wrapped_by",))),
    private=("wrapped",),
)
_MAX_KEPT: Final = 10_000
_KIND: Final = "data key"
_PAGE: Final = 500


class Rewrapping(Struct, frozen=True):
    """What wrapping the data keys of a database anew came to.

    Attributes:
        wrapped: How many data keys another key had wrapped.
        unreadable: How many data keys are damaged. They stay as they are.
    """

    wrapped: int
    unreadable: int


class DataKeys:
    """The data keys of one database. Every method may raise StorageError."""

    def __init__(self, documents: Documents, wrapping: WrappingKeys) -> None:
        """Use the database's documents as they are stored, in which DATA_KEYS is prepared if `wrapping` has a key."""
        self._documents = documents
        self._wrapping = wrapping
        self._kept: OrderedDict[bytes, DataKey] = OrderedDict()
        self._current: OrderedDict[str, bytes] = OrderedDict()
        self._unwrapping: WeakValueDictionary[bytes, asyncio.Lock] = WeakValueDictionary()

    @property
    def is_on(self) -> bool:
        """Whether what is written is encrypted."""
        return bool(self._wrapping)

    async def require_all(self) -> None:
        """Raise KeyMissingError if a data key is wrapped by a key that the settings do not have."""
        async for wrapped_by in self.list_wrapping():
            self._wrapping.require(wrapped_by)

    async def list_wrapping(self) -> AsyncIterator[str]:
        """Yield the ids of the keys that wrap data keys."""
        last = ""
        while found := await self._documents.find(
            DATA_KEYS, {"wrapped_by": Above(last)}, order=(Order("wrapped_by"),), limit=1
        ):
            yield (last := str(found[0].fields["wrapped_by"]))

    async def for_scope(self, scope: str, *, is_new: bool) -> DataKey:
        """Return the data key that seals in a scope; create it if there is none.

        `is_new`: the scope may have been deleted and begun anew since it was used here.
        """
        if not is_new and (kept := self._find_kept(self._current.get(scope, b""))):
            return kept
        while True:
            found = await self._documents.find(DATA_KEYS, {"scope": scope}, limit=1)
            try:
                key = await self._unwrap(found[0]) if found else await self._create(scope)
            except DuplicateError:  # another replica was faster
                continue
            self.note(scope, key.id)
            return key

    def note(self, scope: str, key_id: bytes) -> None:
        """Note which data key a scope has."""
        _keep(self._current, scope, key_id)

    async def find(self, ids: Iterable[bytes]) -> Mapping[bytes, DataKey]:
        """Return data keys by their ids, without those that were deleted or are damaged. The latter are reported."""
        wanted = set(ids)
        found = {each: kept for each in wanted if (kept := self._find_kept(each))}
        missing = [each.hex() for each in wanted - found.keys()]
        for start in range(0, len(missing), _PAGE):
            part = tuple(missing[start : start + _PAGE])
            documents = await self._documents.find(DATA_KEYS, {"id": OneOf(part)}, limit=len(part))
            for key in await asyncio.gather(*map(self._unwrap_if_whole, documents)):
                if key is not None:
                    found[key.id] = key
        return found

    async def delete(self, scope: str) -> None:
        """Delete the data key of a scope, if it has one."""
        self._current.pop(scope, None)
        for each in await self._documents.find(DATA_KEYS, {"scope": scope}, limit=1):
            self._kept.pop(bytes.fromhex(each.key), None)
            await self._documents.delete(DATA_KEYS, each.key)

    async def delete_before(self, prefix: str, before: str) -> None:
        """Delete the data keys of scopes that begin with `prefix` and come before another one."""
        after = Above(prefix)
        order = (Order("scope"),)
        for each in await self._documents.find(DATA_KEYS, {"scope": after}, order=order, limit=_PAGE):
            scope = str(each.fields["scope"])
            if not scope.startswith(prefix) or scope >= before:
                return
            await self.delete(scope)

    async def rewrap(self) -> Rewrapping:
        """Wrap every data key that another key wraps by the first key of the settings. A damaged one is reported and left out.

        What they sealed stays as it is. It may be stopped and run again, also while services use the database.
        """
        newest = (await self._wrapping.wrap(bytes(32), "a trial")).by
        wrapped, unreadable = 0, 0
        async for each in scan(self._documents, DATA_KEYS, "id", page=_PAGE):
            try:
                wrapped += str(each.fields["wrapped_by"]) != newest and await self._rewrap(each)
            except StoreDamagedError as error:
                report_unreadable(_KIND, each.key, error)
                unreadable += 1
        return Rewrapping(wrapped, unreadable)

    async def _rewrap(self, document: Document) -> bool:
        place, before = _place(document.key), _read_wrapped(document)
        wrapped = await self._wrapping.wrap(await self._wrapping.unwrap(before, place), place)
        return await self._documents.update(
            DATA_KEYS, document.key, _fields(wrapped), {"wrapped_by": before.by}
        )

    async def _create(self, scope: str) -> DataKey:
        data_key, key = DataKey.generate()
        name = data_key.id.hex()
        wrapped = await self._wrapping.wrap(key, _place(name))
        await self._documents.insert(DATA_KEYS, name, {"id": name, "scope": scope, **_fields(wrapped)})
        _keep(self._kept, data_key.id, data_key)
        return data_key

    async def _unwrap_if_whole(self, document: Document) -> DataKey | None:
        try:
            return await self._unwrap(document)
        except StoreDamagedError as error:  # it must hide nothing that other keys seal
            report_unreadable(_KIND, document.key, error)
            return None

    async def _unwrap(self, document: Document) -> DataKey:
        id_ = bytes.fromhex(document.key)
        async with self._unwrapping.setdefault(id_, asyncio.Lock()):  # many ask for one key at a time
            if kept := self._find_kept(id_):
                return kept
            key = DataKey(id_, await self._wrapping.unwrap(_read_wrapped(document), _place(document.key)))
            _keep(self._kept, id_, key)
            return key

    def _find_kept(self, id_: bytes) -> DataKey | None:
        if kept := self._kept.get(id_):
            self._kept.move_to_end(id_)
        return kept


def _keep(kept: OrderedDict[K, V], name: K, value: V) -> None:
    kept[name] = value
    kept.move_to_end(name)
    if len(kept) > _MAX_KEPT:
        kept.popitem(last=False)


def _place(name: str) -> str:
    return f"{_KIND} {name}"


def _fields(wrapped: Wrapped) -> Mapping[str, str]:
    return {"wrapped_by": wrapped.by, "wrapped": base64.b64encode(wrapped.data).decode()}


def _read_wrapped(document: Document) -> Wrapped:
    try:
        data = base64.b64decode(str(document.fields["wrapped"]), validate=True)
        return Wrapped(str(document.fields["wrapped_by"]), data)
    except (KeyError, ValueError):
        raise StoreDamagedError(f"{_place(document.key)} cannot be read; restore it from a backup") from None
