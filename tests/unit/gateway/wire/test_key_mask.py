"""A key that an answer repeats: in whatever pieces it comes, nobody gets it."""

import base64
from itertools import pairwise
from urllib.parse import quote

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.gateway.wire.key_mask import KeyMask, find_key_forms

KEY = "sk-proj/0123456789+abcdef"
FORMS = [KEY, quote(KEY, safe=""), base64.b64encode(KEY.encode()).decode().rstrip("=")[:-1]]


def mask_pieces(pieces: list[str], key: str = KEY) -> str:
    mask = KeyMask(find_key_forms(key))
    return "".join([*map(mask.feed, pieces), mask.end()])


@pytest.mark.parametrize("form", FORMS)
@given(cuts=st.lists(st.integers(0, 80), max_size=8), after=st.sampled_from(["", ".", " and sk-proj"]))
def test_it_is_hidden_wherever_its_pieces_are_cut(form: str, cuts: list[int], after: str) -> None:
    text = f"The key is {form}{after}"
    places = [0, *sorted(cuts), len(text)]
    pieces = [text[begin:end] for begin, end in pairwise(places)]
    shown = mask_pieces(pieces)
    assert form not in shown
    assert shown.startswith("The key is ***")


@given(st.lists(st.text("sk-proj/0123 ab", max_size=12), max_size=10))
def test_any_other_text_comes_as_it_was(pieces: list[str]) -> None:
    text = "".join(pieces)
    assert mask_pieces([*pieces, " end"]) == f"{text} end"


def test_a_text_that_ends_within_it_shows_no_more_than_its_beginning() -> None:
    assert mask_pieces([f"It is {KEY[:-1]}"]) == "It is ***"
    assert mask_pieces(["It begins with sk-"]) == "It begins with sk-"


@pytest.mark.parametrize("key", ["", "ollama", "lm-studio", "no-key"])
def test_a_key_that_is_a_word_is_none(key: str) -> None:
    assert (
        mask_pieces(["Use ollama, or lm-studio with no-key."], key) == "Use ollama, or lm-studio with no-key."
    )


def test_a_key_is_hidden_from_twelve_characters_on() -> None:
    assert mask_pieces(["It is abcdefghijkl."], "abcdefghijkl") == "It is ***."
    assert mask_pieces(["It is abcdefghijk."], "abcdefghijk") == "It is abcdefghijk."
