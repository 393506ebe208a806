"""What a debate changed, as people read it: by the names of agents, and never as if something were known that is not."""

from typing import Any

import pytest

from parley.orchestrator.model.effect_text import (
    count_of,
    describe_comparison,
    describe_confidence,
    describe_votes,
    effect_lines,
)
from parley.v1.effect_pb2 import (
    DECISION_COMPARISON_OTHER,
    DECISION_COMPARISON_SAME,
    DECISION_COMPARISON_TIE_BROKEN,
    DECISION_COMPARISON_UNSPECIFIED,
    QUESTION_KIND_CLOSED,
    QUESTION_KIND_OPEN,
    ChangedStand,
    DebateEffect,
    DecisionComparison,
    DecisionConfidence,
    TakenPosition,
    TakenUpIssue,
)

NAMES = {"ada": "security", "bo": "performance", "cy": "simplicity"}


def make_moved_effect() -> DebateEffect:
    return DebateEffect(
        positions=[
            TakenPosition(
                text="Shard by tenant.",
                first_agent_ids=["ada", "cy"],
                first_share=2 / 3,
                last_agent_ids=["ada", "bo", "cy"],
                last_share=1,
            ),
            TakenPosition(text="Shard by region.", first_agent_ids=["bo"], first_share=1 / 3),
        ],
        changes=[
            ChangedStand(
                agent_id="bo",
                round=1,
                from_position=2,
                to_position=1,
                issues=[TakenUpIssue(critic_agent_id="ada", number=2)],
            )
        ],
        decided_position=1,
        comparison=DECISION_COMPARISON_SAME,
        confidence=DecisionConfidence(votes=2, votes_cast=3, by_first_drafts=True, judge_word="80 of 100"),
        agent_families=["openai", "qwen"],
        judge_family="anthropic",
    )


def lines_of(effect: DebateEffect) -> list[str]:
    return effect_lines(effect, 14, lambda agent: NAMES[agent], max_calls=38)


def test_a_debate_that_moved_an_agent_is_told_by_names_from_the_first_vote_to_the_calls() -> None:
    assert lines_of(make_moved_effect()) == [
        "“Shard by tenant.”: two of three first drafts (security, simplicity); in the end all three (security, performance, simplicity).",
        "“Shard by region.”: one of three first drafts (performance); in the end none of three.",
        "In round 1, performance left “Shard by region” for “Shard by tenant”, after taking up issue 2 of security.",
        "The agents' models are of openai and qwen, the judge's of anthropic.",
        "It took 14 calls, up to 24 fewer than with all rounds.",
    ]


def test_issues_have_the_name_that_the_document_gives_them() -> None:
    lines = effect_lines(
        make_moved_effect(),
        14,
        NAMES.__getitem__,
        lambda change, issue: f"issue {change.round}{issue.number}",
    )
    assert "after taking up issue 12." in lines[2]


def test_a_first_vote_that_cannot_be_told_says_why_and_the_last_one_is_shown_all_the_same() -> None:
    effect = make_moved_effect()
    effect.first_vote_unknown = "the judge left P3 out"
    for each in effect.positions:
        del each.first_agent_ids[:]
    lines = lines_of(effect)
    assert lines[0] == "How the first drafts vote cannot be told: the judge left P3 out."
    assert lines[1].endswith("”: in the end all three (security, performance, simplicity).")


def test_what_is_unknown_from_first_to_last_is_said_once() -> None:
    effect = DebateEffect(first_vote_unknown="nobody was asked", last_vote_unknown="nobody was asked")
    effect.confidence.unknown = "who takes which position cannot be told"
    assert lines_of(effect) == [
        "Who takes which position, at first and in the end, cannot be told: nobody was asked.",
        "It took 14 calls, up to 24 fewer than with all rounds.",
    ]


def test_nobody_moved_is_said_only_where_it_is_known() -> None:
    effect = make_moved_effect()
    del effect.changes[:]
    assert "No agent changed its position." in lines_of(effect)
    effect.last_vote_unknown = "the judge left P3 out"
    assert "No agent changed its position." not in lines_of(effect)


@pytest.mark.parametrize(
    ("comparison", "words"),
    [
        (DECISION_COMPARISON_UNSPECIFIED, ""),
        (
            DECISION_COMPARISON_OTHER,
            "The decision is not that of the first drafts: “Shard by tenant” had the most of them.",
        ),
        (
            DECISION_COMPARISON_TIE_BROKEN,
            "The first drafts were tied, and the decision is one of their positions.",
        ),
    ],
)
def test_the_decision_is_compared_in_a_sentence_or_not_at_all(
    comparison: DecisionComparison.ValueType, words: str
) -> None:
    effect = make_moved_effect()
    effect.comparison = comparison
    assert describe_comparison(effect) == words


def test_no_position_is_called_the_first_drafts_own_if_several_lead() -> None:
    effect = make_moved_effect()
    effect.comparison = DECISION_COMPARISON_OTHER
    for each in effect.positions:
        each.first_share = 0.5
    expected = "The decision is none of the two positions that led among the first drafts."
    assert describe_comparison(effect) == expected


def test_a_percentage_stands_with_the_votes_that_it_follows_from() -> None:
    effect = make_moved_effect()
    effect.confidence.percent = 58.4
    effect.confidence.judge_agrees = True
    expected = (
        "The decision is right with a probability of 58 %; for it: two of three first drafts and the judge."
    )
    assert describe_confidence(effect.confidence) == expected
    effect.confidence.judge_agrees = False
    assert describe_votes(effect.confidence) == "two of three first drafts"
    assert describe_confidence(effect.confidence).endswith("two of three first drafts, but not the judge.")
    effect.confidence.votes, effect.confidence.judge_agrees = 0, True
    assert describe_votes(effect.confidence) == "the judge and none of three first drafts"
    effect.confidence.judge_agrees = False
    assert describe_confidence(effect.confidence).endswith("none of three first drafts, nor the judge.")


@pytest.mark.parametrize(
    ("percent", "words"), [(99.6, "over 99 %"), (99.0, "99 %"), (0.4, "under 1 %"), (1.0, "1 %")]
)
def test_nothing_is_called_certain(percent: float, words: str) -> None:
    confidence = DecisionConfidence(percent=percent, votes=3, votes_cast=3, by_first_drafts=True)
    assert f"a probability of {words}; for it" in describe_confidence(confidence)


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        (
            {"question_kind": QUESTION_KIND_OPEN, "votes": 2},
            "For it: two of three first drafts. The question is open, so that no probability is computed.",
        ),
        (
            {"votes": 2},
            "For it: two of three first drafts. It is not known of which kind the question is, so that no probability is computed.",
        ),
        (
            {
                "question_kind": QUESTION_KIND_CLOSED,
                "unknown": "no vote is for the position that was decided for",
            },
            "For it: none of three first drafts. No probability is computed: no vote is for the position that was decided for.",
        ),
        (
            {"votes_cast": 0, "unknown": "who takes which position cannot be told"},
            "No share of votes can be given: who takes which position cannot be told.",
        ),
    ],
)
def test_where_there_is_no_percentage_the_votes_stand_with_the_reason(
    fields: dict[str, Any], words: str
) -> None:
    confidence = DecisionConfidence(**{"votes_cast": 3, "by_first_drafts": True, **fields})
    assert describe_confidence(confidence) == words


def test_one_family_for_all_is_said() -> None:
    effect = make_moved_effect()
    effect.agent_families[:] = [effect.judge_family]
    expected = "All models, the judge's too, are of one family (anthropic): they err alike."
    assert expected in lines_of(effect)


@pytest.mark.parametrize(
    ("max_calls", "words"),
    [
        (38, "It took 14 calls, up to 24 fewer than with all rounds."),
        (14, "It took 14 calls."),
        (0, "It took 14 calls."),
    ],
)
def test_saved_calls_are_said_where_it_is_known_what_all_rounds_take(max_calls: int, words: str) -> None:
    assert effect_lines(make_moved_effect(), 14, NAMES.__getitem__, max_calls=max_calls)[-1] == words


@pytest.mark.parametrize(
    ("count", "total", "words"),
    [
        (2, 3, "two of three drafts"),
        (3, 3, "all three drafts"),
        (2, 2, "both drafts"),
        (0, 3, "none of three drafts"),
        (1, 1, "the one draft"),
        (11, 12, "11 of 12 drafts"),
    ],
)
def test_counts_are_in_words(count: int, total: int, words: str) -> None:
    assert count_of(count, total, "draft") == words
