"""What a debate decided, how sure that is, and who disagrees: the lines that stand before everything else."""

from collections.abc import Iterator, Sequence
from typing import Final

from parley.orchestrator.engine.format import Format, Verdict
from parley.orchestrator.model.answer_text import MAX_CONFIDENCE_WITH_UNMET_REQUIREMENT
from parley.orchestrator.model.effect_text import describe_comparison, describe_confidence
from parley.orchestrator.model.issue_table import IssueTable, TrackedIssue
from parley.orchestrator.model.names import names_of
from parley.orchestrator.model.short_text import to_headline, to_line
from parley.runtime.agent_names import Names, join_words
from parley.v1.debate_pb2 import AnswerDetails, Debate

_MAX_REASON: Final = 400
_MAX_DISSENTS: Final = 5
_MAX_ISSUE: Final = 200


def verdict_lines(
    debate: Debate, debate_format: Format | None, issues: IssueTable | None = None
) -> list[str]:
    """Return what a completed debate decided, its confidence and its dissent, an item each (CommonMark).

    There are none if its format is not known here, or decides nothing.
    """
    if debate_format is None or debate_format.verdict is None:
        return []
    verdict = debate_format.verdict(debate)
    names = names_of(debate)
    headline = names.put_in(to_headline(verdict.answer or debate.outcome.description))
    made = "" if debate.outcome.HasField("stand_in") else verdict.decision
    decision = [headline, made, describe_comparison(debate.outcome.effect)]
    return [
        f"**Decision:** {_to_sentences(decision)}",
        f"**Confidence:** {_describe_confidence(debate, verdict)}",
        *(f"**Dissent:** {each}" for each in _describe_dissent(debate, verdict, names, issues)),
    ]


def tells_all_dissent(debate: Debate, debate_format: Format | None) -> bool:
    """Return whether `verdict_lines` have all that agents hold against the answer, each whole."""
    if debate_format is None or debate_format.verdict is None:
        return False
    stated = _list_dissent(debate, debate_format.verdict(debate), names_of(debate))
    return len(stated) <= _MAX_DISSENTS and all(len(" ".join(each.split())) <= _MAX_REASON for each in stated)


def _to_sentences(texts: Sequence[str]) -> str:
    """Return texts in a line, each with the end of a sentence."""
    lines = [" ".join(each.split()) for each in texts if each.strip()]
    return " ".join(each if each.endswith((".", "!", "?", "…")) else f"{each}." for each in lines)


def _describe_confidence(debate: Debate, verdict: Verdict) -> str:
    effect, details = debate.outcome.effect, debate.outcome.details
    said = verdict.confidence
    if not said and details.HasField("confidence"):
        said = f"By the judge's own word {details.confidence} of 100{_describe_cap(details)}."
    return _to_sentences([describe_confidence(effect.confidence, verdict.votes), said]) or "Not stated."


def _describe_cap(details: AnswerDetails) -> str:
    """Return that a judge may have been surer than counts while a must is not met; empty if it was not."""
    most = MAX_CONFIDENCE_WITH_UNMET_REQUIREMENT
    musts = [each for each in details.unfulfilled_requirements if each.hard]
    if not musts or details.confidence < most:
        return ""
    named = [f"R{each.number}" for each in musts if each.number]
    return f", or more: at most {most} counts while a must is not met{f' ({join_words(named)})' if named else ''}"


def _describe_dissent(
    debate: Debate, verdict: Verdict, names: Names, table: IssueTable | None
) -> Iterator[str]:
    stated = _list_dissent(debate, verdict, names)
    yield from (_to_sentences([to_line(each, _MAX_REASON)]) for each in stated[:_MAX_DISSENTS])
    if more := max(len(stated) - _MAX_DISSENTS, 0):
        yield f"{more} more {'is' if more == 1 else 'are'} below."
    table = table or IssueTable(debate.contributions)
    issues = _describe_issues(list(table.list_open_serious()), names)
    if not stated:
        yield _to_sentences([verdict.no_dissent, issues])
    elif issues:
        yield issues


def _list_dissent(debate: Debate, verdict: Verdict, names: Names) -> list[str]:
    return [*verdict.dissent, *_list_other_positions(debate, verdict, names)]


def _list_other_positions(debate: Debate, verdict: Verdict, names: Names) -> Iterator[str]:
    """Yield who else takes another position in the end, where that is dissent."""
    effect = debate.outcome.effect
    if not verdict.by_positions or not effect.decided_position:
        return
    for number, each in enumerate(effect.positions, start=1):
        others = [agent for agent in each.last_agent_ids if agent not in verdict.dissenters]
        if number != effect.decided_position and others:
            verb = "prefers" if len(others) == 1 else "prefer"
            yield f"{names.list_of(others)} still {verb} “{each.text.rstrip('.')}”."


def _describe_issues(issues: Sequence[TrackedIssue], names: Names) -> str:
    """Return the most severe of the serious issues that were not taken up, and how many there are; empty if there is none."""
    if not issues:
        return ""
    worst, more = issues[0], len(issues) - 1
    whose = (
        f"{names.of(worst.critic)} on the work of {names.of(worst.target)}, severity {worst.severity} of 10"
    )
    text = names.put_in(to_line(worst.issue.text, _MAX_ISSUE))
    reason = names.put_in(to_line(worst.answer.reason, _MAX_ISSUE))
    answer = f"{names.of(worst.target)} answered: {reason}" if reason else ""
    others = f"{more} more {'is' if more == 1 else 'are'} open too." if more else ""
    return f"A serious issue was not taken up ({whose}): {_to_sentences([text, answer, others])}"
