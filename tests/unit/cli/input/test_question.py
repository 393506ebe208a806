"""The question from the command line, from stdin and from a file."""

import io
import sys
from pathlib import Path

import pytest

from parley.cli.errors import INVALID_ARGUMENTS, CommandError
from parley.cli.input.question import read_question


class Terminal(io.BytesIO):
    """What a person types."""

    def isatty(self) -> bool:
        return True


def give(monkeypatch: pytest.MonkeyPatch, stdin: io.BytesIO) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(stdin))


@pytest.mark.parametrize("text", [None, "-"])
def test_what_is_piped_is_the_question_trimmed(text: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, io.BytesIO("  Which?\nÄ or B?\n\n".encode()))
    assert read_question(text, None) == "Which?\nÄ or B?"


def test_a_question_that_is_given_leaves_stdin_alone(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stdin = io.BytesIO(b"other")
    give(monkeypatch, stdin)
    (tmp_path / "q.md").write_text("From a file?\n")
    assert read_question("Which?", None) == "Which?"
    assert read_question(None, tmp_path / "q.md") == "From a file?\n"
    assert stdin.read() == b"other"


def test_a_terminal_is_read_only_where_that_was_asked_for(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    give(monkeypatch, Terminal(b"Typed?\n"))
    with pytest.raises(CommandError, match="give a question, or a file"):
        read_question(None, None)
    assert read_question("-", None) == "Typed?"
    assert "Ctrl-D" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (b" \n", "stdin has no question"),
        (b"\xe9t\xe9", "the question on stdin is not UTF-8 text"),
        (b"x" * (256 * 1024 + 1), "the question must be at most 256 KiB"),
        (b"x" * (256 * 1024) + b"\n\n\nand more", "the question must be at most 256 KiB"),
    ],
)
def test_what_is_no_question_is_refused(given: bytes, problem: str, monkeypatch: pytest.MonkeyPatch) -> None:
    give(monkeypatch, io.BytesIO(given))
    with pytest.raises(CommandError, match=problem) as raised:
        read_question("-", None)
    assert raised.value.code == INVALID_ARGUMENTS


@pytest.mark.parametrize("end", [b"", b"\n", b"\r\n"])
def test_the_line_end_behind_a_long_question_does_not_count(
    end: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    give(monkeypatch, io.BytesIO(b"x" * (256 * 1024) + end))
    assert read_question("-", None) == "x" * (256 * 1024)


def test_stdin_that_was_closed_is_no_question(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(CommandError, match="give a question, or a file"):
        read_question(None, None)
