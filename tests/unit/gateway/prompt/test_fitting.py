import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.gateway.prompt.fitting import Fitted, Unfittable, fit
from parley.gateway.prompt.parts import Message, PromptPart, join
from parley.gateway.prompt.tokens import estimate_tokens

parts = st.lists(
    st.builds(
        PromptPart,
        st.sampled_from(["system", "user"]),
        st.text(max_size=3000),
        st.integers(0, 3),
        st.sampled_from(["", "", "notes.md"]),
    ),
    min_size=1,
    max_size=6,
)


def total(fitted: Fitted) -> int:
    return sum(estimate_tokens(message.text) for message in fitted.messages)


@given(parts, st.integers(1, 2000))
def test_a_prompt_that_fits_is_within_its_limit_and_counts_what_it_left_out(
    given_parts: list[PromptPart], allowed: int
) -> None:
    try:
        fitted = fit(given_parts, allowed)
    except Unfittable:
        return
    assert total(fitted) <= allowed
    if fitted.characters_left_out == 0:
        assert fitted.messages == join(given_parts)


def test_neighbours_of_one_role_are_joined_with_a_blank_line() -> None:
    given_parts = [
        PromptPart("system", "a"),
        PromptPart("user", "b"),
        PromptPart("user", "c"),
        PromptPart("system", "d"),
    ]
    assert join(given_parts) == (Message("system", "a"), Message("user", "b\n\nc"), Message("system", "d"))


def test_an_unknown_limit_leaves_everything() -> None:
    assert fit([PromptPart("user", "x" * 100_000, 9)], 0).characters_left_out == 0


def test_what_gives_more_is_shortened_first_and_what_gives_nothing_never() -> None:
    fixed, history, task = "f" * 600, "history " * 600, "task " * 200
    fitted = fit(
        [PromptPart("system", fixed), PromptPart("assistant", history, 5), PromptPart("user", task, 1)], 900
    )
    texts = {message.role: message.text for message in fitted.messages}
    assert texts["system"] == fixed
    assert texts["user"] == task
    assert len(texts["assistant"]) < len(history)


def test_head_and_tail_stay_and_the_mark_says_how_much_is_gone() -> None:
    text = "BEGIN " + "middle " * 2000 + "END"
    fitted = fit([PromptPart("user", text, 1)], 500)
    shown = fitted.messages[0].text
    assert shown.startswith("BEGIN")
    assert shown.endswith("END")
    assert f"[… {fitted.characters_left_out} characters left out …]" in shown


def test_parts_that_give_alike_are_cut_to_one_length_and_short_ones_stay_whole() -> None:
    long, short = "long text " * 500, "short text"
    fitted = fit(
        [PromptPart("user", long, 2), PromptPart("system", short, 2), PromptPart("assistant", long, 2)], 800
    )
    texts = {message.role: message.text for message in fitted.messages}
    assert texts["system"] == short
    assert abs(len(texts["user"]) - len(texts["assistant"])) <= 3


def test_parts_that_must_stay_and_do_not_fit_are_an_error_with_numbers() -> None:
    with pytest.raises(Unfittable, match=r"needs about .* tokens, 100 fit"):
        fit([PromptPart("user", "x" * 3000), PromptPart("user", "y" * 3000, 1)], 100)


@given(st.text(max_size=500), st.text(max_size=500))
def test_the_estimate_never_shrinks_with_more_text(left: str, right: str) -> None:
    assert estimate_tokens(left + right) >= max(estimate_tokens(left), estimate_tokens(right)) - 1


def test_where_documents_are_too_many_the_first_are_shown_and_the_others_left_out() -> None:
    question = PromptPart("user", "Which of them?")
    texts = [f"Document {number}: " + "word " * 80 for number in range(50)]
    documents = [PromptPart("user", text, 2, f"{number}.md") for number, text in enumerate(texts)]
    fitted = fit([question, *documents], 500)
    (message,) = fitted.messages
    assert total(fitted) <= 500
    assert (
        message.text
        == f"Which of them?\n\n{texts[0]}\n\n{texts[1]}\n\n{texts[2]}\n\n[… 47 more documents left out …]"
    )
    assert fitted.characters_left_out == sum(len(text) for text in texts[3:])
