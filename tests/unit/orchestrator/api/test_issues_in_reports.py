"""The issues of a debate in its report: those that matter most in a table, all of them in their critiques."""

from collections.abc import Sequence

from parley.orchestrator.log.envelope import create_event
from parley.orchestrator.model.critiques import render_critique
from parley.v1.critique_pb2 import ISSUE_STATUS_REJECTED, ISSUE_STATUS_TAKEN_UP, Critique, Issue, IssueAnswer
from parley.v1.debate_pb2 import Reply, Work
from parley.v1.event_pb2 import Event, StepSucceeded
from tests.unit.orchestrator.api.reports import BEGUN, REFINEMENT, cells, report
from tests.unit.orchestrator.made_logs import key_of


def make_critique(severities: Sequence[int], round_number: int = 1) -> Event:
    issues = [
        Issue(number=number, severity=severity, text=f"Flaw {number}.")
        for number, severity in enumerate(severities, start=1)
    ]
    critique = Critique(issues=issues)
    reply = Reply(text="{}", rendered=render_critique(critique, "B"), critique=critique)
    work = Work(activity="critique", agent_id="bo", round=round_number, target_agent_id="ada")
    return create_event(key_of(work), StepSucceeded(work=work, reply=reply), 1)


def make_refinement(answers: Sequence[IssueAnswer]) -> Event:
    reply = Reply(text="Use B.", issue_answers=answers)
    return create_event(key_of(REFINEMENT), StepSucceeded(work=REFINEMENT, reply=reply), 1)


def list_numbers(text: str) -> list[str]:
    table = cells(text[text.index("## Issues") : text.index("## Rounds")])
    return table[7::7]


def test_open_issues_come_first_then_the_most_severe() -> None:
    statuses = (ISSUE_STATUS_TAKEN_UP, ISSUE_STATUS_TAKEN_UP, ISSUE_STATUS_REJECTED)
    answers = [
        IssueAnswer(critic_agent_id="bo", number=number, status=status)
        for number, status in enumerate(statuses, start=1)
    ]

    text = report(*BEGUN, make_critique([5, 9, 2]), make_refinement(answers))

    assert list_numbers(text) == ["3", "2", "1"]
    assert "2 of 3 issues were taken up." in text
    assert "more stand in the critiques" not in text


def test_of_many_issues_the_worst_are_in_the_table_and_each_is_in_its_critique() -> None:
    text = report(
        *BEGUN, *(make_critique([5] * 50, number) for number in range(1, 21)), make_critique([9], 21)
    )

    assert list_numbers(text) == ["1001", *map(str, range(1, 100))]
    assert "0 of 1,001 issues were taken up." in text
    assert "\n\n901 more stand in the critiques below.\n\n" in text
    assert all(text.count(f"**Issue {number}** (") == 1 for number in range(1, 1002))


def test_one_issue_beside_those_in_the_table_is_told_of() -> None:
    text = report(*BEGUN, make_critique([5] * 50), make_critique([5] * 50, 2), make_critique([1], 3))

    assert "\n\n1 more stands in the critiques below.\n\n" in text
