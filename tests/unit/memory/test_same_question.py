"""Which questions ask the same, by their words."""

import pytest

from parley.memory.same_question import ask_the_same

FENCE = "Does the garden need a fence?"


@pytest.mark.parametrize(
    ("later", "stand"),
    [
        (FENCE, "No."),
        ("After the flood: does the garden need a fence?", "No."),
        ("Costs have risen. Does the garden need the fence? Answer in a line.", "No."),
        ("Should the garden get a fence?", "There is no need of one."),
    ],
)
def test_questions_ask_the_same_if_each_asks_in_the_words_of_the_other_and_its_stand(
    later: str, stand: str
) -> None:
    assert ask_the_same((FENCE, "Yes, it should get one."), (later, stand))


@pytest.mark.parametrize(
    "later",
    [
        "Does the orchard need a fence?",
        "Does the garden need a high fence?",
        "Does the garden need a gate?",
    ],
)
def test_questions_with_another_word_are_not_known_to_ask_the_same(later: str) -> None:
    assert not ask_the_same((FENCE, "Yes."), (later, "No."))
    assert not ask_the_same((later, "Yes."), (FENCE, "No."))


def test_questions_of_few_words_are_not_known_to_ask_the_same() -> None:
    assert not ask_the_same(("Is it ready?", "Yes."), ("Is it ready?", "No."))


def test_a_question_that_names_what_the_earlier_stand_waited_for_is_not_known_to_ask_the_same() -> None:
    later = "The deer are back. Does the garden need a fence?", "Yes."
    assert ask_the_same((FENCE, "No, save the money."), later)
    assert not ask_the_same((FENCE, "Not until the deer are back."), later)
