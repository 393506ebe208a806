"""A MongoDB database that is copied collection by collection, as its own tools do, is a whole store."""

from uuid import uuid4

import pytest
from pymongo import MongoClient

from parley.storage.opening import open_store
from parley.storage.ports import AppendConflictError, Collection, DuplicateError, Index, Record

NOTES = Collection("notes", (Index(("name",), unique=True),))


async def test_what_a_dump_holds_can_be_read_and_gone_on_with(mongodb_url: str) -> None:
    restored = mongodb_url.replace("parley_test_", f"parley_test_{uuid4().hex[:6]}_")
    async with open_store(mongodb_url, "contract") as store:
        await store.documents.prepare(NOTES)
        await store.documents.insert(NOTES, "one", {"name": "first", "numbers": [1, 2.5, None]})
        await store.log.append("debate", Record(1, "a", (b"one", b"two")))
        await store.log.append("debate", Record(3, "b", (b"three",)))
    with MongoClient[dict[str, object]](mongodb_url) as client:
        source = client[client.get_default_database().name + "_contract"]
        with MongoClient[dict[str, object]](restored) as other:
            target = other[other.get_default_database().name + "_contract"]
            for name in source.list_collection_names():
                if documents := list(source[name].find()):
                    target[name].insert_many(documents)
    try:
        async with open_store(restored, "contract") as store:
            await store.documents.prepare(NOTES)
            found = await store.documents.find(NOTES, {"name": "first"})
            assert [each.fields for each in found] == [{"name": "first", "numbers": [1, 2.5, None]}]
            assert [each.entries for each in await store.log.read("debate")] == [
                (b"one", b"two"),
                (b"three",),
            ]
            await store.log.append("debate", Record(4, "c", (b"four",)))
            with pytest.raises(AppendConflictError):
                await store.log.append("debate", Record(3, "d", (b"other",)))
            with pytest.raises(DuplicateError):
                await store.documents.insert(NOTES, "two", {"name": "first"})
    finally:
        with MongoClient[dict[str, object]](restored) as client:
            client.drop_database(client.get_default_database().name + "_contract")
