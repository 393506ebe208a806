"""The document of a decision, as CommonMark: the result of a moderated debate, for readers who did not follow it.

Every document has every section; an empty one says so. Texts of people and models are in block
quotes and list items, so that the headings are the document's own.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from parley.orchestrator.api.answer import (
    DEMONSTRATION,
    calls_before_answer,
    stand_in_line,
    usage_before_answer,
)
from parley.orchestrator.api.conversion import status_word
from parley.orchestrator.api.report import effect_section
from parley.orchestrator.api.report_about import cost_text
from parley.orchestrator.api.report_page import ReportPage
from parley.orchestrator.api.report_people import clarification_blocks
from parley.orchestrator.api.report_sources import source_blocks
from parley.orchestrator.api.verdict import verdict_lines
from parley.orchestrator.engine.format import Format, Verdict
from parley.orchestrator.model.effect_text import describe_related
from parley.orchestrator.model.names import names_of
from parley.orchestrator.model.short_text import to_title
from parley.orchestrator.model.tension_text import describe_tension
from parley.orchestrator.model.times import time_of
from parley.runtime.agent_names import Names
from parley.runtime.errors import failed_precondition
from parley.runtime.safe_markdown import inline, list_item, moment, quote
from parley.v1 import debate_pb2
from parley.v1.debate_pb2 import ApprovalAnswer, Debate
from parley.v1.moderated_pb2 import ConsideredPerspective, ModeratedOutcome
from parley.v1.orchestrator_pb2 import GetDecisionResponse

_MAX_SLUG: Final = 60
_LINK: Final = re.compile(r"https?://[^\s<>]+")
_FOLLOW_UP: Final = "follow-up"
"""What the key of a checkpoint begins with that asks for something else than the decision's approval."""
_ENDS: Final = {
    debate_pb2.STOP_REASON_CONVERGED: "agreement",
    debate_pb2.STOP_REASON_STAGNATION: "stagnation",
    debate_pb2.STOP_REASON_CLEAR_WINNER: "a clear winner",
}
"""The names of reasons, which the recorded texts may lack."""


def require_moderated_outcome(debate: Debate) -> ModeratedOutcome:
    """Return the outcome of a moderated debate. Raises ParleyError for any other, and before it is completed."""
    if debate.outcome.HasField("moderated"):
        return debate.outcome.moderated
    name = debate.spec.format.partition("@")[0]
    if name != "moderated":
        why = (
            f"is of the format {name}, and only a moderated one comes to a decision; read its report instead"
        )
    elif debate.status == debate_pb2.DEBATE_STATUS_CANCELLED:
        why = "was cancelled, and came to no decision; read its report instead"
    else:
        why = f"is {status_word(debate)}, and has come to no decision yet; ask again when it is completed"
    raise failed_precondition("NO_DECISION", f"debate {debate.id} {why}")


def decision_of(
    debate: Debate, outcome: ModeratedOutcome, debate_format: Format | None
) -> GetDecisionResponse:
    """Return the document of a completed debate and its outcome, and a name for its file: lower-case letters, digits, hyphens."""
    decided_at = time_of(debate.end_time if debate.HasField("end_time") else debate.update_time)
    page = ReportPage(debate, None)
    names = page.names
    blocks = [
        f"# Decision: {inline(to_title(debate.spec.question))}",
        _overview(debate, outcome, debate_format, decided_at),
        *_recommendation(names, outcome),
        "## Dissenting View",
        _dissents(debate, names, outcome, debate_format),
        *_question(debate, outcome),
        "## Points of Agreement",
        _points(names, outcome.agreements, "The perspectives agreed on nothing that the moderator noted."),
        "## Key Tensions",
        _points(names, [describe_tension(each) for each in outcome.tensions], "The moderator noted none."),
        *_perspectives(names, outcome),
        *effect_section(page),
        "## Guidance",
        _points(names, outcome.guidance, "No person gave any."),
        "## Approval",
        _approvals(debate),
        "## End of the Rounds",
        _end(debate, outcome),
        "## Follow-up",
        _follow_up(outcome),
        "## Sources",
        *(list(source_blocks(page)) or ["None were given."]),
        "## Usage",
        _usage(debate),
    ]
    file_name = _file_name(debate.id, outcome.topic, decided_at)
    return GetDecisionResponse(markdown="\n\n".join(blocks) + "\n", file_name=file_name)


def _overview(
    debate: Debate, outcome: ModeratedOutcome, debate_format: Format | None, decided_at: datetime
) -> str:
    perspectives = ", ".join(inline(each.perspective.name) for each in outcome.perspectives)
    facts = [
        f"**Date:** {decided_at:%Y-%m-%d}",
        f"**Debate ID:** {inline(debate.id)}",
        f"**Rounds:** {outcome.rounds}",
        f"**Perspectives:** {perspectives or 'none'}",
    ]
    if line := stand_in_line(debate):
        facts.append(f"**{inline(line).replace(':', ':**', 1)}")
    names = names_of(debate)
    facts.extend(
        f"**Earlier decision:** {inline(names.put_in(describe_related(each)))}"
        for each in debate.outcome.related
    )
    if debate.demonstration:
        facts.append(f"**Demonstration:** {DEMONSTRATION}")
    return "\n".join(
        [*map(list_item, verdict_lines(debate, debate_format)), *(f"- {line}" for line in facts)]
    )


def _question(debate: Debate, outcome: ModeratedOutcome) -> Iterator[str]:
    """Yield the question with what was learned of it before the rounds."""
    yield "## Question"
    yield quote(debate.spec.question)
    page = ReportPage(debate, None)
    for each in debate.clarifications:
        yield from clarification_blocks(page, each, "The moderator")
    yield "**Constraints:**"
    yield _points(page.names, outcome.constraints, "The moderator found none.")
    yield "**Assumptions:**"
    yield _points(page.names, outcome.assumptions, "None.")


def _approvals(debate: Debate) -> str:
    """Return who was asked for approval, when, and what they said."""
    asked = [each for each in debate.approvals if not each.checkpoint.startswith(_FOLLOW_UP)]
    if not asked:
        return "No person was asked."
    return "\n".join(list_item(_describe_approval(each)) for each in asked)


def _describe_approval(answer: ApprovalAnswer) -> str:
    act = "Approved" if answer.approved else "Not approved"
    who = f" by {inline(answer.answered_by)}" if answer.answered_by else ""
    said = f": {answer.text}" if answer.text else "."
    return f"**{act}**{who} on {moment(time_of(answer.answered_at))}{said}"


def _perspectives(names: Names, outcome: ModeratedOutcome) -> Iterator[str]:
    yield "## Perspectives Considered"
    if not outcome.perspectives:
        yield "None joined."
    for each in outcome.perspectives:
        priorities = ", ".join(map(inline, each.perspective.priorities))
        yield f"### {inline(each.perspective.name) or inline(each.agent_id)}"
        trade_offs = inline(each.perspective.trade_offs)
        yield f"- **Priorities:** {priorities or 'none'}\n- **Trade-offs:** {trade_offs or 'none'}"
        yield "**Key arguments:**"
        yield _points(names, each.key_arguments, "None.")
        yield "**Trade-offs accepted:**"
        yield _points(names, each.trade_offs_accepted, "None.")
        yield from _absences(each)


def _absences(considered: ConsideredPerspective) -> Iterator[str]:
    rounds = sorted(set(considered.absent_rounds))
    if rounds:
        *first, last = map(str, rounds)
        named = f"rounds {', '.join(first)} and {last}" if first else f"round {last}"
        yield f"It said nothing in {named}, since its calls failed."
    if considered.muted_from_round:
        yield f"It was muted from round {considered.muted_from_round} on."


def _recommendation(names: Names, outcome: ModeratedOutcome) -> Iterator[str]:
    yield "## Recommendation"
    recommended = names.put_in(outcome.recommendation)
    yield quote(recommended) if recommended.strip() else "There is none."
    yield "**Caveats:**"
    yield _points(names, outcome.caveats, "None.")


def _dissents(debate: Debate, names: Names, outcome: ModeratedOutcome, debate_format: Format | None) -> str:
    called = {each.agent_id: each.perspective.name for each in outcome.perspectives}
    points = [
        f"**{inline(called.get(each.agent_id) or each.agent_id)}:** {each.text}" for each in outcome.dissents
    ]
    verdict = debate_format.verdict(debate) if debate_format and debate_format.verdict else Verdict()
    return _points(names, points, verdict.no_dissent)


def _end(debate: Debate, outcome: ModeratedOutcome) -> str:
    why = names_of(debate).put_in(debate.stop_explanation or debate.rounds_ended_by)
    texts = (_ENDS.get(debate.stop_reason, ""), inline(why))
    reason = ": ".join(each for each in texts if each)
    return f"- **Rounds held:** {outcome.rounds}\n- **Reason:** {reason or 'not recorded'}"


def _follow_up(outcome: ModeratedOutcome) -> str:
    made = outcome.follow_up
    if not outcome.HasField("follow_up"):
        return "None was offered."
    if not made.requested:
        return "An issue was offered, and not wanted."
    if made.failure:
        return f"An issue was wanted, and could not be made: {inline(made.failure)}"
    if not made.url:
        return "An issue was made; the tracker did not say where it is."
    return f"An issue was made: {f'<{made.url}>' if _LINK.fullmatch(made.url) else inline(made.url)}"


def _usage(debate: Debate) -> str:
    """Return what the decision took. What follows it is left out: the document is the same before and after."""
    usage = usage_before_answer(debate)
    lines = [
        f"Model calls: {calls_before_answer(debate):,}",
        f"Tokens: {usage.input_tokens:,} in, {usage.output_tokens:,} out",
        f"Cost: {cost_text(usage)}",
    ]
    return "\n".join(f"- {line}" for line in lines)


def _points(names: Names, points: Sequence[str], nothing: str) -> str:
    """Return a list of these texts; if there are none, a sentence that says so."""
    return "\n".join(list_item(names.put_in(each)) for each in points if each.strip()) or nothing


def _file_name(debate: str, topic: str, decided_at: datetime) -> str:
    return f"{decided_at:%Y-%m-%d}-{_slug(topic) or _slug(debate)}.md"


def _slug(text: str) -> str:
    """Return a text as lower-case ASCII letters, digits and hyphens; empty if it has no such letter."""
    plain = unicodedata.normalize("NFKD", text.casefold()).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", plain)[:_MAX_SLUG].strip("-")
    return slug if re.search("[a-z]", slug) else ""
