"""Critiques as people and agents read them, and the names of their issues."""

from collections.abc import Iterator

from parley.v1.critique_pb2 import Critique


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
        severity = issue.severity if issue.HasField("severity") else None
        suggestion = f"\n\nSuggestion: {issue.suggestion}" if issue.suggestion else ""
        yield f"**Issue {name}** ({severity_text(severity)}): {issue.text}{suggestion}"
    if critique.remarks:
        yield critique.remarks
    if critique.HasField("agrees"):
        yield f"Agent {letter} {'agrees' if critique.agrees else 'does not agree'} with the proposal as it stands."
