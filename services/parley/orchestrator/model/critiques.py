"""Critiques as people and agents read them, the names of their issues, and what became of these."""

from collections.abc import Iterator
from typing import Final

from msgspec import Struct

from parley.v1.critique_pb2 import (
    ISSUE_STATUS_NOT_ANSWERED,
    ISSUE_STATUS_REJECTED,
    ISSUE_STATUS_TAKEN_UP,
    ISSUE_STATUS_UNSPECIFIED,
    Critique,
    Issue,
    IssueAnswer,
)

SEVERE: Final = 5
"""The severity from which on an issue matters: critics are told that it is a gap that matters."""
SERIOUS: Final = 7
"""The severity from which on an issue is serious."""
STATUS_WORDS: Final = {
    ISSUE_STATUS_NOT_ANSWERED: "not answered",
    ISSUE_STATUS_REJECTED: "not taken up",
    ISSUE_STATUS_UNSPECIFIED: "answered",
    ISSUE_STATUS_TAKEN_UP: "taken up",
}
"""In the order in which issues of one severity are listed: those that are still open first."""


class AnsweredIssue(Struct, frozen=True):
    """An issue and its author's answer."""

    issue: Issue
    answer: IssueAnswer

    @property
    def severity(self) -> int | None:
        """How bad it is, 0 to 10; None: not stated."""
        return severity_of(self.issue)

    @property
    def is_open(self) -> bool:
        """Whether the author did not take it up: it rejected it, or did not clearly answer."""
        return self.answer.status != ISSUE_STATUS_TAKEN_UP


def no_answer(critic: str, number: int) -> IssueAnswer:
    """Return what stands for the answer to a critic's issue that has none."""
    return IssueAnswer(critic_agent_id=critic, number=number, status=ISSUE_STATUS_NOT_ANSWERED)


def severity_of(issue: Issue) -> int | None:
    """Return how bad an issue is, 0 to 10; None: not stated."""
    return issue.severity if issue.HasField("severity") else None


def issue_name(letter: str, number: int) -> str:
    """Return what an issue is called among the agents, such as `B.2`: the critic's letter and its number there."""
    return f"{letter}.{number}"


def issue_names(letter: str, critique: Critique) -> Iterator[str]:
    """Yield the names of a critique's issues."""
    return (issue_name(letter, issue.number) for issue in critique.issues)


def severity_text(severity: int | None) -> str:
    """Return `severity 7 of 10`, or a text for no severity."""
    return "severity not said" if severity is None else f"severity {severity} of 10"


def render_critique(critique: Critique, letter: str) -> str:
    """Return a critique as text (CommonMark); `letter` is the critic's."""
    return "\n\n".join(_blocks(critique, letter))


def _blocks(critique: Critique, letter: str) -> Iterator[str]:
    for name, issue in zip(issue_names(letter, critique), critique.issues, strict=True):
        suggestion = f"\n\nSuggestion: {issue.suggestion}" if issue.suggestion else ""
        yield f"**Issue {name}** ({severity_text(severity_of(issue))}): {issue.text}{suggestion}"
    if critique.remarks:
        yield critique.remarks
    if critique.HasField("agrees"):
        yield f"Agent {letter} {'agrees' if critique.agrees else 'does not agree'} with the proposal as it stands."
