"""All issues of a debate in one table, with what became of each."""

from parley.orchestrator.model.issue_table import IssueTable
from parley.v1.critique_pb2 import (
    ISSUE_STATUS_NOT_ANSWERED,
    ISSUE_STATUS_REJECTED,
    ISSUE_STATUS_TAKEN_UP,
    Critique,
    Issue,
    IssueAnswer,
)
from parley.v1.debate_pb2 import Contribution, Reply, Work
from tests.support.growth import check_growth


def critique(sequence: int, number: int, *severities: int) -> Contribution:
    """A critique of ada's work by bo in a round."""
    issues = [
        Issue(number=place, text=f"issue {place}", severity=severity)
        for place, severity in enumerate(severities, start=1)
    ]
    work = Work(activity="critique", agent_id="bo", target_agent_id="ada", round=number)
    reply = Reply(critique=Critique(issues=issues))
    return Contribution(key=f"{number}/critique", work=work, reply=reply, sequence=sequence)


def refinement(sequence: int, number: int, **answers: int) -> Contribution:
    """A refinement of ada's that answers issues of bo, each by its number."""
    given = [
        IssueAnswer(critic_agent_id="bo", number=int(name[1:]), status=status)  # type: ignore[arg-type]
        for name, status in answers.items()
    ]
    work = Work(activity="refinement", agent_id="ada", round=number)
    return Contribution(
        key=f"{number}/refine", work=work, reply=Reply(issue_answers=given), sequence=sequence
    )


FIRST = refinement(2, 1, i1=ISSUE_STATUS_TAKEN_UP, i2=ISSUE_STATUS_REJECTED)
SECOND = refinement(4, 2, i1=ISSUE_STATUS_REJECTED)
TABLE = IssueTable([critique(1, 1, 9, 7), FIRST, critique(3, 2, 8, 3), SECOND, critique(5, 3, 10)])


def test_a_number_is_unique_in_the_debate_and_the_answer_is_that_of_the_next_refinement() -> None:
    assert [(each.number, each.round, each.answer.status) for each in TABLE.issues] == [
        (1, 1, ISSUE_STATUS_TAKEN_UP),
        (2, 1, ISSUE_STATUS_REJECTED),
        (3, 2, ISSUE_STATUS_REJECTED),
        (4, 2, ISSUE_STATUS_NOT_ANSWERED),
        (5, 3, ISSUE_STATUS_NOT_ANSWERED),
    ]


def test_the_serious_ones_that_were_not_taken_up_come_most_severe_first() -> None:
    assert [each.number for each in TABLE.list_open_serious()] == [5, 3, 2]


def test_a_contribution_means_the_last_issue_before_it() -> None:
    found = [TABLE.of(FIRST, "bo", 1), TABLE.of(SECOND, "bo", 1), TABLE.of(SECOND, "cy", 1)]
    assert [each.number if each else 0 for each in found] == [1, 3, 0]
    own = TABLE.of(critique(3, 2, 8), "bo", 1)
    assert own is not None
    assert own.number == 3


def test_an_issue_is_found_by_its_round() -> None:
    found = [TABLE.find(number, "bo", "ada", 1) for number in (1, 2, 9)]
    assert [each.number if each else 0 for each in found] == [1, 3, 5]


def _look_up_issues(rounds: int) -> None:
    made = [
        each
        for number in range(1, rounds + 1)
        for each in (
            critique(2 * number, number, 9),
            refinement(2 * number + 1, number, i1=ISSUE_STATUS_TAKEN_UP),
        )
    ]
    table = IssueTable(made)
    for refined in made[1::2]:
        assert table.of(refined, "bo", 1) is not None


def test_an_issue_of_a_long_debate_is_found_without_a_look_at_all_others() -> None:
    check_growth(_look_up_issues, 6400)
