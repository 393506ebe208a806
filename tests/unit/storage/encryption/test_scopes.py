"""What shares a data key, and when it goes: documents of a day, of a tenant, of a debate."""

import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Final

import pytest

from parley.storage.encryption.data_keys import DATA_KEYS, DataKeys, Rewrapping
from parley.storage.encryption.documents import EncryptedDocuments
from parley.storage.encryption.wrapping import CommandKey, WrappingKeys
from parley.storage.opening import open_store, rewrap_data_keys
from parley.storage.ports import Collection, Index, StorageError, Where
from parley.storage.sqlite.database import open_database
from parley.storage.sqlite.documents import SqliteDocuments
from tests.support.encryption import create_keys
from tests.support.manual_clock import ManualClock

CALLS: Final = Collection("calls", private=("outcome",), key_days=2)
HOOKS: Final = Collection("hooks", private=("secret",), key_parts=0)
PATTERNS: Final = Collection("patterns", private=("text",), key_parts=1)
NOTES: Final = Collection("notes", private=("text",))
OWNERS: Final = Collection("owners", (Index(("state",)),), private=("text",), owns_key=True)
DAY: Final = 24 * 3600


@asynccontextmanager
async def open_documents(folder: Path, clock: ManualClock) -> AsyncIterator[EncryptedDocuments]:
    async with open_database(folder / "tested.db") as database:
        stored = SqliteDocuments(database, "some")
        await stored.prepare(DATA_KEYS, CALLS, HOOKS, PATTERNS, NOTES, OWNERS)
        yield EncryptedDocuments(stored, DataKeys(stored, create_keys()), clock)


async def list_scopes(documents: EncryptedDocuments) -> Sequence[str]:
    return sorted(str(each.fields["scope"]) for each in await documents.find(DATA_KEYS, {}))


async def test_documents_share_the_key_that_their_collection_says(tmp_path: Path) -> None:
    async with open_documents(tmp_path, ManualClock()) as documents:
        for number in range(2):
            await documents.insert(HOOKS, f"hook-{number}", {"secret": "x"})
            await documents.insert(PATTERNS, f"acme/{number}", {"text": "x"})
            await documents.insert(NOTES, f"acme/deb-1/{number}", {"text": "x"})
            await documents.insert(NOTES, f"acme/deb-2/{number}/more", {"text": "x"})
        assert await list_scopes(documents) == ["/hooks", "acme", "acme/deb-1", "acme/deb-2"]


async def test_what_has_nothing_private_needs_no_key(tmp_path: Path) -> None:
    async with open_documents(tmp_path, ManualClock()) as documents:
        await documents.insert(NOTES, "acme/deb-1/1", {"number": 1, "text": ""})
        await documents.update(NOTES, "acme/deb-1/1", {"number": 2})
        assert await list_scopes(documents) == []


async def test_an_update_of_a_document_that_is_not_there_leaves_no_key(tmp_path: Path) -> None:
    async with open_documents(tmp_path, ManualClock()) as documents:
        assert not await documents.update(NOTES, "acme/deb-1/1", {"text": "x"})
        assert await list_scopes(documents) == []


@pytest.mark.parametrize("collection", [DATA_KEYS, OWNERS], ids=["key", "document"])
@pytest.mark.parametrize("is_done", [False, True], ids=["before", "after"])
async def test_a_delete_that_is_cut_short_leaves_what_its_repeat_deletes_with_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, collection: Collection, is_done: bool
) -> None:
    async with open_documents(tmp_path, ManualClock()) as documents:
        await documents.insert(OWNERS, "acme/deb-1", {"text": "x", "state": "leaving"})
        delete = SqliteDocuments.delete

        async def break_off(
            self: SqliteDocuments, where_in: Collection, key: str, where: Where | None = None
        ) -> bool:
            if where_in is not collection:
                return await delete(self, where_in, key, where)
            if is_done:
                await delete(self, where_in, key, where)
            raise StorageError("the store is away")

        with monkeypatch.context() as patch:
            patch.setattr(SqliteDocuments, "delete", break_off)
            with pytest.raises(StorageError):
                await documents.delete(OWNERS, "acme/deb-1", {"state": "leaving"})
        for each in await documents.find(OWNERS, {"state": "leaving"}):
            assert await documents.delete(OWNERS, each.key, {"state": "leaving"})
        assert await documents.find(OWNERS, {}) == []
        assert await list_scopes(documents) == []


async def test_a_delete_whose_condition_does_not_hold_leaves_the_key(tmp_path: Path) -> None:
    async with open_documents(tmp_path, ManualClock()) as documents:
        await documents.insert(OWNERS, "acme/deb-1", {"text": "x", "state": "staying"})
        assert not await documents.delete(OWNERS, "acme/deb-1", {"state": "leaving"})
        found = await documents.get(OWNERS, "acme/deb-1")
        assert found is not None
        assert found.fields["text"] == "x"


async def test_the_key_of_a_day_goes_when_nothing_of_that_day_is_left(tmp_path: Path) -> None:
    clock = ManualClock()
    async with open_documents(tmp_path, clock) as documents:
        await documents.insert(HOOKS, "hook-1", {"secret": "x"})
        days = []
        for number in range(4):
            days.append(f"/calls/{clock.now().date().isoformat()}")
            await documents.insert(CALLS, f"call-{number}", {"outcome": f"{number}"})
            assert await list_scopes(documents) == [*days[-3:], "/hooks"]
            found = await documents.get(CALLS, f"call-{max(0, number - 2)}")
            assert found is not None
            assert found.fields == {"outcome": f"{max(0, number - 2)}"}
            clock.advance(DAY)
        clock.jump(timedelta(days=30))
        await documents.insert(CALLS, "call-of-a-wrong-day", {"outcome": "x"})
        assert await documents.get(CALLS, "call-3")


async def test_a_key_service_that_has_a_new_key_wraps_all_anew_once(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(
        "import base64, sys\n"
        "data = base64.b64decode(sys.stdin.read())\n"
        "print(base64.b64encode(data[::-1]).decode(), *sys.argv[1:-1] if sys.argv[-1] == 'wrap' else ())\n"
    )
    before, after = (
        WrappingKeys((CommandKey([sys.executable, str(program), name], 20.0),)) for name in ("v1", "v2")
    )
    url = f"sqlite:///{tmp_path}"
    async with open_store(url, "tested", wrapping=before) as store:
        await store.documents.prepare(NOTES)
        await store.documents.insert(NOTES, "acme/deb-1/1", {"text": "x"})
    assert await rewrap_data_keys(url, "tested", before) == Rewrapping(0, 0)
    assert await rewrap_data_keys(url, "tested", after) == Rewrapping(1, 0)
    assert await rewrap_data_keys(url, "tested", after) == Rewrapping(0, 0)
    async with open_store(url, "tested", wrapping=after) as store:
        found = await store.documents.get(NOTES, "acme/deb-1/1")
        assert found is not None
        assert found.fields == {"text": "x"}
