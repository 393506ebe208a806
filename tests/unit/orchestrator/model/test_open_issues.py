"""What a judge reads of the issues: open ones first, then the most severe, and nothing of the last round left out."""

from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.open_issues import issues_of, list_raised_issues
from parley.v1.critique_pb2 import (
    ISSUE_STATUS_NOT_ANSWERED,
    ISSUE_STATUS_REJECTED,
    ISSUE_STATUS_TAKEN_UP,
    Critique,
    Issue,
    IssueAnswer,
    IssueStatus,
)

LETTERS = {"ada": "A", "bo": "B", "cy": "C"}


def letter(agent: str) -> str:
    return LETTERS[agent]


def make_critique(
    critic: str, target: str, number: int, *severities: int | None, agrees: bool | None = False
) -> Contribution:
    issues = [
        Issue(number=place, text=f"{critic} finds {place} in round {number}.", severity=severity)
        for place, severity in enumerate(severities, start=1)
    ]
    critique = Critique(issues=issues, agrees=agrees)
    return Contribution(critic, "critique", number, "…", target=target, critique=critique)


def make_refinement(
    agent: str, number: int, *answers: tuple[str, int, "IssueStatus.ValueType", str]
) -> Contribution:
    said = tuple(
        IssueAnswer(critic_agent_id=critic, number=place, status=status, reason=reason)
        for critic, place, status, reason in answers
    )
    return Contribution(agent, "refinement", number, "…", answers=said)


def test_open_issues_come_first_and_then_the_most_severe() -> None:
    held = [
        make_critique("bo", "ada", 1, 9, 3, 5),
        make_critique("cy", "ada", 1, None, 5, agrees=True),
        make_refinement(
            "ada",
            1,
            ("bo", 1, ISSUE_STATUS_TAKEN_UP, "step 3 has one"),
            ("bo", 2, ISSUE_STATUS_REJECTED, "too costly"),
            ("bo", 3, ISSUE_STATUS_REJECTED, ""),
            ("cy", 2, ISSUE_STATUS_NOT_ANSWERED, ""),
        ),
    ]
    assert issues_of(letter, [held]).splitlines() == [
        "Issues raised in round 1 against the work of agent A:",
        "- issue C.2, severity 5 of 10, not answered: cy finds 2 in round 1.",
        "- issue B.3, severity 5 of 10, not taken up: bo finds 3 in round 1.",
        "- issue B.2, severity 3 of 10, not taken up: bo finds 2 in round 1. Agent's answer: too costly",
        "- issue C.1, severity not said, not answered: cy finds 1 in round 1.",
        "- issue B.1, severity 9 of 10, taken up: bo finds 1 in round 1. Agent's answer: step 3 has one",
        "- agent B did not agree with the proposal before it was refined",
        "- agent C agreed with the proposal before it was refined",
    ]


def test_issues_of_a_proposal_that_was_never_refined_are_not_answered() -> None:
    assert "severity 4 of 10, not answered" in issues_of(letter, [[make_critique("bo", "ada", 1, 4)]])


def test_of_earlier_rounds_the_most_severe_issues_are_told_that_were_not_taken_up() -> None:
    first = [
        make_critique("bo", "ada", 1, 1, 2, 3, 4, 5, 6, 7),
        make_refinement(
            "ada", 1, ("bo", 7, ISSUE_STATUS_REJECTED, "too costly"), ("bo", 6, ISSUE_STATUS_TAKEN_UP, "")
        ),
    ]
    last = [make_critique("bo", "ada", 2, agrees=True), make_refinement("ada", 2)]
    assert issues_of(letter, [first, last, []]).splitlines() == [
        "Issues raised in round 2 against the work of agent A:",
        "- agent B agreed with the proposal before it was refined, and named no issue",
        "Raised in earlier rounds and not taken up then:",
        "- round 1, issue B.7, severity 7 of 10, not taken up: bo finds 7 in round 1. Agent's answer: too costly",
        *(
            f"- round 1, issue B.{place}, severity {place} of 10, not answered: bo finds {place} in round 1."
            for place in (5, 4, 3, 2)
        ),
        "- and 1 less severe ones",
    ]


def test_a_critique_in_prose_is_named_since_its_words_are_told_with_the_debate() -> None:
    prose = Contribution(
        "bo", "critique", 1, "Too slow.", target="ada", critique=Critique(remarks="Too\nslow.")
    )
    assert issues_of(letter, [[prose]]).splitlines()[1:] == [
        "- the critique by agent B names no single issues; it stands with the debate itself"
    ]


def test_where_nothing_was_criticized_nothing_is_told() -> None:
    assert issues_of(letter, []) == ""
    assert issues_of(letter, [[Contribution("ada", "proposal", 1, "…")]]) == ""


def test_each_agent_is_told_of_by_itself() -> None:
    text = issues_of(letter, [[make_critique("bo", "ada", 1, 4), make_critique("ada", "bo", 1, 6)]])
    assert [part.splitlines()[0] for part in text.split("\n\n")] == [
        "Issues raised in round 1 against the work of agent A:",
        "Issues raised in round 1 against the work of agent B:",
    ]


def test_issues_are_raised_under_the_critics_letter() -> None:
    prose = Contribution("cy", "critique", 1, "…", target="ada")
    raised = list_raised_issues(letter, [make_critique("bo", "ada", 1, 4, None), prose])
    assert [(each.name, each.critic, each.number) for each in raised] == [("B.1", "bo", 1), ("B.2", "bo", 2)]
