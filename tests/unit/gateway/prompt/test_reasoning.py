import re
from itertools import pairwise

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from parley.gateway.prompt.reasoning import (
    ReasoningFilter,
    drop_stray_end,
    starts_inside_reasoning,
    strip_reasoning,
)
from tests.support.growth import check_growth

PARTS = [
    "<think>",
    "</think>",
    "<Thinking>",
    "</thinking>",
    "[THINK]",
    "[/THINK]",
    "<thin",
    "k>",
    "</",
    " ",
    "\n",
    "Use one.",
    "<b>",
    "x",
]
texts = st.lists(st.sampled_from(PARTS), max_size=12).map("".join)


def filter_pieces(*pieces: str) -> str:
    passing = ReasoningFilter()
    return "".join([passing.feed(piece) for piece in pieces]) + passing.end()


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("<think>One? Two?</think>\n\nUse one.", "Use one."),
        ("\n <THINK>\nOne?\n</Think>Use one.", "Use one."),
        ("<thinking>One?</thinking> Use one.", "Use one."),
        ("<think>One?</think>\n<think>Two?</think>\nUse one.", "Use one."),
        ("<think>One? Two? Thr", ""),
        ("<thought>One?</thought>Use one.", "Use one."),
        ("<reasoning>One?</reasoning>Use one.", "Use one."),
        ("<seed:think>One?</seed:think>Use one.", "Use one."),
        ("[THINK]One?[/THINK]Use one.", "Use one."),
        ("◁think▷One?◁/think▷Use one.", "Use one."),
        ("  Use <think>one</think>.", "  Use <think>one</think>."),
        ("<thin", "<thin"),
        ("<thinly> sliced", "<thinly> sliced"),
        (" \n ", " \n "),
        ("", ""),
    ],
)
def test_the_reasoning_that_an_answer_begins_with_is_left_out(said: str, answer: str) -> None:
    assert filter_pieces(said) == answer
    assert filter_pieces(*said) == answer


@given(texts, st.lists(st.integers(0, 60), max_size=6))
def test_an_answer_in_pieces_comes_out_as_the_whole_would(text: str, cuts: list[int]) -> None:
    bounds = [0, *sorted(cuts), len(text)]
    pieces = [text[begin:end] for begin, end in pairwise(bounds)]
    assert filter_pieces(*pieces) == filter_pieces(text)


@given(st.text(max_size=40), st.text(max_size=40))
def test_reasoning_never_comes_out_and_the_answer_always_does(thought: str, answer: str) -> None:
    thought = re.sub("[<[◁]", "", thought)
    answer = re.sub("[<[◁]", "", answer.strip())
    assert filter_pieces(f"<think>{thought}</think>\n{answer}") == answer
    assert filter_pieces(answer) == answer


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("One?\nTwo?\n</think>\n\nUse one.", "Use one."),
        ("Sure.\n<think>\nOne?\n</think>\nUse one.", "Sure.\nUse one."),
        ("Sure.\n<think>One?</think> Use one.\n", "Sure.\nUse one."),
        ("Use one.\n<think>\nOr two", "Use one."),
        ("Only that\n</think>\n", ""),
        ("One? Two.</think>Use one.", "Use one."),
        ("One?\nTwo. </think>Use one.", "Use one."),
        ("One? Two. </think>\n\nUse one.", "Use one."),
        ("One? Two. </think> Use one.", "Use one."),
        ("One?\n</think> Use one.", "Use one."),
        ("One?</think>Two?</think>Use one.", "Use one."),
        ("One?[/THINK]Use one.", "Use one."),
        ("Write `</think>` last.", "Write `</think>` last."),
        ('Write "</think>" last.', 'Write "</think>" last.'),
        ("It ends with </think> or at the limit.", "It ends with </think> or at the limit."),
        ("It ends with </think>.", "It ends with </think>."),
        ("Models write <think>so</think>then.", "Models write <think>so</think>then."),
        ("Models write <think> first.", "Models write <think> first."),
        ("See:\n```\n<think>\nx\n</think>\n```\n", "See:\n```\n<think>\nx\n</think>\n```\n"),
    ],
)
def test_reasoning_inside_of_a_whole_answer_is_left_out_where_tags_are_tags(said: str, answer: str) -> None:
    assert strip_reasoning(said) == answer


@pytest.mark.parametrize(
    ("said", "answer"),
    [
        ("Use one.</think>", "Use one."),
        ("Use one.\n</think>\n", "Use one."),
        ('{"a": 1}</think></THINK> ', '{"a": 1}'),
        ("Use one.[/THINK]", "Use one."),
        ("</think>", "</think>"),
        ("One?</think>Use one.", "One?</think>Use one."),
        ("<think>One?</think>", "<think>One?</think>"),
        ("Use one. ", "Use one. "),
    ],
)
def test_an_end_tag_with_nothing_after_it_ends_no_reasoning(said: str, answer: str) -> None:
    assert drop_stray_end(said) == answer


def test_reasoning_that_never_ends_is_kept_apart_from_the_answer() -> None:
    passing = ReasoningFilter()
    assert not "".join([passing.feed(piece) for piece in "<think>One? Two <b>?"]) + passing.end()
    assert passing.unclosed == "One? Two <b>?"
    passing.feed("</think>Use one.")
    assert not passing.unclosed


@pytest.mark.parametrize(
    ("said", "begins"),
    [
        ("One? Two.</think>Use one.", True),
        ("One?\n</think>\n\nUse one.", True),
        ("<think>One?</think>\nUse one.", False),
        ("Sure.\n<think>One?</think> Use one.", False),
        ("Use one.", False),
    ],
)
def test_reasoning_that_has_no_beginning_is_told_from_the_rest(said: str, begins: bool) -> None:
    assert starts_inside_reasoning(said) == begins


@example("<think></think></think>")
@given(texts)
def test_what_is_left_of_an_answer_stays_as_it_is(text: str) -> None:
    left = strip_reasoning(text)
    assert strip_reasoning(left) == left


@pytest.mark.parametrize(
    "unit",
    [
        "<think>",
        "</think>",
        "x</think>",
        "x</think>\n",
        "x.</think><think>\n",
        "<think></think>",
        "<think>\n",
        "</think>\n",
        " ",
        "<",
        "<think",
        "```\n",
        "\n",
    ],
)
def test_no_text_takes_long(unit: str) -> None:
    def read(length: int) -> None:
        text = (unit * length)[:length]
        filter_pieces(text)
        filter_pieces(*(text[at : at + 4] for at in range(0, length, 4)))
        filter_pieces("<think>", *text[: length // 2])
        strip_reasoning(drop_stray_end(text))

    check_growth(read, 262_144)
