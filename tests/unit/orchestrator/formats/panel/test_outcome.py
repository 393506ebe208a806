"""What a panel comes to, and how its answer is shown."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.orchestrator.api.answer import answer_markdown
from parley.orchestrator.engine.format import AnswerPart
from parley.orchestrator.formats.panel import V1
from parley.orchestrator.formats.panel.outcome import answer_parts, outcome_of
from parley.orchestrator.phases.requirements import Requirements
from parley.orchestrator.phases.synthesize import JudgeAnswer
from parley.v1.debate_pb2 import AnswerDetails, Debate, Requirement, UnfulfilledRequirement
from parley.v1.panel_pb2 import PanelOutcome

LETTERS = [("cy", "C"), ("ada", "A")]


def answer(**fields: Any) -> JudgeAnswer:
    given = {
        "description": "Use one.",
        "implementation": "Begin.",
        "tradeoffs": ["speed"],
        "recommendations": ["measure"],
        "unfulfilled_requirements": [],
        "open_questions": ["when?"],
        "confidence": 80,
        "scores": {"A": 7.5, "C": 2, "D": 9},
    }
    return JudgeAnswer.model_validate({**given, **fields})


def test_scores_are_told_by_agent_ordered_by_id_and_only_of_those_who_were_scored() -> None:
    outcome = outcome_of(answer(), "judge", LETTERS, Requirements())
    assert [(each.agent_id, each.score) for each in outcome.scores] == [("ada", 7.5), ("cy", 2)]


def test_all_that_the_judge_said_is_kept() -> None:
    unmet = [{"text": "free", "hard": False}]
    outcome = outcome_of(answer(unfulfilled_requirements=unmet), "umpire", LETTERS, Requirements())
    assert outcome.description == "Use one."
    assert outcome.details == AnswerDetails(
        implementation="Begin.",
        tradeoffs=["speed"],
        recommendations=["measure"],
        unfulfilled_requirements=[UnfulfilledRequirement(text="free", hard=False)],
        open_questions=["when?"],
        confidence=80,
    )
    assert outcome.panel == PanelOutcome(synthesized_by="umpire")


def test_a_score_or_a_confidence_that_was_not_given_is_absent() -> None:
    outcome = outcome_of(answer(scores={"A": 7}, confidence=None), "judge", LETTERS, Requirements())
    assert [(each.agent_id, each.score) for each in outcome.scores] == [("ada", 7)]
    assert not outcome.details.HasField("confidence")
    assert "- **Confidence:** Not stated.\n" in answer_markdown(Debate(outcome=outcome), V1)
    none = outcome_of(answer(confidence=0), "judge", LETTERS, Requirements())
    assert none.details.HasField("confidence")
    said = "- **Confidence:** By the judge's own word 0 of 100.\n"
    assert said in answer_markdown(Debate(outcome=none), V1)


@pytest.mark.parametrize(
    ("stated", "said"), [(39, "39 of 100."), (90, "40 of 100, or more: at most 40 counts while")]
)
def test_a_confidence_that_an_unmet_must_bounds_is_told_as_such(stated: int, said: str) -> None:
    unmet = [{"text": "Free.", "hard": True}]
    outcome = outcome_of(
        answer(confidence=stated, unfulfilled_requirements=unmet), "judge", LETTERS, Requirements()
    )
    shown = answer_markdown(Debate(outcome=outcome), V1)
    assert f"- **Confidence:** By the judge's own word {said}" in shown


@given(st.integers(0, 100), st.lists(st.booleans(), max_size=4))
def test_confidence_is_capped_while_any_hard_requirement_is_unmet(confidence: int, hard: list[bool]) -> None:
    unmet = [{"text": "x", "hard": each} for each in hard]
    made = outcome_of(
        answer(confidence=confidence, unfulfilled_requirements=unmet), "judge", LETTERS, Requirements()
    )
    assert made.details.confidence == (min(confidence, 40) if any(hard) else confidence)


def test_the_parts_of_an_answer_stand_in_the_order_in_which_they_are_read() -> None:
    unmet = [{"text": "free", "hard": False}, {"text": "small", "hard": True}]
    parts = list(
        answer_parts(
            Debate(
                outcome=outcome_of(answer(unfulfilled_requirements=unmet), "judge", LETTERS, Requirements())
            )
        )
    )
    assert parts == [
        AnswerPart("", "Use one."),
        AnswerPart("Implementation", "Begin."),
        AnswerPart("Recommendations", items=["measure"]),
        AnswerPart("Requirements", items=["**Not met:** free", "**Not met:** small (a must)"]),
        AnswerPart("Trade-offs", items=["speed"]),
        AnswerPart("Open questions", items=["when?"]),
    ]


@pytest.mark.parametrize(
    ("fields", "title"),
    [
        ({"implementation": " "}, "Implementation"),
        ({"tradeoffs": []}, "Trade-offs"),
        ({"recommendations": []}, "Recommendations"),
        ({}, "Requirements"),
        ({"open_questions": []}, "Open questions"),
    ],
)
def test_a_part_that_says_nothing_is_not_shown(fields: dict[str, Any], title: str) -> None:
    outcome = outcome_of(answer(**fields), "judge", LETTERS, Requirements())
    shown = answer_markdown(Debate(outcome=outcome), V1)
    assert title not in shown
    assert "## In short" in shown


LISTED = Requirements(
    (Requirement(text="It is free.", hard=True), Requirement(text="It is blue.")), is_known=True
)


def test_what_is_unmet_is_told_in_the_words_and_by_the_number_of_the_list() -> None:
    made = outcome_of(answer(requirements_met={"R1": True, "R2": False}), "judge", LETTERS, LISTED)
    assert list(made.details.unfulfilled_requirements) == [
        UnfulfilledRequirement(text="It is blue.", hard=False, number=2)
    ]
    assert made.details.confidence == 80
    shown = answer_markdown(Debate(outcome=made, requirements=LISTED.items), V1)
    assert "- **Not met:** R2, It is blue.\n- **Met:** R1, It is free. (a must)\n" in shown


def test_confidence_is_capped_while_a_listed_must_is_unmet() -> None:
    made = outcome_of(answer(requirements_met={"R1": False}), "judge", LETTERS, LISTED)
    assert made.details.confidence == 40
    shown = answer_markdown(Debate(outcome=made, requirements=LISTED.items), V1)
    assert "- **Not met:** R1, It is free. (a must)\n- **Not judged:** R2, It is blue.\n" in shown


def test_where_nothing_is_required_nothing_is_unmet_whatever_the_judge_says() -> None:
    unmet = [{"text": "free", "hard": True}]
    made = outcome_of(answer(unfulfilled_requirements=unmet), "judge", LETTERS, Requirements(is_known=True))
    assert (list(made.details.unfulfilled_requirements), made.details.confidence) == ([], 80)
