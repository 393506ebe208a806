"""Titles and first sentences of long texts."""

import pytest

from parley.orchestrator.model.short_text import to_headline, to_line, to_listed_question, to_title


@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("**Decision.** Keep the charge in the\nrequest. More.", "Keep the charge in the request."),
        ("# Answer\n\nUse PostgreSQL 15 for it. And so.", "Use PostgreSQL 15 for it."),
        ("- Use one thing now.\n- b", "Use one thing now."),
        ("```json\n{}\n```\n\nDo it that way!", "Do it that way!"),
        ("Yes.", "Yes."),
        ("**42.** The rest follows here. More.", "42. The rest follows here."),
        ("Take a queue, e.g. that of the store. More.", "Take a queue, e.g. that of the store."),
        ("We should **not** do this, since `x.y` is bad. B", "We should not do this, since `x.y` is bad."),
    ],
)
def test_a_headline_is_the_first_that_a_text_says(written: str, said: str) -> None:
    assert to_headline(written) == said


def test_a_title_is_the_whole_question_or_the_sentence_that_asks_or_its_beginning() -> None:
    assert to_title("Which\nstore?") == "Which store?"
    long = f"{'We sell things and run a shop. ' * 8}How should we take payments? Thanks."
    assert to_title(long) == "How should we take payments?"
    assert to_title("word " * 60).endswith("word …")
    assert len(to_title("word " * 60)) <= 120


def test_a_line_keeps_to_its_length_and_ends_after_a_word() -> None:
    assert to_line("a  b\nc", 10) == "a b c"
    assert to_line("alpha beta gamma", 12) == "alpha beta …"
    assert to_line("x" * 50, 10) == "xxxxxxxx …"
    assert to_line("an unbrokentext", 10) == "an unbro …"


def test_a_list_shows_a_question_whole_or_says_that_it_goes_on() -> None:
    assert to_listed_question("Which\nstore?") == "Which\nstore?"
    long = f"{'It has to last. ' * 12}It should cost no more than 20,000 dollars."
    assert to_listed_question(long).endswith("It has to last. It …")
    assert len(to_listed_question(long)) <= 200
