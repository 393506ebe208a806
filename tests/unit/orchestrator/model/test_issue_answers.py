"""What an author says of the issues that were raised: every usual form is read, and nothing is made up."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from parley.orchestrator.model.issue_answers import RaisedIssue, answer_instructions, parse_answers
from parley.orchestrator.model.positions import position_of
from parley.v1.critique_pb2 import (
    ISSUE_STATUS_NOT_ANSWERED,
    ISSUE_STATUS_REJECTED,
    ISSUE_STATUS_TAKEN_UP,
    ISSUE_STATUS_UNSPECIFIED,
    IssueStatus,
)

B1, B2, C1 = (
    RaisedIssue(name, critic, number)
    for name, critic, number in (("B.1", "bo", 1), ("B.2", "bo", 2), ("C.1", "cy", 1))
)
RAISED = (B1, B2, C1)
PROPOSAL = "# Plan\n\nUse one process.\n\nPosition: One process."
NOT, UP, NO, UNCLEAR = (
    ISSUE_STATUS_NOT_ANSWERED,
    ISSUE_STATUS_TAKEN_UP,
    ISSUE_STATUS_REJECTED,
    ISSUE_STATUS_UNSPECIFIED,
)


def read(section: str) -> tuple[str, list[tuple["IssueStatus.ValueType", str]]]:
    text, answers = parse_answers(f"{PROPOSAL}\n\n{section}", RAISED)
    assert [(each.critic_agent_id, each.number) for each in answers] == [("bo", 1), ("bo", 2), ("cy", 1)]
    return text, [(each.status, each.reason) for each in answers]


@pytest.mark.parametrize(
    "section",
    [
        "## Answers to issues\nB.1: taken up\nB.2: not taken up, because it is slow\nC.1: taken up",
        "## Answers to issues\n\n- **B.1**: taken up\n- **B.2**: not taken up, because it is slow\n- **C.1**: taken up\n",
        "3. ## Answers to issues\nB.1: taken up\nB.2: not taken up, because it is slow\nC.1: taken up",
        "**Answers to issues:**\n* B.1 — taken up.\n* B.2 — not taken up: it is slow\n* C.1 — taken up",
        "## Answers to the issues\n1. B1: accepted\n2. B2: rejected, because it is slow\n3. C1: adopted",
        "### Responses to critiques\n| B.1 | taken up |\n| B.2 | not taken up | it is slow |\n| C.1 | taken up |",
        "Answers to issues:\nB.1, C.1: taken up\nB.2: declined: it is slow",
        "## answers to issues\nb.1: Taken up\nagent B's issue 2: Not taken up, because it is slow\nIssue C.1: Taken up",
        "## Answers to issues\n### B.1\nTaken up.\n### B.2\nNot taken up, because it is slow\n### C.1\nTaken up",
        "---\n## Answers to issues\n[B.1] taken up\n[B.2] wasn't adopted because it is slow\n[C.1] taken up",
        "B.1: taken up\nB.2: not taken up, because it is slow\nC.1: taken up",
    ],
)
def test_answers_in_any_usual_form_are_read_and_taken_off_the_proposal(section: str) -> None:
    text, answers = read(section)
    assert text == PROPOSAL
    assert [(status, reason.rstrip(".")) for status, reason in answers] == [
        (UP, ""),
        (NO, "it is slow"),
        (UP, ""),
    ]


@pytest.mark.parametrize(
    ("words", "status", "reason"),
    [
        ("taken up: late events are no longer rejected", UP, "late events are no longer rejected"),
        ("not taken up; the change was added elsewhere", NO, "the change was added elsewhere"),
        ("We added a rollback to step 3", UP, "We added a rollback to step 3"),
        ("I left it out and kept as it was: unchanged", NO, "I left it out and kept as it was: unchanged"),
        ("partly taken up: one table only", UP, "one table only"),
        ("The team has two people on call.", UNCLEAR, "The team has two people on call."),
        ("I disagree, since\nit costs more", NO, "I disagree, since\nit costs more"),
        ("", NOT, ""),
        ("—", NOT, ""),
    ],
)
def test_what_was_done_is_told_from_the_first_words_or_else_from_all(
    words: str, status: "IssueStatus.ValueType", reason: str
) -> None:
    _, answers = read(f"## Answers to issues\nB.1: {words}")
    assert answers == [(status, reason), (NOT, ""), (NOT, "")]


def test_a_position_that_stands_after_the_answers_stays_with_the_proposal() -> None:
    written = "Use one.\n\n## Answers to issues\nB.1: taken up\n\nPosition: One."
    text, answers = parse_answers(written, RAISED)
    assert (text, position_of(text)) == ("Use one.\n\nPosition: One.", "One.")
    assert answers[0].status == UP


def test_what_follows_the_answers_under_its_own_heading_stays_with_the_proposal() -> None:
    text, _ = parse_answers("Use one.\n\n## Answers to issues\nB.1: taken up\n\n## Steps\n1. Begin.", RAISED)
    assert text == "Use one.\n\n## Steps\n1. Begin."


@pytest.mark.parametrize(
    "text",
    [
        PROPOSAL,
        "## Answers to issues\nThere were many, and all were fair.",
        "B.7: taken up",
        "Ports: B.1: 80\nand so on.",
        "Vitamin B1 helps.\nB12 does not.",
    ],
)
def test_a_model_that_answers_nothing_keeps_its_text_and_its_issues_are_not_answered(text: str) -> None:
    proposal, answers = parse_answers(text, RAISED)
    assert proposal == text
    assert {each.status for each in answers} == {NOT}


def test_answers_to_issues_that_nobody_raised_are_taken_off_too() -> None:
    text, answers = parse_answers(f"{PROPOSAL}\n\n## Answers to issues\nD.1: taken up", RAISED)
    assert text == PROPOSAL
    assert {each.status for each in answers} == {NOT}


def test_an_answer_to_an_issue_that_nobody_raised_is_no_part_of_another_answer() -> None:
    _, answers = read("## Answers to issues\nB.1: taken up: one table\nA.1: not taken up\nB.2: taken up")
    assert answers == [(UP, "one table"), (UP, ""), (NOT, "")]


def test_a_text_of_nothing_but_answers_stays_whole() -> None:
    written = "B.1: taken up\nB.2: taken up"
    text, answers = parse_answers(written, RAISED)
    assert text == written
    assert [each.status for each in answers] == [UP, UP, NOT]


def test_where_nothing_was_raised_nothing_is_read() -> None:
    assert parse_answers("Use one.\nB.1: taken up", ()) == ("Use one.\nB.1: taken up", [])


@given(st.text("AB.1:\n-*# |notake up", max_size=80))
def test_any_text_is_read_in_the_same_way_twice_and_never_grows(text: str) -> None:
    proposal, answers = parse_answers(text, RAISED)
    assert len(proposal) <= len(text) + 1
    assert len(answers) == len(RAISED)
    assert parse_answers(text, RAISED) == (proposal, answers)


@pytest.mark.parametrize(
    "text", ["B.1 " * 5000, "*" * 50_000, "B.1," * 20_000, "## Answers to issues\n" * 3000, "not " * 20_000]
)
def test_a_long_text_is_read_at_once(text: str) -> None:
    parse_answers(text, RAISED)
    parse_answers(f"## Answers to issues\nB.1: {text}", RAISED)


def test_an_author_is_told_which_issues_to_answer_and_how() -> None:
    told = answer_instructions([each.name for each in RAISED])
    assert "B.1, B.2, C.1" in told
    assert "`B.1: not taken up, because …`" in told
