"""The issues of a debate that matter most as a table, and the answers of an author to them."""

from collections.abc import Iterable, Iterator
from typing import Final

from parley.orchestrator.api.report_page import ReportPage
from parley.orchestrator.model.critiques import STATUS_WORDS
from parley.orchestrator.model.issue_table import TrackedIssue
from parley.orchestrator.model.short_text import to_line
from parley.runtime.agent_names import Names, join_words
from parley.runtime.safe_markdown import list_item, table
from parley.v1.critique_pb2 import ISSUE_STATUS_NOT_ANSWERED, IssueAnswer
from parley.v1.debate_pb2 import Contribution

_MAX_TEXT: Final = 240
_MAX_ISSUES: Final = 100
"""More are not read as a table. Each issue stands in its critique too, with its number and all of its text."""
_HEAD: Final = ("No.", "Round", "Who", "Against", "Severity", "Issue", "What became of it")


def issues_section(page: ReportPage) -> Iterator[str]:
    """Yield the table of the issues: those that are open first, then the most severe."""
    issues = page.issues.issues
    if not issues:
        return
    yield "## Issues"
    taken = sum(not each.is_open for each in issues)
    yield (
        f"{taken:,} of {len(issues):,} issues were taken up. Those that were not come first. Severity is from 0 to 10:"
        " with 10 the proposal must not be used, 1 is a matter of taste."
    )
    shown = sorted(issues, key=_place)[:_MAX_ISSUES]
    yield table(_HEAD, (_cells(page.names, each) for each in shown))
    if more := len(issues) - len(shown):
        yield f"{more:,} more {'stands' if more == 1 else 'stand'} in the critiques below."


def _place(each: TrackedIssue) -> tuple[bool, int]:
    severity = each.severity
    return (not each.is_open, -1 if severity is None else -severity)


def _cells(names: Names, each: TrackedIssue) -> tuple[str, ...]:
    severity, answer = each.severity, each.answer
    reason = to_line(names.put_in(said), _MAX_TEXT) if (said := answer.reason) else ""
    return (
        str(each.number),
        str(each.round),
        names.of(each.critic),
        names.of(each.target),
        "not stated" if severity is None else str(severity),
        to_line(names.put_in(each.issue.text), _MAX_TEXT),
        f"{STATUS_WORDS[answer.status]}{': ' if reason else ''}{reason}",
    )


def describe_answers(page: ReportPage, made: Contribution, answers: Iterable[IssueAnswer]) -> str:
    """Return an author's answers to the issues that were raised against its proposal, as a list; those without one are an item."""
    items, unanswered = [], []
    for each in answers:
        name = _name_issue(page, made, each)
        if each.status == ISSUE_STATUS_NOT_ANSWERED:
            unanswered.append(name)
            continue
        because = f": {page.names.put_in(each.reason)}" if each.reason else ""
        items.append(f"{name[0].upper()}{name[1:]}, {STATUS_WORDS[each.status]}{because}")
    if unanswered:
        items.append(f"Not answered: {join_words(unanswered)}")
    return "\n".join(map(list_item, items))


def _name_issue(page: ReportPage, made: Contribution, each: IssueAnswer) -> str:
    critic, number = each.critic_agent_id, each.number
    return f"{page.name_issue(made, critic, number) or f'issue {number}'} of {page.names.of(critic)}"
