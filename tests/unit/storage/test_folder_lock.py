import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from parley.storage.folder_lock import FolderLock, describe_holders, is_shared, read_address

HOLD = """
import sys, pathlib
from parley.storage.folder_lock import FolderLock
if sys.argv[2:] == ["share"]:
    lock = FolderLock.share(pathlib.Path(sys.argv[1]), "ratings")
else:
    lock = FolderLock.acquire(pathlib.Path(sys.argv[1]))
    lock.publish("127.0.0.1:7401")
print("held", flush=True)
sys.stdin.read()
"""


def hold(folder: Path, *, share: bool = False) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(folder), *(["share"] if share else [])],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    return process


def test_one_process_owns_a_folder_and_the_second_finds_its_address(tmp_path: Path) -> None:
    with hold(tmp_path) as process:
        assert FolderLock.acquire(tmp_path) is None
        assert read_address(tmp_path) == "127.0.0.1:7401"
        process.kill()


def test_a_killed_owner_is_no_obstacle(tmp_path: Path) -> None:
    with hold(tmp_path) as process:
        process.kill()
    assert (tmp_path / "parley.lock").read_text()
    assert read_address(tmp_path) is None
    lock = FolderLock.acquire(tmp_path)
    assert lock is not None
    assert read_address(tmp_path) is None  # and its address is not taken for the new owner's
    lock.release()


def test_the_address_of_a_killed_owner_is_not_found_while_another_command_looks_for_it(
    tmp_path: Path,
) -> None:
    with hold(tmp_path) as process:
        process.kill()
    with (tmp_path / "parley.lock").open() as looking:
        fcntl.flock(looking, fcntl.LOCK_EX)  # as a reader does for an instant
        assert read_address(tmp_path) is None


def test_a_released_folder_can_be_owned_again(tmp_path: Path) -> None:
    for address in ("a:1", "a-much-longer-address.example:65535", "b:2"):
        lock = FolderLock.acquire(tmp_path / "new" / "folder")
        assert lock is not None
        with lock:
            lock.publish(address)
            assert FolderLock.acquire(tmp_path / "new" / "folder") is None
            assert read_address(tmp_path / "new" / "folder") == address
        assert read_address(tmp_path / "new" / "folder") is None
        lock.release()


def test_an_address_that_was_withdrawn_is_not_found_and_the_folder_stays_owned(tmp_path: Path) -> None:
    lock = FolderLock.acquire(tmp_path)
    assert lock is not None
    with lock:
        lock.publish("127.0.0.1:7401")
        lock.withdraw()
        assert read_address(tmp_path) is None
        assert FolderLock.acquire(tmp_path) is None
        assert describe_holders(tmp_path) == f"process {os.getpid()}"


def test_a_folder_that_is_not_there_has_no_address(tmp_path: Path) -> None:
    assert read_address(tmp_path / "none") is None
    assert not (tmp_path / "none").exists()


def test_what_is_half_written_is_no_address(tmp_path: Path) -> None:
    lock = FolderLock.acquire(tmp_path)
    assert lock is not None
    for content in ("", '{"pid": 1, "addr', "[]", '{"address": 5}'):
        (tmp_path / "parley.lock").write_text(content)
        assert read_address(tmp_path) is None
    lock.release()


def test_services_share_a_folder_and_nobody_owns_it_alone_meanwhile(tmp_path: Path) -> None:
    gateway = FolderLock.share(tmp_path, "gateway")
    memory = FolderLock.share(tmp_path, "memory")
    assert gateway is not None
    assert memory is not None
    assert FolderLock.acquire(tmp_path) is None
    assert read_address(tmp_path) is None
    assert is_shared(tmp_path)
    process = f"(process {os.getpid()})"
    assert describe_holders(tmp_path) == f"parley serve gateway {process} and parley serve memory {process}"
    gateway.release()
    assert FolderLock.acquire(tmp_path) is None
    memory.release()
    alone = FolderLock.acquire(tmp_path)
    assert alone is not None
    with alone:
        assert not is_shared(tmp_path)
        assert FolderLock.share(tmp_path, "memory") is None
        assert describe_holders(tmp_path) == f"process {os.getpid()}"


def test_a_killed_service_is_not_told_of(tmp_path: Path) -> None:
    with hold(tmp_path, share=True) as process:
        assert describe_holders(tmp_path) == f"parley serve ratings (process {process.pid})"
        process.kill()
    assert not is_shared(tmp_path)
    gateway = FolderLock.share(tmp_path, "gateway")
    assert gateway is not None
    with gateway:
        assert describe_holders(tmp_path) == f"parley serve gateway (process {os.getpid()})"


def test_the_lock_is_had_on_a_full_disk_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail_as_full(*_: object) -> int:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "pwrite", fail_as_full)
    lock = FolderLock.acquire(tmp_path)
    assert lock is not None
    with lock:
        assert FolderLock.acquire(tmp_path) is None
        assert describe_holders(tmp_path) == "another process"
