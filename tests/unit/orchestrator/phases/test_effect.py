"""What who writes an answer is asked about positions, and how what it says is read."""

import json
from typing import Any

import pytest

from parley.orchestrator.model.effect import NO_POSITION
from parley.orchestrator.model.stands import FIRST_DRAFT, Stand
from parley.orchestrator.phases.effect import (
    NOTHING_ASKED,
    AnswerPositions,
    PositionQuestion,
    name_positions,
)
from parley.orchestrator.phases.synthesize import JudgeAnswer
from parley.v1.debate_pb2 import DraftGroup, DraftGroups

STANDS = [
    Stand("ada", FIRST_DRAFT, "Postgres."),
    Stand("bo", FIRST_DRAFT, "Use Postgres."),
    Stand("cy", FIRST_DRAFT, "Kafka."),
    Stand("cy", 1, "Take Postgres."),
]
ASKED = PositionQuestion(("Kafka.", "Take Postgres.", "Postgres.", "Use Postgres."))


def make_answer(groups: list[list[str]], answer: str = "", cannot: Any = ()) -> AnswerPositions:
    return AnswerPositions(groups=groups, cannot_be_told=list(cannot), answer=answer)


def test_positions_are_grouped_as_the_judge_says_and_the_answer_takes_one() -> None:
    found = name_positions(STANDS, None, ASKED, make_answer([["P2", "P3", "P4"], ["P1"]], "p4"))
    names = found.names
    assert names["Postgres."] == names["Use Postgres."] == names["Take Postgres."] != names["Kafka."]
    assert found.answer == names["Postgres."]


@pytest.mark.parametrize(
    ("groups", "unknown"),
    [
        (
            [["P1", "P2"]],
            "who wrote the answer grouped the positions badly: it leaves out the position “Postgres.”",
        ),
        (
            [["P1", "P2", "P3", "P4", "P9"]],
            "who wrote the answer grouped the positions badly: 'P9' is the name of no position",
        ),
        (
            [["P1", "P2"], ["P2", "P3", "P4"]],
            "who wrote the answer grouped the positions badly: it names the position “Take Postgres.” more than once",
        ),
    ],
)
def test_groups_that_are_not_complete_count_for_nothing_and_the_reason_is_kept(
    groups: list[list[str]], unknown: str
) -> None:
    found = name_positions(STANDS, None, ASKED, make_answer(groups, "P1"))
    assert (found.names, found.answer, found.unknown) == ({}, None, unknown)


def test_an_answer_that_takes_none_of_them_is_another_thing_than_one_that_says_nothing_of_it() -> None:
    groups = [["P1"], ["P2"], ["P3"], ["P4"]]
    assert name_positions(STANDS, None, ASKED, make_answer(groups, "none")).answer == NO_POSITION
    assert name_positions(STANDS, None, ASKED, make_answer(groups)).answer is None
    assert name_positions(STANDS, None, ASKED, make_answer(groups, "P7")).answer is None


def test_first_drafts_that_were_grouped_in_the_debate_stand_against_the_judge() -> None:
    drafts = DraftGroups(
        groups=[DraftGroup(agent_ids=["ada", "bo"]), DraftGroup(agent_ids=["cy"])], certain=True
    )
    judged = make_answer([["P1", "P2"], ["P3"], ["P4"]])
    names = name_positions(STANDS, drafts, ASKED, judged).names
    assert names["Postgres."] == names["Use Postgres."] != names["Kafka."] == names["Take Postgres."]
    drafts.certain = False
    names = name_positions(STANDS, drafts, ASKED, judged).names
    assert names["Postgres."] != names["Use Postgres."], "a guess does not stand"


def test_drafts_that_state_no_position_are_in_no_group() -> None:
    drafts = DraftGroups(groups=[DraftGroup(agent_ids=["ada", "bo"])], certain=True)
    silent = [Stand("ada", FIRST_DRAFT, ""), Stand("bo", FIRST_DRAFT, "")]
    assert name_positions(silent, drafts).names == {}


def test_what_the_judge_cannot_tell_has_no_name() -> None:
    found = name_positions(STANDS, None, ASKED, make_answer([["P1"], ["P3", "P4"]], "P3", ["P2"]))
    assert "Take Postgres." not in found.names
    assert found.unknown == "who wrote the answer could not tell which positions are the same"


def test_one_position_needs_no_groups_and_without_an_answer_of_the_form_nothing_is_known() -> None:
    alike = [Stand("ada", FIRST_DRAFT, "42"), Stand("bo", FIRST_DRAFT, "42")]
    assert name_positions(alike, None, PositionQuestion(("42",))).names == {"42": "42"}
    assert name_positions(STANDS, None, ASKED).unknown == "who wrote the answer did not group the positions"
    assert name_positions(STANDS, None).unknown == "no agent was asked which positions are the same"


def test_positions_are_asked_for_by_name_and_the_schema_allows_no_other() -> None:
    schema = PositionQuestion(("a", "b")).schema()
    assert schema["required"] == ["groups", "cannot_be_told", "answer"]
    assert schema["properties"]["answer"]["enum"] == ["P1", "P2", "none"]
    assert "P1 to P2 are positions" in PositionQuestion(("a", "b")).to_task()
    assert (NOTHING_ASKED.to_task(), NOTHING_ASKED.to_prompt()) == ("", ())


def test_positions_of_no_form_cost_nothing_of_the_answer() -> None:
    for given in ("P1", {"groups": "all"}, None, {"groups": [[1]]}):
        answer = JudgeAnswer.model_validate_json(json.dumps({"description": "x", "positions": given}))
        assert (answer.description, answer.positions) == ("x", None)
