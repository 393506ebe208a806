"""The issues of a debate as a table, and the answers of an author to them."""

from collections.abc import Iterator
from typing import Final

from parley.orchestrator.api.report_page import ReportPage
from parley.orchestrator.model.critiques import STATUS_WORDS
from parley.orchestrator.model.issue_table import TrackedIssue
from parley.orchestrator.model.short_text import to_line
from parley.runtime.safe_markdown import list_item, table
from parley.v1.critique_pb2 import IssueAnswer
from parley.v1.debate_pb2 import Contribution

_MAX_TEXT: Final = 240
_HEAD: Final = ("No.", "Round", "Who", "Against", "Severity", "Issue", "What became of it")


def issues_section(page: ReportPage) -> Iterator[str]:
    """Yield the table of all issues: those that are open first, then the most severe."""
    if not page.issues.issues:
        return
    yield "## Issues"
    taken = sum(not each.is_open for each in page.issues.issues)
    yield (
        f"{taken} of {len(page.issues.issues)} issues were taken up. Those that were not come first. Severity is from 0 to 10:"
        " with 10 the proposal must not be used, 1 is a matter of taste."
    )
    yield table(_HEAD, (_cells(page, each) for each in _sort(page)))


def _sort(page: ReportPage) -> list[TrackedIssue]:
    def place(each: TrackedIssue) -> tuple[bool, int, int]:
        severity = each.severity
        return (not each.is_open, -1 if severity is None else -severity, each.number)

    return sorted(page.issues.issues, key=place)


def _cells(page: ReportPage, each: TrackedIssue) -> tuple[str, ...]:
    names, severity = page.names, each.severity
    reason = to_line(names.put_in(each.answer.reason), _MAX_TEXT)
    return (
        str(each.number),
        str(each.round),
        names.of(each.critic),
        names.of(each.target),
        "not stated" if severity is None else str(severity),
        to_line(names.put_in(each.issue.text), _MAX_TEXT),
        f"{STATUS_WORDS[each.answer.status]}{': ' if reason else ''}{reason}",
    )


def issue_answers(page: ReportPage, made: Contribution) -> Iterator[str]:
    """Yield the author's answers to the issues that were raised against its proposal."""
    if answers := made.reply.issue_answers:
        yield "Answers to issues:"
        yield "\n".join([list_item(_describe_answer(page, made, each)) for each in answers])


def _describe_answer(page: ReportPage, made: Contribution, each: IssueAnswer) -> str:
    critic = page.names.of(each.critic_agent_id)
    name = page.name_issue(made, each.critic_agent_id, each.number) or f"issue {each.number}"
    reason = f": {page.names.put_in(each.reason)}" if each.reason else ""
    return f"{name[:1].upper()}{name[1:]} of {critic}, {STATUS_WORDS[each.status]}{reason}"
