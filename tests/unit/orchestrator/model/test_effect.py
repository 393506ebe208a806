"""What a debate changed: first and last vote, who left which position and why, and how sure the decision is."""

from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.effect import NO_POSITION, Ballots, create_effect
from parley.orchestrator.model.stands import FIRST_DRAFT, Stand, distinct_positions, list_stands, name_groups
from parley.v1.critique_pb2 import (
    ISSUE_STATUS_REJECTED,
    ISSUE_STATUS_TAKEN_UP,
    Critique,
    Issue,
    IssueAnswer,
)
from parley.v1.effect_pb2 import (
    DECISION_COMPARISON_OTHER,
    DECISION_COMPARISON_SAME,
    DECISION_COMPARISON_TIE_BROKEN,
    DECISION_COMPARISON_UNSPECIFIED,
    QUESTION_KIND_CLOSED,
    QUESTION_KIND_OPEN,
    DebateEffect,
)

AGENTS = ("ada", "bo", "cy", "dee")


def stands(**positions: str) -> list[Stand]:
    """Return where agents stood, a letter a round, the first draft first; `-`: it stated no position."""
    return [
        Stand(agent, number, "" if letter == "-" else letter)
        for agent, letters in positions.items()
        for number, letter in enumerate(letters, start=FIRST_DRAFT)
    ]


def effect_of(held: Sequence[Stand], decided: str | None = "X", **more: Any) -> DebateEffect:
    names = {each: each for each in distinct_positions(held) if each != "?"}
    return create_effect(held, names, decided, **more)


def test_first_and_last_vote_are_shown_position_by_position_with_most_first_drafts_first() -> None:
    effect = effect_of(stands(ada="YXX", bo="XXX", cy="XXZ"))
    shown = [(each.text, list(each.first_agent_ids), list(each.last_agent_ids)) for each in effect.positions]
    assert shown == [("X", ["bo", "cy"], ["ada", "bo"]), ("Y", ["ada"], []), ("Z", [], ["cy"])]
    assert [each.first_share for each in effect.positions] == pytest.approx([2 / 3, 1 / 3, 0])
    assert effect.decided_position == 1


def test_a_change_names_its_round_and_both_positions() -> None:
    effect = effect_of(stands(ada="YYX", bo="XXX", cy="XYX"))
    assert [(each.agent_id, each.round, each.from_position, each.to_position) for each in effect.changes] == [
        ("cy", 1, 1, 2),
        ("ada", 2, 2, 1),
        ("cy", 2, 2, 1),
    ]


def test_without_the_position_between_it_is_not_known_in_which_round_an_agent_changed() -> None:
    (change,) = effect_of(stands(ada="Y?X", bo="XXX")).changes
    assert (change.agent_id, change.round, list(change.issues)) == ("ada", 0, [])


@pytest.mark.parametrize(
    ("drafts", "decided", "comparison"),
    [
        ("XXY", "X", DECISION_COMPARISON_SAME),
        ("XXY", "Y", DECISION_COMPARISON_OTHER),
        ("XXY", NO_POSITION, DECISION_COMPARISON_OTHER),
        ("XY", "Y", DECISION_COMPARISON_TIE_BROKEN),
        ("XY?", "X", DECISION_COMPARISON_UNSPECIFIED),
        ("XXY", None, DECISION_COMPARISON_UNSPECIFIED),
    ],
)
def test_the_decision_is_compared_with_the_position_of_most_first_drafts(
    drafts: str, decided: str | None, comparison: int
) -> None:
    held = stands(**dict(zip(AGENTS, drafts, strict=False)))
    assert effect_of(held, decided).comparison == comparison


@pytest.mark.parametrize(
    ("drafts", "why"), [("X?", "the judge said nothing"), ("X-", "1 of 2 agents stated no position")]
)
def test_a_first_vote_that_is_not_known_whole_is_not_told_in_part(drafts: str, why: str) -> None:
    held = [
        stand
        for agent, letter in zip(AGENTS, drafts, strict=False)
        for stand in stands(**{agent: f"{letter}X"})
    ]
    effect = effect_of(held, unknown="the judge said nothing")
    assert effect.first_vote_unknown == why
    assert not any(each.first_agent_ids for each in effect.positions)
    assert not effect.last_vote_unknown
    assert effect.positions[0].last_agent_ids == ["ada", "bo"]
    assert not effect.confidence.by_first_drafts
    assert (effect.confidence.votes, effect.confidence.votes_cast) == (2, 2)


def test_who_came_to_propose_only_later_has_no_first_draft() -> None:
    effect = effect_of([*stands(ada="XX", bo="XX"), Stand("cy", 2, "Y")])
    assert [list(each.first_agent_ids) for each in effect.positions] == [["ada", "bo"], []]
    assert [list(each.last_agent_ids) for each in effect.positions] == [["ada", "bo"], ["cy"]]


def test_a_closed_question_has_a_percentage_and_an_open_one_only_votes() -> None:
    held = stands(ada="X", bo="X", cy="Y")
    closed = effect_of(held, kind=QUESTION_KIND_CLOSED).confidence
    opened = effect_of(held, kind=QUESTION_KIND_OPEN).confidence
    assert 50 < closed.percent < 75
    assert not opened.HasField("percent")
    assert [(each.votes, each.votes_cast, each.unknown) for each in (closed, opened)] == [(2, 3, "")] * 2


def test_a_position_that_nobody_drafted_has_no_percentage_but_a_reason() -> None:
    found = effect_of(stands(ada="X", bo="X"), NO_POSITION, kind=QUESTION_KIND_CLOSED).confidence
    assert not found.HasField("percent")
    assert found.unknown == "no vote is for the position that was decided for"
    assert (found.votes, found.votes_cast) == (0, 2)


def test_a_ballot_of_the_judge_counts_for_the_percentage_and_is_named() -> None:
    held = stands(ada="X", bo="X", cy="Y")
    kind = QUESTION_KIND_CLOSED
    alone = effect_of(held, kind=kind).confidence
    agreeing = effect_of(held, kind=kind, ballots=Ballots(judge="X")).confidence
    against = effect_of(held, kind=kind, ballots=Ballots(judge="Y", judge_weight=3)).confidence
    assert against.percent < alone.percent < agreeing.percent
    tie_breaking = effect_of(held, kind=kind, ballots=Ballots(judge="Y", judge_weight=0)).confidence
    assert tie_breaking.percent == alone.percent
    assert [each.judge_agrees for each in (agreeing, against, tie_breaking)] == [True, False, False]
    assert not alone.HasField("judge_agrees")


@given(
    st.dictionaries(st.sampled_from(AGENTS), st.text("XYZ?-", min_size=1, max_size=4), min_size=1),
    st.sampled_from(["X", "Y", NO_POSITION, None]),
)
def test_shares_are_whole_and_changes_lead_from_the_first_position_to_the_last(
    letters: dict[str, str], decided: str | None
) -> None:
    effect = effect_of(stands(**letters), decided, kind=QUESTION_KIND_CLOSED, unknown="no one said it")
    for shares, why in (
        ([each.first_share for each in effect.positions], effect.first_vote_unknown),
        ([each.last_share for each in effect.positions], effect.last_vote_unknown),
    ):
        assert sum(shares) == pytest.approx(0 if why else 1)
    if effect.first_vote_unknown or effect.last_vote_unknown:
        return
    place = {
        agent: number
        for number, each in enumerate(effect.positions, start=1)
        for agent in each.first_agent_ids
    }
    for agent in letters:
        moves = [(each.from_position, each.to_position) for each in effect.changes if each.agent_id == agent]
        assert all(one != other for one, other in moves)
        starts, ends = [one for one, _ in moves], [other for _, other in moves]
        last = next(
            number for number, each in enumerate(effect.positions, start=1) if agent in each.last_agent_ids
        )
        assert sorted([*starts, last]) == sorted([place[agent], *ends])
    assert effect.confidence.HasField("percent") == (effect.confidence.votes > 0)


def test_positions_in_the_same_words_are_one_and_each_is_shown_once() -> None:
    held = [
        Stand("ada", FIRST_DRAFT, "Take  Postgres."),
        Stand("bo", FIRST_DRAFT, "Take Postgres."),
        Stand("cy", FIRST_DRAFT, ""),
    ]
    assert distinct_positions(held) == ["Take Postgres."]


def test_groups_of_the_first_drafts_stand_and_later_positions_join_them() -> None:
    names = name_groups([["A", "A2", "late"], ["B", "new"], ["other"]], drafts=[["A", "A2"], ["B"]])
    assert names["late"] == names["A"] == names["A2"]
    assert names["new"] == names["B"] != names["A"]
    assert names["other"] not in {names["A"], names["B"]}


def test_a_later_position_that_is_grouped_with_two_that_differ_is_not_known() -> None:
    names = name_groups([["A", "B", "late"]], drafts=[["A"], ["B"]])
    assert names["A"] != names["B"]
    assert "late" not in names


def test_stands_are_read_from_contributions_with_the_issues_taken_up_most_severe_first() -> None:
    def make_critique(critic: str, *severities: int) -> Contribution:
        issues = [
            Issue(number=place, text="…", severity=each) for place, each in enumerate(severities, start=1)
        ]
        return Contribution(critic, "critique", 1, "…", target="ada", critique=Critique(issues=issues))

    answers = tuple(
        IssueAnswer(critic_agent_id=critic, number=number, status=status)
        for critic, number, status in (
            ("bo", 1, ISSUE_STATUS_TAKEN_UP),
            ("bo", 2, ISSUE_STATUS_REJECTED),
            ("cy", 1, ISSUE_STATUS_TAKEN_UP),
        )
    )
    found = list_stands(
        [
            Contribution("ada", "proposal", 1, "…", "Y"),
            make_critique("bo", 4, 9),
            make_critique("cy", 8),
            Contribution("ada", "refinement", 1, "…", "X", answers=answers),
            Contribution("ada", "proposal", 2, "…", "Z"),
            Contribution("bo", "proposal", 2, "…", "late"),
            Contribution("ada", "refinement", 2, "…", "X"),
        ]
    )
    assert [(each.agent, each.round, each.text) for each in found] == [
        ("ada", FIRST_DRAFT, "Y"),
        ("ada", 1, "X"),
        ("ada", 2, "X"),
        ("bo", 2, "late"),
    ]
    assert [(each.critic_agent_id, each.number) for each in found[1].issues] == [("cy", 1), ("bo", 1)]
