"""The report of a debate, finished or not, as CommonMark: its answer first, then what led to it.

Texts of agents and people are in block quotes and list items, which end where we end them, without headings, HTML, images and
definitions of links: nothing in a text can reach the rest of the document, pose as a part of it, or have a reader fetch something.
"""

from collections.abc import Iterator
from functools import partial
from typing import Final

from parley.orchestrator.api.answer import answer_parts, calls_before_answer, calls_of_all_rounds
from parley.orchestrator.api.report_about import about_section, status_lines, warnings_and_failures
from parley.orchestrator.api.report_analysis import analysis_section
from parley.orchestrator.api.report_contribution import contribution_block
from parley.orchestrator.api.report_issues import issues_section
from parley.orchestrator.api.report_page import ReportPage
from parley.orchestrator.api.report_people import (
    clarifications_section,
    feedback_section,
    interventions_section,
)
from parley.orchestrator.api.report_rounds import rounds_sections
from parley.orchestrator.api.report_sources import sources_section
from parley.orchestrator.api.verdict import verdict_lines
from parley.orchestrator.engine.format import AnswerPart, Format
from parley.orchestrator.log.feedback import Feedback
from parley.orchestrator.model.effect_text import effect_lines
from parley.orchestrator.model.short_text import to_title
from parley.runtime.safe_markdown import inline, list_item, quote, table
from parley.v1.debate_pb2 import Debate
from parley.v1.effect_pb2 import ChangedStand, TakenUpIssue

_MAX_QUESTION_LINES: Final = 10
_MAX_QUESTION: Final = 2_000
"""A longer question stands below the answer."""


def render_report(debate: Debate, debate_format: Format | None, feedback: Feedback | None = None) -> str:
    """Return the report of a debate in one piece; see `report_blocks`."""
    return "".join(report_pieces(debate, debate_format, feedback))


def report_pieces(
    debate: Debate, debate_format: Format | None, feedback: Feedback | None = None
) -> Iterator[str]:
    """Yield the report of a debate in pieces, of which each is made when it is asked for."""
    separator = ""
    for block in _blocks(ReportPage(debate, debate_format), feedback):
        yield f"{separator}{block}"
        separator = "\n\n"
    yield "\n"


def _blocks(page: ReportPage, feedback: Feedback | None) -> Iterator[str]:
    """Yield the blocks of a report.

    Its format, if it is known here, names its phases and the parts of its answer. `feedback` is a person's feedback on it.
    """
    debate = page.debate
    yield f"# {inline(to_title(debate.spec.question))}"
    yield from () if _is_long(debate) else question_blocks(debate)
    yield from _opening(page)
    yield from _answer(page)
    if _is_long(debate):
        yield "## Question"
        yield from question_blocks(debate)
    yield from _requirements(page)
    yield from effect_section(page)
    yield from analysis_section(page)
    yield from sources_section(page)
    yield from issues_section(page)
    yield from clarifications_section(page)
    yield from interventions_section(page)
    yield from feedback_section(feedback)
    yield from rounds_sections(page)
    yield from warnings_and_failures(page)
    yield from about_section(page)


def question_blocks(debate: Debate) -> Iterator[str]:
    """Yield the whole question, unless the title is all of it."""
    question = debate.spec.question
    if " ".join(question.split()) != to_title(question):
        yield quote(question)


def _is_long(debate: Debate) -> bool:
    question = debate.spec.question.strip()
    return len(question) > _MAX_QUESTION or question.count("\n") >= _MAX_QUESTION_LINES


def _opening(page: ReportPage) -> Iterator[str]:
    """Yield what must be known before the answer: the state of a debate without one, else decision, confidence and dissent."""
    lines = [f"- {line}" for line in status_lines(page)]
    if page.debate.HasField("outcome"):
        lines += map(list_item, verdict_lines(page.debate, page.debate_format, page.issues))
    yield from ["\n".join(lines)] if lines else []


def _answer(page: ReportPage) -> Iterator[str]:
    debate = page.debate
    yield "## Answer"
    if debate.HasField("outcome"):
        yield from _answer_parts(page)
        return
    has_ended = debate.HasField("end_time") or debate.HasField("failure")
    yield "There is no answer." if has_ended else "There is no answer yet."
    for made in page.answers:
        yield contribution_block(page, made)


def _answer_parts(page: ReportPage) -> Iterator[str]:
    for part in answer_parts(page.debate, page.debate_format, below_verdict=True):
        if part.title:
            yield f"### {inline(part.title)}"
        yield _part_block(page, part)
    outcome = page.debate.outcome
    if scores := outcome.scores if not outcome.arena.ranking else ():
        yield "### Scores"
        ordered = sorted(scores, key=lambda each: (-each.score, each.agent_id))
        rows = [(page.names.of(each.agent_id), f"{each.score:g}") for each in ordered]
        yield table(("Agent", "Score, 0 to 10"), rows)


def _part_block(page: ReportPage, part: AnswerPart) -> str:
    if part.items:
        return "\n".join(list_item(page.names.put_in(item)) for item in part.items)
    text = page.names.put_in(part.text)
    return quote(text) if part.quoted else inline(text)


def _requirements(page: ReportPage) -> Iterator[str]:
    """Yield what an answer has to meet, while there is none."""
    debate = page.debate
    if debate.requirements and not debate.HasField("outcome"):
        yield "## Requirements"
        yield "\n".join(
            list_item(f"R{number}{' (a must)' if each.hard else ''}: {each.text}")
            for number, each in enumerate(debate.requirements, start=1)
        )


def effect_section(page: ReportPage) -> Iterator[str]:
    """Yield what the debate added to its first drafts; before it is known, how these group."""
    debate = page.debate
    if debate.outcome.HasField("effect"):
        yield "## What the debate changed"
        lines = effect_lines(
            debate.outcome.effect,
            calls_before_answer(debate),
            page.names.of,
            partial(_name_issue, page),
            max_calls=calls_of_all_rounds(debate),
        )
        yield "\n".join(list_item(page.names.put_in(line)) for line in lines)
    elif debate.HasField("first_drafts"):
        yield "## Vote over the first drafts"
        yield _majority(debate)
        for group in debate.first_drafts.groups:
            names = page.names.list_of(group.agent_ids)
            yield list_item(f"{names}: {group.position}" if group.position else names)


def _name_issue(page: ReportPage, change: ChangedStand, issue: TakenUpIssue) -> str:
    found = page.issues.find(change.round, issue.critic_agent_id, change.agent_id, issue.number)
    critic = page.names.of(issue.critic_agent_id)
    return f"issue {found.number if found else issue.number} of {critic}"


def _majority(debate: Debate) -> str:
    drafts = debate.first_drafts
    count = sum(len(group.agent_ids) for group in drafts.groups)
    if not drafts.majority:
        return f"Before anyone read another's draft, no position had more than half of the {count} drafts."
    first = len(drafts.groups[0].agent_ids)
    return f"Before anyone read another's draft, {first} of {count} took the same position."
