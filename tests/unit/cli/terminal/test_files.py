"""Files that are whole or untouched."""

import stat
from pathlib import Path

import pytest

from parley.cli.errors import CommandError
from parley.cli.terminal.files import write_file, write_new_file


def test_a_file_is_written_whole_with_its_parents(tmp_path: Path) -> None:
    target = tmp_path / "a" / "b.txt"
    write_file(target, "one\n")
    write_file(target, "two\n")
    assert target.read_text() == "two\n"
    assert list(target.parent.iterdir()) == [target]


def test_a_folder_that_is_made_belongs_to_the_group_of_a_shared_one(tmp_path: Path) -> None:
    tmp_path.chmod(0o2770)
    write_file(tmp_path / "made" / "answer.md", "x")
    assert (tmp_path / "made").stat().st_mode & stat.S_ISGID


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


def test_a_new_file_takes_the_next_free_name_and_leaves_what_is_there(tmp_path: Path) -> None:
    path = tmp_path / "a" / "x.md"
    assert write_new_file(path, "one") == path
    assert write_new_file(path, "two") == path.with_name("x-2.md")
    (path.with_name("x-3.md")).symlink_to(tmp_path / "nowhere")
    assert write_new_file(path, "three") == path.with_name("x-4.md")
    assert write_new_file(path, "two") == path.with_name("x-2.md"), "it is there already"
    assert [path.with_name(name).read_text() for name in ("x.md", "x-2.md", "x-4.md")] == [
        "one",
        "two",
        "three",
    ]
    assert not (tmp_path / "nowhere").exists()


def test_a_new_file_that_cannot_be_written_leaves_no_name_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail_as_full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", fail_as_full)
    with pytest.raises(CommandError, match=r"x\.md: cannot be written: No space left on device"):
        write_new_file(tmp_path / "x.md", "text")
    assert list(tmp_path.iterdir()) == []
