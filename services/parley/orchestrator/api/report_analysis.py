"""What the answer of a debate rests on, where its agents disagree, and what changed minds.

It stands by itself. The report has a section of those parts that none of its other sections has.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from parley.orchestrator.api.report_page import ReportPage
from parley.orchestrator.engine.format import Format
from parley.orchestrator.model.critiques import STATUS_WORDS
from parley.orchestrator.model.disagreement import list_failed_patterns, list_insights, report_disagreement
from parley.orchestrator.model.short_text import to_line
from parley.orchestrator.model.sources import describe_source
from parley.runtime.agent_names import join_words
from parley.runtime.errors import failed_precondition
from parley.runtime.safe_markdown import inline, list_item, table
from parley.v1.analysis_pb2 import (
    CLAIM_GROUNDING_OPPOSED,
    CLAIM_GROUNDING_SUPPORTED,
    CLAIM_GROUNDING_UNSUPPORTED,
    FORMAL_RESULT_REFUTED,
    FORMAL_RESULT_UNCHECKED,
    FORMAL_RESULT_UNKNOWN,
    FORMAL_RESULT_VALID,
    Analysis,
    AnswerClaim,
    DisagreementReport,
    DisputedIssue,
    FailedPattern,
    Ground,
    Insight,
)
from parley.v1.debate_pb2 import Contribution, Debate
from parley.v1.orchestrator_pb2 import GetAnalysisResponse

_MAX_TEXT: Final = 240
_MAX_PLACES: Final = 4
_WORDS: Final = {
    CLAIM_GROUNDING_SUPPORTED: "supported",
    CLAIM_GROUNDING_OPPOSED: "opposed by what was said",
    CLAIM_GROUNDING_UNSUPPORTED: "not supported by anything said",
}
_FORMAL_WORDS: Final = {
    FORMAL_RESULT_VALID: "it holds",
    FORMAL_RESULT_REFUTED: "it does not hold for these values",
    FORMAL_RESULT_UNKNOWN: "it is not known whether it holds",
    FORMAL_RESULT_UNCHECKED: "not checked",
}
_HEAD: Final = ("No.", "Claim", "What was said about it", "Score, 0 to 100", "For it", "Against it")


def analysis_of(debate: Debate, debate_format: Format | None) -> GetAnalysisResponse:
    """Return what is known about a completed debate. Raise ParleyError while its answer is still to be analysed."""
    if debate.spec.analysis and not debate.HasField("analysis"):
        message = f"the answer of debate {debate.id} is not analysed yet; a system that runs debates does it, within minutes"
        raise failed_precondition("ANALYSIS_PENDING", message)
    return _collect_analysis(ReportPage(debate, debate_format))


def analysis_section(page: ReportPage) -> Iterator[str]:
    """Yield the section of a debate whose answer was analysed, or should have been: what no other section says.

    Positions and their changes stand with what the debate changed, open questions and dissent with the answer, issues in their table.
    """
    if page.debate.HasField("analysis"):
        yield "## Analysis"
        yield from _grounds(page)
        yield from _formal_checks(page)
        yield from _failed_patterns(page, list_failed_patterns(page.debate, page.issues))


def _collect_analysis(page: ReportPage) -> GetAnalysisResponse:
    """Return what is known about a completed debate, as data and as text."""
    debate = page.debate
    found = GetAnalysisResponse(
        analysis=debate.analysis if debate.HasField("analysis") else None,
        disagreement=report_disagreement(debate, page.issues),
        insights=list_insights(debate, page.issues),
        failed_patterns=list_failed_patterns(debate, page.issues),
    )
    found.markdown = "\n\n".join(_blocks(page, found))
    return found


def _blocks(page: ReportPage, found: GetAnalysisResponse) -> Iterator[str]:
    yield from _grounds(page)
    yield from _formal_checks(page)
    yield from _disagreement(page, found.disagreement)
    yield from _insights(page, found.insights)
    yield from _failed_patterns(page, found.failed_patterns)


def _grounds(page: ReportPage) -> Iterator[str]:
    if not page.debate.HasField("analysis"):
        return
    analysis = page.debate.analysis
    yield "### What the answer rests on"
    if analysis.missing:
        yield inline(f"It is not known: {page.names.put_in(analysis.missing)}.")
        return
    yield inline(_summarize(page, analysis))
    rows = (_cells(page, number, each) for number, each in enumerate(analysis.claims, start=1))
    yield table(_HEAD, rows)
    if analysis.verdict:
        yield from _cruxes(analysis)


def _summarize(page: ReportPage, analysis: Analysis) -> str:
    count = len(analysis.claims)
    bare = sum(each.grounding == CLAIM_GROUNDING_UNSUPPORTED for each in analysis.claims)
    opposed = sum(each.grounding == CLAIM_GROUNDING_OPPOSED for each in analysis.claims)
    who = page.names.of(analysis.analyst_agent_id)
    missing = f" It was not shown the {analysis.left_out} oldest contributions." if analysis.left_out else ""
    if not analysis.analyst_agent_id:
        return (
            "No agent said it. A small local model compared the sentences of the answer with what was said; it finds about three of four that"
            f" nothing supports, and does not look for what speaks against them. Sentences: {count}; not supported by anything said: {bare}.{missing}"
        )
    return (
        f"By the word of {who}, who read the contributions after the answer. Claims: {count}; not supported by anything said: {bare};"
        f" opposed by what was said: {opposed}.{missing}"
    )


def _cells(page: ReportPage, number: int, claim: AnswerClaim) -> tuple[str, ...]:
    return (
        str(number),
        to_line(page.names.put_in(claim.text), _MAX_TEXT),
        _WORDS[claim.grounding],
        f"{claim.score}" if claim.HasField("score") else "not stated",
        _list_places(page, claim.supported_by),
        _list_places(page, claim.opposed_by),
    )


def _list_places(page: ReportPage, grounds: Iterable[Ground]) -> str:
    places = [_describe_place(page, each) for each in grounds]
    more = [f"{len(places) - _MAX_PLACES} more"] if len(places) > _MAX_PLACES else []
    return "; ".join([*places[:_MAX_PLACES], *more]) or "nothing"


def _describe_place(page: ReportPage, ground: Ground) -> str:
    if ground.question:
        return "the question"
    if ground.source:
        return describe_source(page.debate.sources, ground.source)
    if ground.document:
        return ground.document
    made = page.contribution(ground.contribution)
    return ground.contribution if made is None else _describe_contribution(page, made)


def _describe_contribution(page: ReportPage, made: Contribution) -> str:
    of = f" of {page.names.of(made.work.target_agent_id)}" if made.work.target_agent_id else ""
    what = made.work.title or made.work.activity
    return f"{page.names.of(made.work.agent_id)}, {what}{of}, round {made.work.round}"


def _cruxes(analysis: Analysis) -> Iterator[str]:
    yield "### What the decision depends on"
    decision = f"The decision is claim {analysis.verdict}."
    if analysis.cruxes:
        listed = join_words([str(each) for each in analysis.cruxes], "or")
        yield (
            f"{decision} It turns if claim {listed} is reversed."
            " That follows from the scores and from which claims are reasons for others."
        )
    else:
        yield f"{decision} No other single claim would turn it if it were reversed."


def _formal_checks(page: ReportPage) -> Iterator[str]:
    checks = page.debate.analysis.formal_checks
    if checks:
        yield "### What was stated formally"
    for each in checks:
        made = page.contribution(each.statement.contribution)
        where = "The answer" if made is None else _describe_contribution(page, made)
        detail = f": {each.detail}" if each.detail else ""
        statement = to_line(each.statement.text, _MAX_TEXT)
        yield list_item(f"{where}, {_FORMAL_WORDS[each.result]}{detail}: `{statement}`")


def _disagreement(page: ReportPage, found: DisagreementReport) -> Iterator[str]:
    names = page.names
    yield "### Where the agents disagree"
    if found.unknown:
        yield inline(f"It is not known who takes which position in the end: {found.unknown}.")
    for number, each in enumerate(found.positions, start=1):
        decided = ", which was decided for" if number == found.decided_position else ""
        yield list_item(
            f"{names.list_of(each.last_agent_ids)}{decided}: {to_line(names.put_in(each.text), _MAX_TEXT)}"
        )
    if found.disputes:
        yield "Issues that were raised and not taken up:"
        yield "\n".join(list_item(_describe_issue(page, each)) for each in found.disputes)
        if found.more_disputes:
            yield f"and {found.more_disputes} less severe ones."
    if found.open:
        yield "What stayed open:"
        yield "\n".join(list_item(to_line(names.put_in(each), _MAX_TEXT)) for each in found.open)
    if len(found.positions) == 1 and not found.disputes and not found.open:
        yield "They do not: all take the same position, and no issue stayed open."


def _insights(page: ReportPage, found: Sequence[Insight]) -> Iterator[str]:
    names = page.names
    if found:
        yield "### What changed minds"
    for each in found:
        when = f" in round {each.round}" if each.round else ""
        yield list_item(
            f"{names.of(each.agent_id)} left{when} “{to_line(names.put_in(each.from_position), _MAX_TEXT)}” for"
            f" “{to_line(names.put_in(each.to_position), _MAX_TEXT)}”"
            f"{', after it took up:' if each.issues else '; which issue led to it is not known.'}"
        )
        if each.issues:
            yield "\n".join(list_item(_describe_issue(page, issue)) for issue in each.issues)


def _failed_patterns(page: ReportPage, found: Sequence[FailedPattern]) -> Iterator[str]:
    if found:
        yield "### Issues that led to nothing"
    for each in found:
        yield list_item(
            f"By critics with the role {each.role}: of {each.raised} issues {each.rejected} were rejected and"
            f" {each.not_answered} not answered, such as {_describe_issue(page, each.example)}"
        )


def _describe_issue(page: ReportPage, each: DisputedIssue) -> str:
    names = page.names
    severity = f", severity {each.issue.severity}" if each.issue.HasField("severity") else ""
    reason = f" ({to_line(names.put_in(each.answer.reason), _MAX_TEXT)})" if each.answer.reason else ""
    return (
        f"issue {each.number} of {names.of(each.critic_agent_id)} against {names.of(each.target_agent_id)}{severity},"
        f" {STATUS_WORDS[each.answer.status]}{reason}: {to_line(names.put_in(each.issue.text), _MAX_TEXT)}"
    )
