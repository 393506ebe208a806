"""`parley up` beside what has its data folder already."""

from pathlib import Path

import pytest

from parley.cli.__main__ import run
from parley.storage.folder_lock import FolderLock


@pytest.mark.parametrize(
    ("published", "holder"),
    [
        (
            "127.0.0.1:9,127.0.0.1:10",
            (
                "a command, such as parley debate in another terminal (its orchestrator is at 127.0.0.1:9); "
                "wait until it ends, or stop it"
            ),
        ),
        ("127.0.0.1:9,127.0.0.1:10,127.0.0.1:8", "the parley up at 127.0.0.1:9; stop that one first"),
    ],
    ids=["a debate", "another up"],
)
def test_it_says_what_kind_of_command_has_the_folder(
    published: str, holder: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lock = FolderLock.acquire(folder / "data")
    assert lock is not None
    with lock:
        lock.publish(published)
        assert run(["up"]) == 1
    assert capsys.readouterr().err.splitlines()[-1] == f"parley: {folder / 'data'} is in use by {holder}"
