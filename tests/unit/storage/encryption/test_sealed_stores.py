"""What encryption promises of a database: on the disk there is no text, and nothing that was changed, moved or shredded is read."""

import asyncio
import json
import sqlite3
import tracemalloc
from collections.abc import Iterator
from contextlib import aclosing, closing, contextmanager
from itertools import product
from pathlib import Path
from string import ascii_lowercase, ascii_uppercase
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from parley.runtime.errors import ConfigurationError
from parley.storage.encryption.data_keys import DATA_KEYS, Rewrapping
from parley.storage.encryption.wrapping import NO_KEYS, WrappingKeys
from parley.storage.opening import open_store, refuse_unusable_store, rewrap_data_keys
from parley.storage.ports import (
    Collection,
    Documents,
    Index,
    Insert,
    KeyMissingError,
    Order,
    Record,
    StorageError,
    StoreDamagedError,
    Update,
)
from parley.storage.sqlite.documents import SqliteDocuments
from tests.support.encryption import create_keys, damage_data_key

NOTES: Final = Collection("notes", (Index(("number",)),), private=("text", "more"))
OWNERS: Final = Collection("owners", private=("text",), owns_key=True)
WORD: Final = "heptadecagon"
MIB: Final = 1024 * 1024
PLACE: Final = "acme/deb-1"


def database(folder: Path) -> Path:
    return folder / "parley.db"


def store_of(folder: Path, wrapping: WrappingKeys, *, reading: bool = False) -> Any:
    return open_store(f"sqlite:///{folder}", "tested", wrapping=wrapping, poll_interval=0.02, reading=reading)


async def write(folder: Path, wrapping: WrappingKeys) -> None:
    async with store_of(folder, wrapping) as store:
        await store.documents.prepare(NOTES)
        await store.documents.insert(
            NOTES, f"{PLACE}/1", {"number": 1, "text": WORD, "more": [WORD, {"a": 1}]}
        )
        await store.log.append(PLACE, Record(1, "a", (WORD.encode(), b"", b"more")))
        await store.log.append(PLACE, Record(4, "b", (WORD.encode() * 2,)))


async def read_log(folder: Path, wrapping: WrappingKeys, log: str = PLACE) -> list[bytes]:
    async with store_of(folder, wrapping) as store:
        return [entry for record in await store.log.read(log) for entry in record.entries]


def count_words(folder: Path) -> int:
    return sum(each.read_bytes().count(WORD.encode()) for each in folder.iterdir() if each.is_file())


@contextmanager
def change(folder: Path) -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(database(folder))) as connection, connection:
        yield connection


async def test_no_text_is_on_the_disk_and_all_of_it_is_read(tmp_path: Path) -> None:
    keys = create_keys()
    await write(tmp_path, keys)
    assert count_words(tmp_path) == 0
    assert await read_log(tmp_path, keys) == [WORD.encode(), b"", b"more", WORD.encode() * 2]
    async with store_of(tmp_path, keys) as store:
        (found,) = await store.documents.find(NOTES, {"number": 1})
        assert found == await store.documents.get(NOTES, f"{PLACE}/1")
        assert found.fields == {"number": 1, "text": WORD, "more": [WORD, {"a": 1}]}


async def test_a_document_that_comes_with_an_append_is_encrypted(tmp_path: Path) -> None:
    async with store_of(tmp_path, create_keys()) as store:
        await store.documents.prepare(NOTES)
        await store.log.append(
            PLACE,
            Record(1, "a", (b"",)),
            insert=Insert(NOTES, f"{PLACE}/1", {"text": WORD}),
            update=Update(NOTES, f"{PLACE}/1", {"more": [WORD]}),
        )
        (found,) = await store.documents.find(NOTES, {})
    assert found.fields == {"text": WORD, "more": [WORD]}
    assert count_words(tmp_path) == 0


async def test_without_a_key_nothing_is_encrypted(tmp_path: Path) -> None:
    await write(tmp_path, NO_KEYS)
    assert count_words(tmp_path) == 5
    async with store_of(tmp_path, NO_KEYS) as store:
        assert isinstance(store.documents, SqliteDocuments), "nothing looks for what is sealed"


async def test_plain_data_of_before_stays_readable_and_what_is_new_is_encrypted(tmp_path: Path) -> None:
    await write(tmp_path, NO_KEYS)
    before, keys = count_words(tmp_path), create_keys()
    async with store_of(tmp_path, keys) as store:
        await store.log.append(PLACE, Record(5, "c", (f"{WORD} again".encode(),)))
        await store.documents.insert(NOTES, f"{PLACE}/2", {"number": 2, "text": WORD})
        found = await store.documents.find(NOTES, {})
        assert [each.fields["text"] for each in found] == [WORD, WORD]
        assert await store.documents.update(NOTES, f"{PLACE}/1", {"text": f"{WORD}!"})
    assert count_words(tmp_path) < before
    assert (await read_log(tmp_path, keys))[-2:] == [WORD.encode() * 2, f"{WORD} again".encode()]


async def test_a_database_without_its_key_is_not_opened_and_the_key_is_named(tmp_path: Path) -> None:
    keys = create_keys()
    await write(tmp_path, keys)
    for wrong in (NO_KEYS, create_keys()):
        with (
            pytest.raises(ConfigurationError, match=rf"PARLEY_ENCRYPTION_KEYS: .* the key {_id(keys)};"),
            refuse_unusable_store(),
        ):
            async with store_of(tmp_path, wrong):
                pass


async def test_a_process_that_only_reads_says_so_at_the_read(tmp_path: Path) -> None:
    keys = create_keys()
    await write(tmp_path, keys)
    async with store_of(tmp_path, NO_KEYS, reading=True) as store:
        with pytest.raises(KeyMissingError, match=_id(keys)):
            await store.log.read(PLACE)
        with pytest.raises(KeyMissingError, match=_id(keys)):
            await store.documents.find(NOTES, {})
    async with store_of(tmp_path, keys, reading=True) as store:
        assert len(await store.log.read(PLACE)) == 2


def _id(keys: WrappingKeys) -> str:
    (key,) = keys.keys
    return str(getattr(key, "id"))  # noqa: B009 - only keys of files have one


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, WrappingKeys]:
    folder, keys = tmp_path_factory.mktemp("written"), create_keys()
    asyncio.run(write(folder, keys))
    return folder, keys


def read_stored_entries(folder: Path) -> bytes:
    with change(folder) as connection:
        (stored,) = connection.execute("SELECT entries FROM tested_log WHERE first = 4").fetchone()
    return bytes(stored)


@given(data=st.data(), bit=st.integers(0, 7))
def test_any_changed_byte_of_an_entry_is_refused(
    written: tuple[Path, WrappingKeys], data: st.DataObject, bit: int
) -> None:
    folder, keys = written
    stored = read_stored_entries(folder)
    changed = bytearray(stored)
    changed[data.draw(st.integers(4, len(stored) - 1))] ^= 1 << bit  # before it is its length
    with change(folder) as connection:
        connection.execute("UPDATE tested_log SET entries = ? WHERE first = 4", (bytes(changed),))
    try:
        with pytest.raises(StoreDamagedError, match="entry 4 of log acme/deb-1"):
            asyncio.run(read_log(folder, keys))
    finally:
        with change(folder) as connection:
            connection.execute("UPDATE tested_log SET entries = ? WHERE first = 4", (stored,))


@given(data=st.data(), put=st.characters(codec="ascii", categories=("L", "N", "P", "S")))
def test_any_changed_character_of_a_field_is_refused(
    written: tuple[Path, WrappingKeys], data: st.DataObject, put: str
) -> None:
    folder, keys = written
    with change(folder) as connection:
        (body,) = connection.execute("SELECT body FROM tested_documents_notes").fetchone()
    value = json.dumps(json.loads(body)["text"])
    at = data.draw(st.integers(2, len(value) - 3).filter(lambda at: value[at] not in '": ' + put))
    changed = body.replace(value.replace(": ", ":"), (value[:at] + put + value[at + 1 :]).replace(": ", ":"))
    try:
        json.loads(changed)
    except ValueError:
        return  # no document any more
    try:
        with change(folder) as connection:
            connection.execute("UPDATE tested_documents_notes SET body = ?", (changed,))
        asyncio.run(_refuse_note(folder, keys))
    finally:
        with change(folder) as connection:
            connection.execute("UPDATE tested_documents_notes SET body = ?", (body,))


@pytest.mark.parametrize("text", ["a", "ab", "abc"])
async def test_bits_of_base64_that_mean_nothing_are_refused_too(tmp_path: Path, text: str) -> None:
    keys = create_keys()
    async with store_of(tmp_path, keys) as store:
        await store.documents.prepare(NOTES)
        await store.documents.insert(NOTES, f"{PLACE}/1", {"text": text})
    with change(tmp_path) as connection:
        (body,) = connection.execute("SELECT body FROM tested_documents_notes").fetchone()
        ((name, sealed),) = json.loads(body)["text"].items()
        plain = sealed.rstrip("=")
        digits = ascii_uppercase + ascii_lowercase + "0123456789+/"
        last = digits[digits.index(plain[-1]) ^ 1]
        changed = {"text": {name: plain[:-1] + last + sealed[len(plain) :]}}
        connection.execute("UPDATE tested_documents_notes SET body = ?", (json.dumps(changed),))
    await _refuse_note(tmp_path, keys)


async def _refuse_note(folder: Path, keys: WrappingKeys) -> None:
    async with store_of(folder, keys) as store:
        with pytest.raises(StoreDamagedError, match="field text of notes acme/deb-1/1"):
            await store.documents.get(NOTES, f"{PLACE}/1")
        (found,) = await store.documents.find(NOTES, {})
        assert isinstance(found.fields["text"], dict)  # it hides no others, and is no text


@pytest.fixture(scope="module")
def four(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, WrappingKeys]:
    """Two logs of four entries, a record each."""
    folder, keys = tmp_path_factory.mktemp("four"), create_keys()

    async def write_four() -> None:
        async with store_of(folder, keys) as store:
            for log, first in product(("acme/deb-1", "acme/deb-2"), range(1, 5)):
                await store.log.append(log, Record(first, f"{first}", (b"entry %d" % first,)))

    asyncio.run(write_four())
    return folder, keys


@settings(max_examples=30, deadline=None)
@given(pair=st.sets(st.integers(1, 8), min_size=2, max_size=2).map(sorted))
def test_two_entries_that_were_swapped_are_refused(four: tuple[Path, WrappingKeys], pair: list[int]) -> None:
    folder, keys = four

    def swap() -> None:
        with change(folder) as connection:
            one, other = (
                connection.execute("SELECT entries FROM tested_log WHERE rowid = ?", (row,)).fetchone()[0]
                for row in pair
            )
            connection.execute("UPDATE tested_log SET entries = ? WHERE rowid = ?", (other, pair[0]))
            connection.execute("UPDATE tested_log SET entries = ? WHERE rowid = ?", (one, pair[1]))

    swap()
    try:
        for row in pair:
            with pytest.raises(StoreDamagedError, match=rf"of log acme/deb-{1 if row <= 4 else 2}"):
                asyncio.run(read_log(folder, keys, f"acme/deb-{1 if row <= 4 else 2}"))
    finally:
        swap()


async def test_fields_that_were_moved_are_refused(tmp_path: Path) -> None:
    keys = create_keys()
    async with store_of(tmp_path, keys) as store:
        await store.documents.prepare(NOTES)
        await store.documents.insert(NOTES, f"{PLACE}/1", {"text": "one", "more": "other"})
    with change(tmp_path) as connection:
        (body,) = connection.execute("SELECT body FROM tested_documents_notes").fetchone()
        fields = json.loads(body)
        swapped = {"text": fields["more"], "more": fields["text"]}
        connection.execute("UPDATE tested_documents_notes SET body = ?", (json.dumps(swapped),))
        connection.execute("INSERT INTO tested_documents_notes VALUES (?, ?)", (f"{PLACE}/2", body))
    async with store_of(tmp_path, keys) as store:
        for key in (f"{PLACE}/1", f"{PLACE}/2"):
            with pytest.raises(StoreDamagedError, match=key):
                await store.documents.get(NOTES, key)


async def test_rotation_wraps_data_keys_anew_and_touches_no_payload(tmp_path: Path) -> None:
    old, new = create_keys(), create_keys()
    both = WrappingKeys((*new.keys, *old.keys))
    await write(tmp_path, old)
    before = _payloads(tmp_path)
    url = f"sqlite:///{tmp_path}"
    with pytest.raises(KeyMissingError, match=_id(old)):
        await rewrap_data_keys(url, "tested", new)
    assert await rewrap_data_keys(url, "tested", both) == Rewrapping(1, 0)
    assert await rewrap_data_keys(url, "tested", both) == Rewrapping(0, 0)
    assert _payloads(tmp_path) == before
    assert (await read_log(tmp_path, new))[0] == WORD.encode()
    with pytest.raises(KeyMissingError, match=_id(new)):
        await read_log(tmp_path, old)


def _payloads(folder: Path) -> list[Any]:
    with change(folder) as connection:
        return [
            *connection.execute("SELECT * FROM tested_log ORDER BY first"),
            *connection.execute("SELECT * FROM tested_documents_notes"),
        ]


async def test_rotation_goes_on_where_it_was_stopped(tmp_path: Path) -> None:
    old, new = create_keys(), create_keys()
    async with store_of(tmp_path, old) as store:
        for number in range(5):
            await store.log.append(f"acme/{number}", Record(1, "a", (b"x",)))
    both = WrappingKeys((*new.keys, *old.keys))
    async with store_of(tmp_path, both) as store:  # what is new is wrapped by the newest already
        await store.log.append("acme/new", Record(1, "a", (b"x",)))
    with change(tmp_path) as connection:
        connection.execute(
            "CREATE TRIGGER stop BEFORE UPDATE ON tested_documents_data_keys WHEN (SELECT count(*) FROM tested_documents_data_keys WHERE json_extract(body, '$.wrapped_by') = '"
            + _id(new)
            + "') = 3 BEGIN SELECT RAISE(ABORT, 'stopped'); END"
        )
    with pytest.raises(StorageError):
        await rewrap_data_keys(f"sqlite:///{tmp_path}", "tested", both)
    with change(tmp_path) as connection:
        connection.execute("DROP TRIGGER stop")
    assert await rewrap_data_keys(f"sqlite:///{tmp_path}", "tested", both) == Rewrapping(3, 0)
    assert await read_log(tmp_path, new, "acme/4") == [b"x"]


async def test_with_a_log_its_data_key_goes_so_that_remains_of_it_are_unreadable(tmp_path: Path) -> None:
    keys = create_keys()
    await write(tmp_path, keys)
    rows = _payloads(tmp_path)
    async with store_of(tmp_path, keys) as store:
        await store.documents.delete(NOTES, f"{PLACE}/1")
        await store.log.delete(PLACE)
        assert await store.log.read(PLACE) == []
    with change(tmp_path) as connection:
        assert connection.execute("SELECT count(*) FROM tested_documents_data_keys").fetchone() == (0,)
        connection.execute(
            "INSERT INTO tested_log VALUES (?, ?, ?, ?, ?)", rows[0]
        )  # as from an old copy of the disk
    with pytest.raises(StoreDamagedError, match=r"data key [0-9a-f]{16} is gone"):
        await read_log(tmp_path, keys)


async def test_documents_are_opened_one_after_the_other(tmp_path: Path) -> None:
    async with store_of(tmp_path, create_keys()) as store:
        await store.documents.prepare(NOTES)
        for number in range(8):
            await store.documents.insert(NOTES, f"{PLACE}/{number}", {"number": number, "text": "x" * MIB})
        tracemalloc.start()
        try:
            found = await store.documents.find(NOTES, {})
            _, most = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
    assert len(found) == 8
    assert most < 2 * 8 * MIB


async def write_two_scopes(folder: Path, keys: WrappingKeys) -> None:
    """Write a note and a log into each of two scopes, and damage the data key of the first."""
    async with store_of(folder, keys) as store:
        await store.documents.prepare(NOTES)
        for number in (1, 2):
            await store.documents.insert(NOTES, f"acme/deb-{number}/1", {"number": number, "text": WORD})
            await store.log.append(f"acme/deb-{number}", Record(1, "a", (b"x",)))
    damage_data_key(database(folder), "tested", PLACE)


async def test_a_damaged_data_key_hides_nothing_that_others_seal(tmp_path: Path) -> None:
    keys = create_keys()
    await write_two_scopes(tmp_path, keys)
    async with store_of(tmp_path, keys) as store:
        damaged, whole = await store.documents.find(NOTES, {}, order=(Order("number"),))
        assert (isinstance(damaged.fields["text"], dict), whole.fields["text"]) == (True, WORD)
        with pytest.raises(StoreDamagedError, match=r"data key [0-9a-f]{16} is gone or damaged"):
            await store.documents.get(NOTES, f"{PLACE}/1")
        with pytest.raises(StoreDamagedError, match=r"data key [0-9a-f]{16} is gone or damaged"):
            await store.log.read(PLACE)


async def test_a_damaged_data_key_does_not_end_a_rotation(tmp_path: Path) -> None:
    old, new = create_keys(), create_keys()
    await write_two_scopes(tmp_path, old)
    both = WrappingKeys((*new.keys, *old.keys))
    assert await rewrap_data_keys(f"sqlite:///{tmp_path}", "tested", both) == Rewrapping(1, 1)


async def test_a_document_that_owns_a_key_takes_it_along(tmp_path: Path) -> None:
    keys = create_keys()
    async with store_of(tmp_path, keys) as store:
        await store.documents.prepare(OWNERS, NOTES)
        await store.documents.insert(OWNERS, PLACE, {"text": "x"})
        await store.documents.insert(NOTES, f"{PLACE}/1", {"text": "x"})
        await store.documents.insert(OWNERS, "acme/deb-2", {"text": "x"})
        await store.documents.delete(NOTES, f"{PLACE}/1")
        assert len(await _data_keys(store.documents)) == 2
        await store.documents.delete(OWNERS, PLACE)
        assert len(await _data_keys(store.documents)) == 1


async def _data_keys(documents: Documents) -> list[str]:
    return [str(each.fields["scope"]) for each in await documents.find(DATA_KEYS, {})]


async def test_a_replica_notices_that_a_log_was_deleted_and_begun_anew(tmp_path: Path) -> None:
    keys = create_keys()
    async with store_of(tmp_path, keys) as one, store_of(tmp_path, keys) as other:
        await one.log.append(PLACE, Record(1, "a", (b"first",)))
        await other.log.read(PLACE)
        await one.log.delete(PLACE)
        await other.log.append(PLACE, Record(1, "b", (b"anew",)))
        (record,) = await one.log.read(PLACE)
        assert record.entries == (b"anew",)
        await one.log.append(PLACE, Record(2, "c", (b"and on",)))
        assert [each.entries for each in await other.log.read(PLACE)] == [(b"anew",), (b"and on",)]


async def test_two_replicas_make_one_data_key(tmp_path: Path) -> None:
    keys = create_keys()
    async with store_of(tmp_path, keys) as one, store_of(tmp_path, keys) as other:
        await one.documents.prepare(NOTES)
        await asyncio.gather(
            *(
                store.documents.insert(NOTES, f"{PLACE}/{number}", {"text": f"{number}"})
                for number, store in enumerate([one, other] * 8)
            )
        )
        assert await _data_keys(one.documents) == [PLACE]
        assert {str(each.fields["text"]) for each in await other.documents.find(NOTES, {})} == {
            str(number) for number in range(16)
        }


async def test_a_follower_gets_plain_entries_and_outlives_the_log(tmp_path: Path) -> None:
    keys = create_keys()
    async with (
        asyncio.timeout(20),
        store_of(tmp_path, keys) as store,
        aclosing(store.log.follow(PLACE)) as records,
    ):
        await store.log.append(PLACE, Record(1, "a", (b"one",)))
        assert (await anext(records)).entries == (b"one",)
        following = asyncio.ensure_future(anext(records))
        await store.log.append(PLACE, Record(2, "b", (b"two",)))
        assert (await following).entries == (b"two",)
