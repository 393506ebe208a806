"""What of a history is told: as much as fits, oldest out first, and never more than the gateway would take."""

from hypothesis import given
from hypothesis import strategies as st

from parley.gateway.prompt.fitting import estimate_tokens, fit
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.tokens import ASSUMED_CONTEXT_TOKENS, upper_tokens
from parley.orchestrator.phases.history import (
    available_tokens,
    count_rendered,
    estimate_material_tokens,
    find_longest,
    render_history,
    shorten_to_fit,
    split_into_parts,
    split_to_fit,
    summary_length,
)
from parley.v1.critique_pb2 import ISSUE_STATUS_REJECTED, IssueAnswer
from tests.support.prompt_parts import user

TEXTS = (
    st.text(max_size=400)
    | st.text(alphabet="abc efg.,", max_size=2000)
    | st.text("日本語と漢字 ", max_size=300)
)


def make_contribution(number: int, text: str, target: str = "") -> Contribution:
    return Contribution(f"a{number}", "critique" if target else "proposal", 1, text, target=target)


def contributions(texts: list[str]) -> list[Contribution]:
    return [make_contribution(number, text) for number, text in enumerate(texts)]


def letter(agent: str) -> str:
    return agent.upper()


def tokens(held: list[Contribution] | tuple[Contribution, ...]) -> int:
    return sum(upper_tokens(each.text) + 36 for each in held)


@given(st.text())
def test_a_text_counts_as_many_tokens_as_the_gateway_reckons_at_least(text: str) -> None:
    assert upper_tokens(text) >= estimate_tokens(text)


def test_a_character_that_is_not_latin_counts_for_more_than_a_letter() -> None:
    assert upper_tokens("word " * 300) == 500
    assert upper_tokens("水" * 500) >= 500


def test_36_contributions_of_3000_characters_fit_a_context_of_128k() -> None:
    held = contributions(["Let us say that it is so. " * 115] * 36)
    room = available_tokens(128_000, 0, 3000)
    assert split_to_fit(held, room) == (tuple(held), ())


@given(st.lists(TEXTS, max_size=12), st.integers(0, 3000))
def test_what_is_kept_fits_and_is_all_that_is_newer_than_what_gives_way(texts: list[str], room: int) -> None:
    held = contributions(texts)
    kept, gone = split_to_fit(held, room)
    assert (*gone, *kept) == tuple(held)
    assert tokens(kept) <= room
    if gone:
        assert tokens((gone[-1], *kept)) > room, "no more gives way than must"


@given(st.lists(TEXTS, min_size=1, max_size=8), st.integers(500, 3000))
def test_the_gateway_shortens_nothing_of_what_fits_here(texts: list[str], room: int) -> None:
    kept, _ = split_to_fit(contributions(texts), room)
    assert fit([user(render_history(letter, kept), 2)], room)[1] == 0


def test_an_entry_is_written_once_for_all_who_read_it_from_outside() -> None:
    held = [make_contribution(1, "One."), make_contribution(2, "Wrong.", "a1")]
    asked = list[str]()

    def note_and_letter(agent: str) -> str:
        asked.append(agent)
        return letter(agent)

    first = render_history(note_and_letter, held, "a3")
    assert asked
    asked.clear()
    assert render_history(note_and_letter, held, "a4") == first
    assert count_rendered(note_and_letter, held) == len(first)
    assert not asked
    assert "critique by agent A2 of your proposal" in render_history(note_and_letter, held, "a1")
    assert "critique by you" in render_history(note_and_letter, held, "a2")


def test_what_was_computed_of_a_contribution_is_neither_compared_nor_copied() -> None:
    said = make_contribution(1, "One.")
    shown = render_history(letter, [said])
    assert said == make_contribution(1, "One.")
    assert render_history(letter, [said.with_text("Two.")]) == shown.replace("One.", "Two.")


def test_what_is_named_gives_way_whatever_the_room() -> None:
    held = contributions(["one", "two", "three"])
    kept, gone = split_to_fit(held, 10_000, [held[1].name])
    assert [each.text for each in kept] == ["one", "three"]
    assert [each.text for each in gone] == ["two"]


@given(st.lists(TEXTS, min_size=1, max_size=12), st.integers(600, 4000))
def test_shortened_contributions_fit_and_short_ones_stay_whole(texts: list[str], room: int) -> None:
    held = contributions(texts)
    shown = shorten_to_fit(held, room)
    if tokens(held) <= room:
        assert shown == tuple(held)
        return
    for before, after in zip(held, shown, strict=True):
        if upper_tokens(before.text) + 36 <= room // len(held):
            assert after.text == before.text
        elif after.text != before.text:
            assert "characters left out" in after.text


@given(st.lists(TEXTS, min_size=1, max_size=30), st.integers(800, 3000))
def test_a_history_is_read_in_few_parts_that_hold_all_of_it_in_order(texts: list[str], room: int) -> None:
    held = contributions(texts)
    parts = split_into_parts(held, room, 4)
    assert [each for part in parts for each in part.whole] == held
    assert 1 <= len(parts) <= 4 + len(texts) // 10
    if tokens(held) <= room:
        assert len(parts) == 1


def test_long_contributions_are_read_whole_where_four_parts_are_enough() -> None:
    held = contributions(["Let us say that it is so. " * 40] * 10)
    parts = split_into_parts(held, 1300, 4)
    assert len(parts) == 4
    assert all(part.shown == part.whole for part in parts)


def test_an_unknown_context_is_taken_for_32k_and_a_quarter_of_it_is_kept_for_the_answer() -> None:
    assert available_tokens(0, 0, 0) == available_tokens(ASSUMED_CONTEXT_TOKENS, 0, 0) == 32_768 - 8192 - 1024
    assert available_tokens(0, 200, 0) == 32_768 - 200 - 1024
    assert available_tokens(8192, 100_000, 0) == 4096 - 256, "an answer takes half at most"
    assert available_tokens(8192, 0, 50_000) == 1024, "an eighth is left in any case"


def test_a_round_keeps_room_for_a_proposal_and_the_critiques_of_it() -> None:
    held = [make_contribution(1, "p" * 3000), make_contribution(2, "c" * 300, "a1")]
    assert estimate_material_tokens([find_longest(held)], 5) == max(2 * 1036, 1036 + 5 * 136)
    assert estimate_material_tokens([find_longest(held[:1]), find_longest(held[1:])], 9) == 1036 + 9 * 136
    assert estimate_material_tokens([], 3) == 0


def test_a_summary_may_be_as_long_as_is_set_or_a_share_of_a_large_context() -> None:
    assert summary_length(400, 0, 128_000, 80_000) == 400
    assert summary_length(0, 5000, 128_000, 80_000) == 2500
    assert summary_length(0, 0, 128_000, 80_000) == 12_000
    assert summary_length(0, 0, 0, 20_000) == 3072
    assert summary_length(0, 0, 8192, 1024) == 1536, "half of the room at most"


def test_what_an_author_said_of_issues_stands_below_its_refinement() -> None:
    answer = IssueAnswer(
        critic_agent_id="bo", number=2, status=ISSUE_STATUS_REJECTED, reason="it costs\ntwo weeks"
    )
    refined = Contribution("ada", "refinement", 1, "The text.", answers=(answer,))
    told = render_history(lambda agent: agent[0].upper(), [refined])
    assert told.endswith(
        "The text.\n\nAnswers to issues:\n- issue B.2, not taken up: it costs two weeks\n>>>"
    )
