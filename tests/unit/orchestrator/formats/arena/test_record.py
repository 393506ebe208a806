"""The record of an arena: which critiques stand, who is asked again, and what is still open."""

from parley.orchestrator.formats.arena.record import Transcript
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.open_issues import issues_of
from parley.v1.critique_pb2 import (
    ISSUE_STATUS_REJECTED,
    ISSUE_STATUS_TAKEN_UP,
    Critique,
    Issue,
    IssueAnswer,
    IssueStatus,
)


def proposal(agent: str) -> Contribution:
    return Contribution(agent, "proposal", 1, f"{agent} proposes")


def criticism(critic: str, target: str, severity: int | None = 7) -> Contribution:
    issue = Issue(number=1, text="It fails.", severity=severity)
    critique = Critique(issues=[issue], agrees=False)
    return Contribution(critic, "critique", 2, "It fails.", target=target, critique=critique)


def refinement(agent: str, critic: str, status: IssueStatus.ValueType, number: int = 3) -> Contribution:
    answer = IssueAnswer(critic_agent_id=critic, number=1, status=status)
    return Contribution(agent, "refinement", number, f"{agent} refines", answers=(answer,))


def start_transcript() -> Transcript:
    record = Transcript()
    for agent in ("ada", "bo"):
        record.add_proposal(proposal(agent))
    record.add_critique(criticism("ada", "bo"))
    record.add_critique(criticism("bo", "ada", severity=3))
    return record


def letter(agent: str) -> str:
    return agent[0].upper()


def test_a_critic_is_asked_again_only_once_the_text_was_rewritten() -> None:
    record, edges = start_transcript(), [("ada", "bo"), ("bo", "ada")]
    assert record.missing_edges(edges) == []
    record.add_revisions([refinement("bo", "ada", ISSUE_STATUS_TAKEN_UP)])
    assert record.missing_edges(edges) == [("ada", "bo")]
    assert [made.agent for made in record.open_critiques("ada")] == ["bo"]
    assert record.work("bo").text == "bo refines"


def test_a_serious_issue_is_open_until_it_is_taken_up() -> None:
    record = start_transcript()
    assert record.has_serious_open_issue(["ada", "bo"])
    assert not record.has_serious_open_issue(["ada"]), "the one against ada is not serious"
    record.add_revisions([refinement("bo", "ada", ISSUE_STATUS_REJECTED)])
    assert record.has_serious_open_issue(["bo"]), "it was not taken up"


def test_an_issue_that_was_taken_up_is_open_no_more() -> None:
    record = start_transcript()
    record.add_revisions([refinement("bo", "ada", ISSUE_STATUS_TAKEN_UP)])
    assert not record.has_serious_open_issue(["ada", "bo"])


def test_a_critique_without_a_severity_is_not_serious() -> None:
    record = start_transcript()
    record.add_critique(criticism("ada", "bo", severity=None))
    assert not record.has_serious_open_issue(["bo"])


def test_what_was_criticized_is_told_with_what_became_of_it_and_to_its_author_alone() -> None:
    record = start_transcript()
    record.add_revisions([refinement("bo", "ada", ISSUE_STATUS_TAKEN_UP)])
    of_bo = issues_of(letter, record.exchanges("bo"))
    assert "issue A.1, severity 7 of 10, taken up" in of_bo
    assert "work of agent A" not in of_bo
    assert "work of agent A" in issues_of(letter, record.exchanges())
    assert [made.agent for made in record.critiques_of(3)] == ["ada"]
    assert record.critiques_of(4) == []
