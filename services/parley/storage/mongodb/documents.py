"""The Documents port on MongoDB: a document's key is its `_id`, its fields stand next to it."""

from collections.abc import Mapping, Sequence
from typing import Any, Final

from pymongo import ASCENDING, DESCENDING, IndexModel, UpdateOne
from pymongo.asynchronous.collection import AsyncCollection
from pymongo.errors import DuplicateKeyError, OperationFailure

from parley.storage.checks import check_document, check_put, check_search, check_update, check_where
from parley.storage.mongodb.database import Database, map_errors
from parley.storage.ports import (
    Above,
    Below,
    Collection,
    Document,
    DuplicateError,
    Fields,
    HasAll,
    Index,
    OneOf,
    Order,
    Update,
    Where,
)

_INDEX_NOT_FOUND: Final = 27


class MongodbDocuments:
    """Documents in one MongoDB database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def prepare(self, *collections: Collection) -> None:
        """See `Documents.prepare`."""
        with map_errors():
            for collection in collections:
                if collection.indexes:
                    await self._collection(collection).create_indexes(
                        [_index(index) for index in collection.indexes]
                    )
                for index in collection.superseded:
                    await self._drop_index(collection, index)

    async def get(self, collection: Collection, key: str) -> Document | None:
        """See `Documents.get`."""
        with map_errors():
            found = await self._collection(collection).find_one({"_id": key})
        return None if found is None else _document(found)

    async def insert(self, collection: Collection, key: str, fields: Fields) -> None:
        """See `Documents.insert`."""
        check_document(collection, key, fields)
        try:
            with map_errors():
                await self._collection(collection).insert_one({"_id": key, **fields})
        except DuplicateKeyError as error:
            raise _duplicate(collection, key) from error

    async def put(
        self, collection: Collection, documents: Mapping[str, Fields], if_new: Fields | None = None
    ) -> None:
        """See `Documents.put`."""
        check_put(collection, documents, if_new or {})
        only_new = {"$setOnInsert": dict(if_new)} if if_new else {}
        writes = [
            UpdateOne({"_id": key}, {"$set": dict(fields), **only_new}, upsert=True)
            for key, fields in documents.items()
        ]
        if writes:
            with map_errors():
                await self._collection(collection).bulk_write(writes, ordered=False)

    async def find(
        self,
        collection: Collection,
        where: Where,
        *,
        order: Sequence[Order] = (),
        limit: int = 1000,
        fields: Sequence[str] = (),
    ) -> Sequence[Document]:
        """See `Documents.find`."""
        check_search(collection, where, order, limit, fields)
        with map_errors():
            found = self._collection(collection).find(
                _filter(where), fields or None, sort=_ordering(order), limit=limit
            )
            absent = dict.fromkeys(fields)
            own_key = "key" in fields
            return [
                _document({**absent, **one} | ({"key": one["_id"]} if own_key else {})) async for one in found
            ]

    async def count(self, collection: Collection, where: Where) -> int:
        """See `Documents.count`."""
        check_search(collection, where)
        with map_errors():
            return await self._collection(collection).count_documents(_filter(where))

    async def update(
        self, collection: Collection, key: str, changes: Fields, where: Where | None = None
    ) -> bool:
        """See `Documents.update`."""
        check_update(Update(collection, key, changes, where or {}))
        try:
            with map_errors():
                result = await self._collection(collection).update_one(
                    {**_filter(where or {}), "_id": key}, {"$set": dict(changes)}
                )
        except DuplicateKeyError as error:
            raise _duplicate(collection, key) from error
        return result.matched_count == 1

    async def delete(self, collection: Collection, key: str, where: Where | None = None) -> bool:
        """See `Documents.delete`."""
        check_where(collection, where or {})
        with map_errors():
            result = await self._collection(collection).delete_one({**_filter(where or {}), "_id": key})
        return result.deleted_count == 1

    async def _drop_index(self, collection: Collection, index: Index) -> None:
        try:
            await self._collection(collection).drop_index(_index_name(index))
        except OperationFailure as error:
            if error.code != _INDEX_NOT_FOUND:
                raise

    def _collection(self, collection: Collection) -> AsyncCollection[dict[str, Any]]:
        return self._database[collection.name]


def _index(index: Index) -> IndexModel:
    fields = [(field, ASCENDING) for field in index.fields]
    if not index.unique:
        return IndexModel([*fields, ("_id", ASCENDING)], name=_index_name(index))
    # Only text is compared: any text is at least "". This index also serves searches for a text.
    compared = {field: {"$gte": ""} for field in index.fields}
    return IndexModel(fields, name=_index_name(index), unique=True, partialFilterExpression=compared)


def _index_name(index: Index) -> str:
    return "__".join([*index.fields, *(["unique"] if index.unique else [])])


def _document(found: dict[str, Any]) -> Document:
    key = found.pop("_id")
    return Document(key, found)


def _duplicate(collection: Collection, key: str) -> DuplicateError:
    return DuplicateError(
        f"{collection.name} has a document with the key {key!r} or its unique values already"
    )


def _filter(where: Where) -> dict[str, Any]:
    return {_name(field): _condition(condition) for field, condition in where.items()}


def _name(field: str) -> str:
    return "_id" if field == "key" else field


def _condition(condition: object) -> dict[str, Any]:
    match condition:
        case None | str() | int() | float():
            return {"$eq": condition}
        case Below(bound):
            return {"$lt": bound, "$type": _type(bound)}
        case Above(bound):
            return {"$gt": bound, "$type": _type(bound)}
        case OneOf(values):
            return {"$in": list(values)}
        case HasAll(texts):
            return {"$all": list(texts)}
        case _:
            raise ValueError(f"{condition!r} is not a condition")


def _type(bound: str | float) -> str:
    return "string" if isinstance(bound, str) else "number"


def _ordering(order: Sequence[Order]) -> list[tuple[str, int]]:
    fields = {_name(by.field): DESCENDING if by.descending else ASCENDING for by in order}
    fields.setdefault("_id", DESCENDING if order and order[-1].descending else ASCENDING)
    return list(fields.items())
