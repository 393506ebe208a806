from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.gateway.prompt.fitting import Unfittable, count_tokens, estimate_tokens, fit, join
from parley.v1.gateway_pb2 import (
    PROMPT_ROLE_ASSISTANT,
    PROMPT_ROLE_SYSTEM,
    PROMPT_ROLE_USER,
    PromptPart,
)
from tests.support.prompt_parts import assistant, system, user

parts = st.lists(
    st.builds(
        PromptPart,
        role=st.sampled_from([PROMPT_ROLE_SYSTEM, PROMPT_ROLE_USER]),
        text=st.text(max_size=3000),
        shrink_priority=st.integers(0, 3),
        document=st.sampled_from(["", "", "notes.md"]),
    ),
    min_size=1,
    max_size=6,
)


def total(messages: Sequence[PromptPart]) -> int:
    return sum(estimate_tokens(message.text) for message in messages)


@given(parts, st.integers(1, 2000))
def test_a_prompt_that_fits_is_within_its_limit_and_counts_what_it_left_out(
    given_parts: list[PromptPart], allowed: int
) -> None:
    try:
        messages, left_out = fit(given_parts, allowed)
    except Unfittable:
        return
    assert total(messages) <= allowed
    if left_out == 0:
        assert messages == join(given_parts)


def test_neighbours_of_one_role_are_joined_with_a_blank_line() -> None:
    given_parts = [
        system("a"),
        user("b"),
        user("c"),
        system("d"),
    ]
    assert join(given_parts) == (system("a"), user("b\n\nc"), system("d"))


def test_an_unknown_limit_leaves_everything() -> None:
    assert fit([user("x" * 100_000, 9)], 0)[1] == 0


def test_what_gives_more_is_shortened_first_and_what_gives_nothing_never() -> None:
    fixed, history, task = "f" * 600, "history " * 600, "task " * 200
    messages, _ = fit([system(fixed), assistant(history, 5), user(task, 1)], 900)
    texts = {message.role: message.text for message in messages}
    assert texts[PROMPT_ROLE_SYSTEM] == fixed
    assert texts[PROMPT_ROLE_USER] == task
    assert len(texts[PROMPT_ROLE_ASSISTANT]) < len(history)


def test_head_and_tail_stay_and_the_mark_says_how_much_is_gone() -> None:
    text = "BEGIN " + "middle " * 2000 + "END"
    messages, left_out = fit([user(text, 1)], 500)
    shown = messages[0].text
    assert shown.startswith("BEGIN")
    assert shown.endswith("END")
    assert f"[… {left_out} characters left out …]" in shown


def test_parts_that_give_alike_are_cut_to_one_length_and_short_ones_stay_whole() -> None:
    long, short = "long text " * 500, "short text"
    messages, _ = fit([user(long, 2), system(short, 2), assistant(long, 2)], 800)
    texts = {message.role: message.text for message in messages}
    assert texts[PROMPT_ROLE_SYSTEM] == short
    assert abs(len(texts[PROMPT_ROLE_USER]) - len(texts[PROMPT_ROLE_ASSISTANT])) <= 3


def test_parts_that_must_stay_and_do_not_fit_are_an_error_with_numbers() -> None:
    with pytest.raises(Unfittable, match=r"needs about .* tokens, 100 fit"):
        fit([user("x" * 3000), user("y" * 3000, 1)], 100)


@given(st.text(max_size=500), st.text(max_size=500))
def test_the_estimate_never_shrinks_with_more_text(left: str, right: str) -> None:
    assert estimate_tokens(left + right) >= max(estimate_tokens(left), estimate_tokens(right)) - 1


def test_where_documents_are_too_many_the_first_are_shown_and_the_others_left_out() -> None:
    question = user("Which of them?")
    texts = [f"Document {number}: " + "word " * 80 for number in range(50)]
    documents = [user(text, 2, f"{number}.md") for number, text in enumerate(texts)]
    messages, left_out = fit([question, *documents], 500)
    (message,) = messages
    assert total(messages) <= 500
    assert (
        message.text
        == f"Which of them?\n\n{texts[0]}\n\n{texts[1]}\n\n{texts[2]}\n\n[… 47 more documents left out …]"
    )
    assert left_out == sum(len(text) for text in texts[3:])


@given(st.lists(st.text(max_size=400), min_size=1, max_size=5))
def test_the_counted_tokens_are_at_least_those_of_the_messages(texts: list[str]) -> None:
    messages, _ = fit([user(text, 1) for text in texts], 0)
    assert count_tokens(messages) >= total(messages)
