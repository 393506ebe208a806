"""The Documents port, with private fields sealed, each by itself. All that is searched by stays as it is."""

import base64
import binascii
import json
from collections.abc import Mapping, Sequence
from datetime import timedelta
from typing import Final

from msgspec.structs import replace

from parley.runtime.clock import Clock
from parley.runtime.clock_watch import ClockWatch
from parley.runtime.unreadable import report_unreadable
from parley.storage.checks import check_document
from parley.storage.encryption.data_keys import DataKeys
from parley.storage.encryption.sealed import MARK, DataKey, is_sealed, read_key_id
from parley.storage.json_text import to_json
from parley.storage.ports import (
    Collection,
    Document,
    Documents,
    Fields,
    Insert,
    Order,
    StoreDamagedError,
    Update,
    Value,
    Where,
)

_NAME: Final = "parley-sealed"
"""A sealed value is a mapping with this name alone, as no message has it."""
_TEXT_BEGINS: Final = base64.b64encode(MARK).decode()[:10]

_Sealed = Mapping[str, tuple[str, Value]]
"""What stands for each private field of a document that is sealed: the name inside, and the text, which may have been changed."""
_ID_TEXT: Final = 24
"""Characters of such a text that hold the mark and the id of the data key."""


class EncryptedDocuments:
    """Documents whose private fields are sealed. Plain ones of before are read as they are."""

    def __init__(self, documents: Documents, keys: DataKeys, clock: Clock) -> None:
        self._documents = documents
        self._keys = keys
        self._clock = clock
        self._watch = ClockWatch(clock)
        self._days: dict[str, str] = {}

    async def prepare(self, *collections: Collection) -> None:
        """See `Documents.prepare`."""
        await self._documents.prepare(*collections)

    async def get(self, collection: Collection, key: str) -> Document | None:
        """See `Documents.get`. Raise StoreDamagedError, with the document, if a private field cannot be opened."""
        found = await self._documents.get(collection, key)
        if found is None:
            return None
        keys = await self._keys.find(_list_keys(_find_sealed(collection, found)))
        try:
            return _open(collection, found, keys)
        except StoreDamagedError as error:
            if await self._documents.get(collection, key) is None:  # it was deleted meanwhile, and its key
                return None
            error.document = found
            raise

    async def insert(self, collection: Collection, key: str, fields: Fields) -> None:
        """See `Documents.insert`."""
        sealed = await self.seal_insert(Insert(collection, key, fields))
        await self._documents.insert(collection, key, sealed.fields)

    async def put(
        self, collection: Collection, documents: Mapping[str, Fields], if_new: Fields | None = None
    ) -> None:
        """See `Documents.put`."""
        sealed = {key: await self._seal(collection, key, fields) for key, fields in documents.items()}
        if if_new and _list_private(collection, if_new):
            raise ValueError(f"{collection.name}: a private field is sealed for one document")
        await self._documents.put(collection, sealed, if_new)

    async def find(
        self,
        collection: Collection,
        where: Where,
        *,
        order: Sequence[Order] = (),
        limit: int = 1000,
        fields: Sequence[str] = (),
    ) -> Sequence[Document]:
        """See `Documents.find`. A private field that cannot be opened stays sealed: one document hides no others."""
        found, ids, keys = await self._find(collection, where, order, limit, fields)
        if not ids <= keys.keys():  # some were deleted since, and their keys
            found, _, keys = await self._find(collection, where, order, limit, fields)
        found.reverse()
        # One after the other, so that texts of megabytes are not there twice.
        return [_open_if_whole(collection, found.pop(), keys) for _ in range(len(found))]

    async def count(self, collection: Collection, where: Where) -> int:
        """See `Documents.count`."""
        return await self._documents.count(collection, where)

    async def update(
        self, collection: Collection, key: str, changes: Fields, where: Where | None = None
    ) -> bool:
        """See `Documents.update`."""
        if await self._would_seal_nothing(collection, key, changes):
            return False
        sealed = await self.seal_update(Update(collection, key, changes))
        return await self._documents.update(collection, key, sealed.changes, where)

    async def delete(self, collection: Collection, key: str, where: Where | None = None) -> bool:
        """See `Documents.delete`."""
        if collection.owns_key and self._keys.is_on:
            found = await self._documents.get(collection, key)
            # Before the document: a delete that was cut short is repeated by whoever still finds the document.
            if found is not None and _agrees(found, where or {}):
                await self._keys.delete(_scope(collection, key))
        return await self._documents.delete(collection, key, where)

    async def seal_insert(self, insert: Insert) -> Insert:
        """Return an insert as the store gets it."""
        return replace(insert, fields=await self._seal(insert.collection, insert.key, insert.fields))

    async def seal_update(self, update: Update) -> Update:
        """Return an update as the store gets it."""
        return replace(update, changes=await self._seal(update.collection, update.key, update.changes))

    async def _find(
        self,
        collection: Collection,
        where: Where,
        order: Sequence[Order],
        limit: int,
        fields: Sequence[str],
    ) -> tuple[list[Document], set[bytes], Mapping[bytes, DataKey]]:
        """Return documents as they are stored, the ids of their data keys, and those of these keys that are there."""
        found = await self._documents.find(collection, where, order=order, limit=limit, fields=fields)
        # The store's own list, if it is one: a copy would keep all of it while it is opened.
        found = found if isinstance(found, list) else list(found)
        ids = {id_ for each in found for id_ in _list_keys(_find_sealed(collection, each))}
        return found, ids, await self._keys.find(ids)

    async def _seal(self, collection: Collection, key: str, fields: Fields) -> Fields:
        private = _list_private(collection, fields)
        if not private or not self._keys.is_on:
            return fields
        check_document(collection, key, {name: fields[name] for name in private})
        data_key = await self._get_key(collection, key)
        sealed = {
            name: data_key.seal(to_json(fields[name]), _place(collection, key, name)) for name in private
        }
        return {**fields, **{name: _to_value(each) for name, each in sealed.items()}}

    async def _would_seal_nothing(self, collection: Collection, key: str, changes: Fields) -> bool:
        """Return whether an update would create a data key for a document that is not there.

        A whole tenant's key is used later; its writes need no look at the store.
        """
        if not self._keys.is_on or collection.key_parts < 2 or not _list_private(collection, changes):
            return False
        return await self._documents.get(collection, key) is None

    async def _get_key(self, collection: Collection, key: str) -> DataKey:
        if collection.key_days is None:
            # What is of a whole tenant is not deleted and begun anew.
            return await self._keys.for_scope(_scope(collection, key), is_new=collection.key_parts > 1)
        prefix, today = f"/{collection.name}/", self._clock.now().date()
        if self._days.get(collection.name) != today.isoformat() and self._watch.is_steady():
            kept_from = today - timedelta(days=collection.key_days)
            await self._keys.delete_before(prefix, f"{prefix}{kept_from.isoformat()}")
            self._days[collection.name] = today.isoformat()
        return await self._keys.for_scope(f"{prefix}{today.isoformat()}", is_new=False)


def _list_private(collection: Collection, fields: Fields) -> list[str]:
    """Return which private fields are to be sealed: an empty value says nothing."""
    return [name for name in collection.private if fields.get(name)]


def _find_sealed(collection: Collection, document: Document) -> _Sealed:
    """Return what is sealed in a document."""
    sealed = {}
    for name in collection.private:
        value = document.fields.get(name)
        if isinstance(value, Mapping) and len(value) == 1:
            ((inner, text),) = value.items()
            if inner == _NAME or (isinstance(text, str) and text.startswith(_TEXT_BEGINS)):
                sealed[name] = inner, text
    return sealed


def _list_keys(sealed: _Sealed) -> set[bytes]:
    """Return the ids of the data keys that open it."""
    begins = [_to_bytes(name, text[:_ID_TEXT]) for name, text in sealed.values() if isinstance(text, str)]
    return {read_key_id(each) for each in begins if each}


def _open(collection: Collection, document: Document, keys: Mapping[bytes, DataKey]) -> Document:
    """Return the plain document. Raise StoreDamagedError."""
    sealed = _find_sealed(collection, document)
    if not sealed:
        return document
    opened = {}
    for name, value in sealed.items():
        each = _to_bytes(*value)
        place, id_ = _place(collection, document.key, name), read_key_id(each)
        if id_ not in keys:
            what = f"its data key {id_.hex()} is gone or damaged" if each else "it was changed"
            raise StoreDamagedError(f"{place}: {what}; restore it from a backup")
        opened[name] = json.loads(keys[id_].open(each, place))
    return Document(document.key, {**document.fields, **opened})


def _open_if_whole(collection: Collection, document: Document, keys: Mapping[bytes, DataKey]) -> Document:
    """Return the plain document; as it is stored if it cannot be opened, which is reported."""
    try:
        return _open(collection, document, keys)
    except StoreDamagedError as error:
        report_unreadable(collection.name, document.key, error)
        return document


def _scope(collection: Collection, key: str) -> str:
    """Return which data key seals a document; no debate and no tenant begins with a slash."""
    parts = key.split("/", collection.key_parts)[: collection.key_parts]
    return "/".join(parts) if parts else f"/{collection.name}"


def _place(collection: Collection, key: str, field: str) -> str:
    return f"field {field} of {collection.name} {key}"


def _to_value(sealed: bytes) -> Value:
    return {_NAME: base64.b64encode(sealed).decode()}


def _to_bytes(name: str, text: Value) -> bytes:
    """Return the sealed bytes of a value; empty if it was changed."""
    if name != _NAME or not isinstance(text, str):
        return b""
    try:
        sealed = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        return b""
    # Base64 has bits that mean nothing: a change of these is one too.
    return sealed if base64.b64encode(sealed).decode() == text and is_sealed(sealed) else b""


def _agrees(document: Document, where: Where) -> bool:
    """Return whether a document has the values that a condition names."""
    return all(document.fields.get(name) == value for name, value in where.items())
