"""Nothing within a quotation can close it, and to see to that takes no longer than to read it."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.runtime.quotation import quote_in_marks


@given(st.text(alphabet="<>a \n", max_size=40))
def test_the_closing_marks_stand_nowhere_in_what_is_quoted(text: str) -> None:
    opening, *told, closing = quote_in_marks(text).split("\n")
    assert "\n".join(told) == text
    assert re.fullmatch(">{3,}", closing)
    assert opening == "<" * len(closing)
    assert closing not in text
    assert closing == ">>>" or closing[1:] in text, "no more marks than it takes"


@pytest.mark.timeout(20)
@pytest.mark.parametrize("text", [">" * 4_000_000, "words " * 600_000 + ">" * 400_000, "> " * 2_000_000])
def test_a_text_of_closing_marks_is_quoted_at_once(text: str) -> None:
    """One that is tried with one mark more each time takes hours."""
    assert text in quote_in_marks(text)
