"""Whole sentences out of what a model wrote."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.orchestrator.model.sentences import first_sentence, to_prose
from tests.support.growth import check_growth


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("Start small. Grow later. And then the", "Start small. Grow later."),
        ("Start small.\n\nGrow\nlater!", "Start small. Grow later!"),
        ("Use it. It is fast. Use it. It is fast. Use", "Use it. It is fast."),
        ("It costs 3.5 dollars. It", "It costs 3.5 dollars."),
        ("1. Use a queue. 2. Use", "1. Use a queue."),
        ('He said "wait." Then', 'He said "wait."'),
        ("It never ends", "It never ends …"),
        ("Is it? Yes", "Is it?"),
        ("  ", ""),
    ],
)
def test_a_text_is_cut_at_the_end_of_a_sentence_and_says_nothing_twice(text: str, sentences: str) -> None:
    assert to_prose(text) == sentences


def test_the_first_sentence_is_whole() -> None:
    assert first_sentence("Start small. Grow later.") == "Start small."
    assert first_sentence("Start small and") == "Start small and …"
    assert first_sentence("") == ""


@pytest.mark.parametrize("unit", ["word ", "wordword", "!", "a!x", "1. ", '"', '."'])
def test_no_text_takes_long(unit: str) -> None:
    check_growth(lambda length: to_prose(unit * (length // len(unit))), 262_144)


@given(st.text())
def test_any_text_becomes_one_paragraph_of_its_own_words(text: str) -> None:
    made = to_prose(text)
    assert "\n" not in made
    assert set(made.removesuffix(" …").split()) <= set(text.split()) | {
        made.removesuffix(" …").split(" ")[-1]
    } - {""}
