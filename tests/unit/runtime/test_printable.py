"""Text of others on a terminal."""

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.runtime.printable import picture_text, printable, printable_json, printable_line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain", "plain"),
        ("two\r\nlines\tand a tab", "two\nlines\tand a tab"),
        ("red \x1b[31;1mtext\x1b[0m", "red text"),
        ("\x1b[2J\x1b[Hgone", "gone"),
        ("\x1b]0;title\x07here", "here"),
        ("\x1b]8;;http://x\x1b\\link\x1b]8;;\x1b\\", "link"),
        ("\x1b]52;c;bm93\x07here", "here"),
        ("\x1b]52;c;never ended\nhere", "52;c;never ended\nhere"),
        ("\x1bPdevice\x1b\\ on", " on"),
        ("\x1b(0line\x1bc", "line"),
        ("\x9b2Jeight bits", "eight bits"),
        ("bell\x07 back\x08 null\x00 del\x7f", "bell back null del"),
        ("\u202eturned\u2066", "turned"),
        ("seen\u200b\U000e0068\U000e0069", "seen"),
        ("bro\ud800ken", "broken"),
        ("漢字 e\u0301 👩‍👧 می‌خواهم", "漢字 e\u0301 👩‍👧 می‌خواهم"),
    ],
)
def test_what_would_change_the_terminal_is_left_out(text: str, shown: str) -> None:
    assert printable(text) == shown


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_nothing_controls_the_terminal(text: str) -> None:
    assert all(each in "\n\t" or not (each < " " or "\x7f" <= each <= "\x9f") for each in printable(text))


def test_a_line_stays_one_and_joined_signs_are_taken_apart_in_a_picture() -> None:
    assert printable_line(" a\n\x1b[1mb\x85c ") == "a b c"
    assert picture_text("👩‍👩‍👧 👍🏽 ❤\ufe0f") == "👩👩👧 👍 ❤"


@given(st.text(alphabet=st.characters(exclude_categories=["Cs"])))
def test_json_means_the_same_and_is_printable(text: str) -> None:
    shown = printable_json(json.dumps([text], ensure_ascii=False))
    assert printable(shown) == shown
    assert json.loads(shown) == [text]
