"""What is kept of a text that has to be shortened and whose passages are known."""

import re

from hypothesis import given
from hypothesis import strategies as st

from parley.runtime.passages import keep_passages, move_passages
from parley.v1.source_pb2 import Passage

TEXT = "aaaa bbbb cccc dddd eeee "
MARK = re.compile(r"\n\[… (\d+) characters left out …\]\n")


def passages(*places: tuple[int, int]) -> list[Passage]:
    return [Passage(start=start, end=end) for start, end in places]


def test_the_first_passages_are_kept_in_the_order_of_the_text() -> None:
    kept = keep_passages(TEXT, passages((15, 20), (5, 10), (20, 25)), 10)
    assert kept == (
        "\n[… 5 characters left out …]\nbbbb \n[… 5 characters left out …]\ndddd \n[… 5 characters left out …]\n"
    )


def test_what_room_is_left_goes_to_the_beginning() -> None:
    assert MARK.sub("|", keep_passages(TEXT, passages((15, 20)), 12)) == "aaaa bb|dddd |"


def test_the_last_passage_that_fits_is_cut() -> None:
    assert MARK.sub("|", keep_passages(TEXT, passages((15, 20), (5, 10)), 7)) == "|bb|dddd |"


def test_a_text_that_fits_is_left_as_it_is() -> None:
    assert keep_passages(TEXT, passages((15, 20)), len(TEXT)) == TEXT


def test_passages_move_with_their_text_and_what_stands_before_it_comes_first() -> None:
    assert move_passages(passages((15, 20)), 6) == passages((0, 6), (21, 26))


@given(
    st.text("ab\n", max_size=60),
    st.lists(st.tuples(st.integers(0, 80), st.integers(1, 30)), max_size=8),
    st.integers(0, 80),
)
def test_whatever_the_passages_are_every_character_is_kept_or_counted(
    text: str, places: list[tuple[int, int]], kept: int
) -> None:
    shown = keep_passages(text, passages(*((start, start + size) for start, size in places)), kept)
    gone = sum(map(int, MARK.findall(shown)))
    assert len(MARK.sub("", shown)) == len(text) - gone == min(kept, len(text))
