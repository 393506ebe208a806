from pathlib import Path

import pytest

from parley.runtime import watched_files
from parley.runtime.watched_files import WatchedFiles


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(watched_files, "_CHECK_SECONDS", 0.0)
    path = tmp_path / "secret"
    path.write_text("one")
    return path


def test_what_was_put_in_place_of_a_file_is_read(file: Path) -> None:
    files = WatchedFiles({"NAME": file})
    assert files.contents() == (b"one",)
    other = file.with_suffix(".new")
    other.write_text("two")
    other.replace(file)
    assert files.contents() == (b"two",)


def test_while_a_file_is_away_or_of_no_use_what_it_held_counts(file: Path) -> None:
    def check(contents: tuple[bytes, ...]) -> None:
        if b"bad" in contents[0]:
            raise ValueError("bad")

    files = WatchedFiles({"NAME": file}, check)
    file.write_text("bad content")
    assert files.contents() == (b"one",)
    file.unlink()
    assert files.contents() == (b"one",)
    file.write_text("three")
    assert files.contents() == (b"three",)
