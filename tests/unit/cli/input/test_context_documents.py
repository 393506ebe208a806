"""What `--context` reads, what it leaves out, and what it refuses."""

import os
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.cli.errors import GENERAL, INVALID_ARGUMENTS, CommandError
from parley.cli.input import context_documents
from parley.cli.input.context_documents import read_context


def write_files(folder: Path, files: dict[str, bytes | str]) -> Path:
    for name, held in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(held.encode() if isinstance(held, str) else held)
    return folder


def refusal(path: Path, code: int = INVALID_ARGUMENTS) -> str:
    """The one line that says why, without option and path."""
    with pytest.raises(CommandError) as caught:
        read_context(path)
    assert caught.value.code == code
    message = str(caught.value)
    assert "\n" not in message
    assert message.startswith(f"--context {path}: ")
    return message.removeprefix(f"--context {path}: ")


NAMES = st.text(st.characters(codec="utf-8", exclude_characters="/\0"), min_size=1, max_size=20).filter(
    lambda name: name not in {".", ".."} and len(name.encode()) < 200
)
FILES = st.dictionaries(st.tuples(NAMES, NAMES), st.text(max_size=20) | st.binary(max_size=20), max_size=6)


@given(FILES)
def test_documents_have_sorted_plain_relative_paths_and_each_file_is_read_or_counted(
    files: dict[tuple[str, str], str | bytes],
) -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = write_files(
            Path(name),
            {f"a{number}-{top}/{low}": held for number, ((top, low), held) in enumerate(files.items())},
        )
        write_files(folder, {"zz": "there is always one"})
        found = read_context(folder)
        paths = [path for path, _ in found.documents]
        assert paths == sorted(set(paths))
        assert all(path.isprintable() or "\n" not in path for path in paths)
        assert not any(part.startswith(".") for path in paths for part in path.split("/"))
        for path, text in found.documents:
            assert text.strip()
            assert (folder / path).read_bytes().removeprefix(b"\xef\xbb\xbf") == text.encode()
        left_out = len(files) + 1 - len(paths)
        assert found.notice.startswith(f"--context {folder}: left out {left_out} (") == bool(left_out)


def test_documents_come_from_all_folders_below_in_the_order_of_their_paths(tmp_path: Path) -> None:
    write_files(tmp_path, {"b.md": "3", "a/z.md": "2", "a-b/x.md": "1", "a/deep/er.md": "2b"})
    assert read_context(tmp_path).documents == (
        ("a-b/x.md", "1"),
        ("a/deep/er.md", "2b"),
        ("a/z.md", "2"),
        ("b.md", "3"),
    )
    assert read_context(tmp_path).notice == ""


def test_one_file_is_one_document_under_its_name_hidden_or_not(tmp_path: Path) -> None:
    write_files(tmp_path, {"docs/.a.md": b"\xef\xbb\xbfone\r\n"})
    assert read_context(tmp_path / "docs/.a.md").documents == ((".a.md", "one\r\n"),)


def test_what_is_left_out_is_counted_by_why(tmp_path: Path) -> None:
    write_files(tmp_path, {".git/config": "x", ".env": "x", "latin.txt": b"\xe9t\xe9", "x.bin": b"a\0b"})
    write_files(tmp_path, {"blank": " \n", "a.md": "one", "line\nend.md": "x"})
    os.mkfifo(tmp_path / "pipe")
    found = read_context(tmp_path)
    assert found.documents == (("a.md", "one"),)
    assert found.notice == (
        f"--context {tmp_path}: left out 7 (empty: 1, hidden: 2, no plain file or no plain name: 2, not UTF-8 text: 2)"
    )


def test_links_that_lead_out_are_not_followed_whatever_they_pass_on_the_way(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {"outside/secret.md": "secret", "docs/a.md": "one", "docs/.env": "key", "docs/in/b.md": "two"},
    )
    docs = tmp_path / "docs"
    links = {
        "file.md": "../outside/secret.md",
        "folder": "../outside",
        "hop.md": "folder/secret.md",
        "round": ".",
        "gone.md": "nothing",
        "self.md": "self.md",
        "env.md": ".env",
        "again": "in",
        "same.md": "a.md",
    }
    for name, target in links.items():
        (docs / name).symlink_to(target)
    found = read_context(docs)
    assert found.documents == (("a.md", "one"), ("in/b.md", "two"), ("same.md", "one"))
    assert found.notice == f"--context {docs}: left out 7 (hidden: 1, links out of the folder: 6)"


def test_a_link_that_was_named_itself_is_followed(tmp_path: Path) -> None:
    write_files(tmp_path, {"docs/a.md": "one"})
    (tmp_path / "link").symlink_to("docs")
    (tmp_path / "b.md").symlink_to("docs/a.md")
    assert read_context(tmp_path / "link").documents == (("a.md", "one"),)
    assert read_context(tmp_path / "b.md").documents == (("b.md", "one"),)


def test_four_mebibytes_are_the_most_together(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert context_documents.MAX_BYTES == 4 * 1024 * 1024
    monkeypatch.setattr(context_documents, "MAX_BYTES", 12)
    write_files(tmp_path, {"docs/a.md": "123456", "docs/b.md": b"\xef\xbb\xbf12345\xc3\xa9"[:-2] + b"6"})
    assert len(read_context(tmp_path / "docs").documents) == 2
    write_files(tmp_path, {"docs/c.md": "1"})
    assert "of text; name a smaller part" in refusal(tmp_path / "docs")
    write_files(tmp_path, {"one.md": "é" * 6})
    assert len(read_context(tmp_path / "one.md").documents) == 1
    for length in range(12, 20):
        write_files(tmp_path, {"one.md": "1" + "é" * (length // 2)})
        assert "of text" in refusal(tmp_path / "one.md")


@pytest.mark.parametrize("beyond", range(9))
def test_a_long_file_is_too_much_wherever_the_bound_cuts_it(
    beyond: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context_documents, "MAX_BYTES", 10)
    write_files(tmp_path, {"a.md": b"\xef\xbb\xbf" + b"1" * beyond + "🦦".encode() * 9})
    assert "has more than" in refusal(tmp_path / "a.md")


def test_a_large_binary_is_left_out_without_being_read_whole(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(context_documents, "MAX_BYTES", 100)
    write_files(tmp_path, {"a.md": "one"})
    with (tmp_path / "b.bin").open("wb") as file:
        file.truncate(8 * 1024**3)
    assert read_context(tmp_path).notice == f"--context {tmp_path}: left out 1 (not UTF-8 text: 1)"


def test_a_folder_with_too_many_files_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context_documents, "MAX_FILES", 3)
    write_files(tmp_path, dict.fromkeys(("a/1", "a/2", "b/3"), "x"))
    assert len(read_context(tmp_path).documents) == 3
    write_files(tmp_path, {"b/4.bin": b"\0"})
    assert refusal(tmp_path) == "has more than 3 files; name a smaller part"


def test_nothing_to_read_is_refused_and_says_what_there_was(tmp_path: Path) -> None:
    assert refusal(tmp_path) == "has no text"
    write_files(tmp_path, {"x.bin": b"\0", ".y": "hidden", "blank.md": " "})
    assert refusal(tmp_path) == "has no text (empty: 1, hidden: 1, not UTF-8 text: 1)"
    assert refusal(tmp_path / "x.bin") == "is not UTF-8 text"
    assert refusal(tmp_path / "blank.md") == "is empty"
    assert refusal(tmp_path / "gone") == "there is no such file or folder"
    os.mkfifo(tmp_path / "pipe")
    assert refusal(tmp_path / "pipe") == "is neither a file nor a folder"


def test_a_file_that_the_system_cannot_read_is_told_apart_from_a_wrong_command_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_files(tmp_path, {"a.md": "one", "in/b.md": "two"})
    opened = Path.open

    def open_or_fail(path: Path, mode: str) -> object:
        if path.name == "b.md":
            raise PermissionError(13, "Permission denied", str(path))
        return opened(path, mode)

    monkeypatch.setattr(Path, "open", open_or_fail)
    assert refusal(tmp_path, GENERAL) == f"{tmp_path / 'in/b.md'}: cannot be read: Permission denied"
    assert refusal(tmp_path / "in/b.md", GENERAL) == "cannot be read: Permission denied"
