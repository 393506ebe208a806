from pathlib import Path

import pytest

from parley.runtime import changing_files
from parley.runtime.changing_files import ChangingFiles


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(changing_files, "_LOOK_SECONDS", 0.0)
    path = tmp_path / "secret"
    path.write_text("one")
    return path


def test_what_was_put_in_place_of_a_file_is_read(file: Path) -> None:
    files = ChangingFiles("NAME", file)
    assert files.contents() == (b"one",)
    other = file.with_suffix(".new")
    other.write_text("two")
    other.replace(file)
    assert files.contents() == (b"two",)


def test_while_a_file_is_away_or_of_no_use_what_it_held_counts(file: Path) -> None:
    def check(contents: tuple[bytes, ...]) -> None:
        if b"bad" in contents[0]:
            raise ValueError("bad")

    files = ChangingFiles("NAME", file, check=check)
    file.write_text("bad content")
    assert files.contents() == (b"one",)
    file.unlink()
    assert files.contents() == (b"one",)
    file.write_text("three")
    assert files.contents() == (b"three",)
