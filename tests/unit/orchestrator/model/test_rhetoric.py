"""What the observer marks: each pattern and fallacy where it stands, nothing where it is denied, quoted, or not English."""

import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.orchestrator.model import rhetoric
from parley.orchestrator.model.rhetoric import MAX_CHARACTERS, fallacies_in, is_english, patterns_in
from parley.orchestrator.model.rhetoric_table import FALLACIES, PATTERNS, SIGNS
from tests.support.labelled_debates import read_fitted_debates

REPEATS = re._constants.MAX_REPEAT, re._constants.MIN_REPEAT  # type: ignore[attr-defined]

SHOWN = {
    "concession": "Admittedly, this is slower than what you have in mind.",
    "rebuttal": "That does not follow, as the cache is on another host.",
    "synthesis": "We can combine both, with the queue in front of the table.",
    "authority": "According to the vendor this is the way to do it.",
    "evidence": "In the load test of Monday it took twice as long as before.",
    "technical depth": "The value of `max_overflow` was at 0 since the upgrade.",
    "question": "But who pays for the second region in that case?",
    "analogy": "It works like a valve that is open on one side only.",
    "qualification": "This is the better way unless the table is small.",
    "ad hominem": "Only a fool would put the keys into the table.",
    "bandwagon": "This is right because everybody agrees on it.",
    "false dilemma": "There are only two options for the team to take.",
    "slippery slope": "This will inevitably lead to the end of the project.",
    "straw man": "So you would have us throw away all of the tests.",
    "unnamed authority": "Studies show that this is the best of the ways.",
    "appeal to tradition": "It has always been done in this way by the team.",
    "appeal to emotion": "Think of the children who have to use this.",
    "appeal to ignorance": "No one has shown otherwise, so it is safe to use.",
    "sunk cost": "We have already invested too much for us to stop here.",
    "circular reasoning": "It is the best because it is the best of all.",
}
HARMLESS = (
    "The team of the north has a queue, and its workers read from it in the order in which the tasks have come in.",
    "You should not say that this will inevitably lead to an outage.",
    'The critic said "there are only two options" and that was the error of the first draft.',
    "It is not true that everybody knows the way to the server.",
    "The experience of the user is at the heart of this, and the tables are like those of the shop.",
)


def marks(text: str) -> dict[str, int]:
    return {each.name: each.count for each in (*patterns_in(text), *fallacies_in(text))}


@pytest.mark.parametrize("name", [*PATTERNS, *SIGNS, *FALLACIES])
def test_each_pattern_and_fallacy_is_marked_where_it_stands(name: str) -> None:
    assert marks(SHOWN[name])[name] == 1


def test_a_mark_counts_its_phrases_and_quotes_the_sentence_of_the_first() -> None:
    text = "We go on. Admittedly, it is slow, as the disk is old. I concede that the index was a bad one. It is at the end."
    (mark,) = (each for each in patterns_in(text) if each.name == "concession")
    assert (mark.count, mark.quote) == (2, "Admittedly, it is slow, as the disk is old.")


@pytest.mark.parametrize("text", HARMLESS)
def test_what_is_denied_or_quoted_is_no_fallacy(text: str) -> None:
    assert fallacies_in(text) == []


def test_code_and_quoted_lines_are_not_the_authors_words() -> None:
    text = "This is what the log of the server has:\n```\nonly a fool? admittedly\n```\n> I concede that it is so\nand that is all of it."
    assert marks(text) == {}


def test_no_fallacy_is_found_in_well_argued_debates() -> None:
    texts = [each.text for debate in read_fitted_debates() if not debate.hollow for each in debate.work]
    assert [each for each in texts if fallacies_in(each)] == []


@pytest.mark.parametrize(
    "text",
    [
        "Die Experten sagen, dass experts und evidence keine deutschen Wörter sind; unless auch nicht. Warum?",
        "Les experts disent que la table est trop grande, et que l'evidence ne suffit pas. Pourquoi ?",
        "专家说 evidence 不够。 admittedly?",
    ],
)
def test_of_other_languages_only_what_needs_no_words_is_marked(text: str) -> None:
    assert not is_english(text)
    assert set(marks(text)) == {"question"}


@given(st.text(max_size=300))
def test_any_text_can_be_read(text: str) -> None:
    for mark in (*patterns_in(text), *fallacies_in(text)):
        assert mark.count > 0
        assert 0 < len(mark.quote) <= 160


def test_only_the_beginning_of_a_very_long_text_is_read() -> None:
    text = "It is the one that we have. " * (MAX_CHARACTERS // 28 + 2)
    assert "concession" not in marks(f"{text} Admittedly, it is slow.")


def repeats(parsed: object) -> Iterator[int]:
    """Yield how often at most each repeated part of an expression repeats."""
    for kind, argument in parsed:  # type: ignore[attr-defined]
        if kind in REPEATS:
            yield int(argument[1])
        for inner in argument if isinstance(argument, tuple | list) else ():
            for each in inner if isinstance(inner, list) else (inner,):
                if isinstance(each, re._parser.SubPattern):  # type: ignore[attr-defined]
                    yield from repeats(each)


@pytest.mark.parametrize("known", ["_PATTERNS", "_SIGNS", "_FALLACIES"])
def test_no_expression_repeats_without_a_bound_so_that_time_is_linear_in_the_text(known: str) -> None:
    for pattern in getattr(rhetoric, known).values():
        assert max(repeats(re._parser.parse(pattern.pattern)), default=0) <= 120  # type: ignore[attr-defined]
