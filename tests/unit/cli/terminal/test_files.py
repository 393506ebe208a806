"""Files that are whole or untouched."""

from pathlib import Path

import pytest

from parley.cli.errors import CommandError
from parley.cli.terminal.files import write_file


def test_a_file_is_written_whole_with_its_parents(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b.txt"
    write_file(target, "one\n")
    write_file(target, "two\n")
    assert target.read_text() == "two\n"
    assert list(target.parent.iterdir()) == [target]


def test_a_link_stays_a_link_and_a_device_is_written_to(tmp_path: Path) -> None:
    (tmp_path / "real.txt").write_text("old")
    (tmp_path / "link.txt").symlink_to(tmp_path / "real.txt")
    write_file(tmp_path / "link.txt", "new")
    assert (tmp_path / "link.txt").is_symlink()
    assert (tmp_path / "real.txt").read_text() == "new"
    write_file(Path("/dev/null"), "gone")


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(CommandError, match=r"file/x\.txt: cannot be written: (Not a directory|File exists)"):
        write_file(tmp_path / "file" / "x.txt", "text")
    with pytest.raises(CommandError, match="cannot be written: Is a directory"):
        write_file(tmp_path, "text")
