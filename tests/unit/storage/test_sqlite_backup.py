"""A backup is whole, taken while the database is written, and put back only where nothing is lost by it."""

import json
import os
import signal
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from parley.storage.data_folder import DATABASE
from parley.storage.opening import open_store
from parley.storage.ports import Record, StorageError
from parley.storage.sqlite.backup import back_up, restore


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "data"


async def write_records(folder: Path, service: str, count: int) -> None:
    async with open_store(f"sqlite:///{folder}", service) as store:
        for number in range(count):
            await store.log.append("debate", Record(number + 1, f"a{number}", (b"event",)))


async def entries(folder: Path, service: str) -> int:
    async with open_store(f"sqlite:///{folder}", service) as store:
        return len(await store.log.read("debate"))


async def test_a_backup_of_a_database_in_use_holds_what_was_acknowledged_and_a_copied_file_does_not(
    tmp_path: Path, folder: Path
) -> None:
    async with open_store(f"sqlite:///{folder}", "orchestrator") as store:
        await store.log.append("debate", Record(1, "a", (b"event",)))
        copied = tmp_path / "copied"
        copied.mkdir()
        (copied / "parley.db").write_bytes((folder / "parley.db").read_bytes())
        assert back_up(folder, tmp_path / "backup", DATABASE) == ["parley.db"]
        await store.log.append("debate", Record(2, "b", (b"later",)))
    restore(tmp_path / "backup", tmp_path / "restored", DATABASE)
    assert await entries(tmp_path / "restored", "orchestrator") == 1
    assert await entries(copied, "orchestrator") == 0, "this is why a file is not copied"


async def test_every_service_is_copied(tmp_path: Path, folder: Path) -> None:
    for service in ("gateway", "memory", "orchestrator"):
        await write_records(folder, service, 3)
    assert back_up(folder, tmp_path / "backup", DATABASE) == ["parley.db"]
    restore(tmp_path / "backup", tmp_path / "restored", DATABASE)
    assert [await entries(tmp_path / "restored", each) for each in ("gateway", "memory", "orchestrator")] == [
        3
    ] * 3


async def test_compressed_records_come_back_and_an_older_version_refuses_the_backup_as_it_refuses_the_data(
    tmp_path: Path, folder: Path
) -> None:
    large = Record(1, "a", (b"an argument, made again and again; " * 200,))
    async with open_store(f"sqlite:///{folder}", "orchestrator") as store:
        await store.log.append("debate", large)
    back_up(folder, tmp_path / "backup", DATABASE)
    restored = tmp_path / "restored"
    restore(tmp_path / "backup", restored, DATABASE)
    for each in (folder, tmp_path / "backup", restored):
        with closing(sqlite3.connect(each / DATABASE)) as connection:
            assert connection.execute("PRAGMA user_version").fetchone() == (2,)
            ((blob,),) = connection.execute("SELECT entries FROM orchestrator_log")
            assert len(blob) < 1000
    async with open_store(f"sqlite:///{restored}", "orchestrator") as store:
        assert await store.log.read("debate") == [large]


async def test_what_is_there_is_never_overwritten(tmp_path: Path, folder: Path) -> None:
    await write_records(folder, "orchestrator", 1)
    back_up(folder, tmp_path / "backup", DATABASE)
    with pytest.raises(StorageError, match="already exists; name a new folder"):
        back_up(folder, tmp_path / "backup", DATABASE)
    with pytest.raises(StorageError, match="restore into an empty folder"):
        restore(tmp_path / "backup", folder, DATABASE)
    with pytest.raises(StorageError, match="holds no database"):
        back_up(tmp_path / "nowhere", tmp_path / "other", DATABASE)


async def test_a_folder_of_an_earlier_parley_is_not_backed_up_since_nothing_could_restore_it(
    tmp_path: Path, folder: Path
) -> None:
    await write_records(folder, "orchestrator", 1)
    (folder / DATABASE).rename(folder / "orchestrator.db")
    with pytest.raises(StorageError, match=r"holds orchestrator\.db and no parley\.db: it is of an earlier"):
        back_up(folder, tmp_path / "backup", DATABASE)
    assert not (tmp_path / "backup").exists()


async def test_a_backup_that_is_not_whole_is_not_restored(tmp_path: Path, folder: Path) -> None:
    await write_records(folder, "orchestrator", 5)
    backup, restored = tmp_path / "backup", tmp_path / "restored"
    back_up(folder, backup, DATABASE)
    file, manifest = backup / "parley.db", backup / "backup.json"
    whole, told = file.read_bytes(), json.loads(manifest.read_text())
    for broken, why in (
        (lambda: file.write_bytes(whole[:-100]), "not as it was written"),
        (file.unlink, "missing or not as it was written"),
        (lambda: manifest.write_text(json.dumps({**told, "format": 2})), "of a newer version"),
        (lambda: manifest.write_text(json.dumps({**told, "sha256": {"../x.db": ""}})), "is no backup"),
        (lambda: manifest.write_text(json.dumps({**told, "sha256": {}})), "of an earlier Parley"),
        (manifest.unlink, "is no backup"),
    ):
        broken()
        with pytest.raises(StorageError, match=why):
            restore(backup, restored, DATABASE)
        assert not restored.exists(), "nothing is half restored"
        file.write_bytes(whole)


@pytest.mark.parametrize("step", ["rename", "rmdir"])
async def test_a_restore_that_was_killed_can_be_run_again_and_its_folder_is_not_used_before(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    for service in ("orchestrator", "ratings"):
        await write_records(folder, service, 3)
    backup, restored = tmp_path / "backup", tmp_path / "restored"
    back_up(folder, backup, DATABASE)
    process = os.fork()
    if process == 0:
        kill_at(monkeypatch, step)
        restore(backup, restored, DATABASE)
        os._exit(0)
    _, status = os.waitpid(process, 0)  # noqa: ASYNC222 - it dies at once
    assert os.waitstatus_to_exitcode(status) == -signal.SIGKILL
    with pytest.raises(StorageError, match="run parley restore again"):
        await entries(restored, "orchestrator")
    assert restore(backup, restored, DATABASE) == ["parley.db"]
    assert [await entries(restored, each) for each in ("orchestrator", "ratings")] == [3, 3]
    assert not [each for each in restored.iterdir() if each.name.startswith(".restoring")]


def kill_at(monkeypatch: pytest.MonkeyPatch, step: str) -> None:
    monkeypatch.setattr(Path, step, lambda *_: os.kill(os.getpid(), signal.SIGKILL))


async def test_a_restore_that_fails_leaves_the_folder_empty(
    tmp_path: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    await write_records(folder, "orchestrator", 3)
    back_up(folder, tmp_path / "backup", DATABASE)
    with monkeypatch.context() as patch:
        patch.setattr(Path, "rename", lambda *_: (_ for _ in ()).throw(OSError("no space left")))
        with pytest.raises(OSError, match="no space left"):
            restore(tmp_path / "backup", tmp_path / "restored", DATABASE)
    assert list((tmp_path / "restored").iterdir()) == []


async def test_a_damaged_database_is_not_taken_for_a_backup(tmp_path: Path, folder: Path) -> None:
    await write_records(folder, "orchestrator", 500)
    file = folder / "parley.db"
    content = bytearray(file.read_bytes())
    content[4096 * 3 : 4096 * 5] = b"\xff" * 8192
    file.write_bytes(content)
    with pytest.raises(StorageError, match=r"is damaged|cannot be copied"):
        back_up(folder, tmp_path / "backup", DATABASE)
    assert not (tmp_path / "backup").exists()


async def test_nobody_else_can_read_a_backup(tmp_path: Path, folder: Path) -> None:
    await write_records(folder, "orchestrator", 1)
    back_up(folder, tmp_path / "backup", DATABASE)
    assert (tmp_path / "backup").stat().st_mode & 0o777 == 0o700
    assert {each.stat().st_mode & 0o777 for each in (tmp_path / "backup").iterdir()} == {0o600}
