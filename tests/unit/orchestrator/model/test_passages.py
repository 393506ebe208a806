"""Where large documents are cut, and which of their passages are nearest."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.orchestrator.model.passages import MAX_CUT, choose_size, cut_passages, rank_vectors
from tests.support.growth import check_growth


def cut(text: str, size: int) -> list[str]:
    return [text[each.start : each.end] for each in cut_passages(text, size)]


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Otters float.\n\nDams hold.\nLong since.", ["Otters float.\n\n", "Dams hold.\n", "Long since."]),
        ("Otters float. Dams hold them. All is well", ["Otters float. ", "Dams hold them. ", "All is well"]),
        ("otters float and dams hold them", ["otters float and ", "dams hold them"]),
        ("x" * 40, ["x" * 18, "x" * 18, "x" * 4]),
        ("水" * 10 + "。" + "山" * 10, ["水" * 10 + "。", "山" * 10]),
    ],
)
def test_passages_end_at_a_paragraph_or_else_a_line_a_sentence_a_word(text: str, found: list[str]) -> None:
    assert cut(text, 18) == found


@given(st.text("ab .\n", max_size=300), st.integers(10, 40))
def test_passages_are_the_text_in_order_without_what_is_blank(text: str, size: int) -> None:
    found = cut(text, size)
    assert "".join("".join(found).split()) == "".join(text.split())
    assert all(each.strip() and len(each) <= size for each in found)


def test_there_are_never_more_passages_than_are_embedded() -> None:
    def cut_so_many(words: int) -> None:
        text = "otters float " * words
        assert len(cut_passages(text, choose_size(len(text)))) <= MAX_CUT

    check_growth(cut_so_many, 500_000)


def test_the_nearest_passages_come_first_and_of_equal_ones_the_earlier() -> None:
    assert rank_vectors([1, 0], [[0, 1], [1, 0], [0.6, 0.8], [1, 0]]) == [1, 3, 2, 0]
