"""The document of a decision, as CommonMark: the result of a moderated debate, for readers who did not follow it.

Every document has every section; an empty one says so. Texts of people and models are in block
quotes and list items, so that the headings are the document's own.
"""

import re
import unicodedata
from collections.abc import Iterator, Sequence
from datetime import datetime
from typing import Final

from parley.orchestrator.api.answer import DEMONSTRATION, stand_in_line
from parley.orchestrator.api.conversion import status_word
from parley.orchestrator.model.spec import format_settings
from parley.orchestrator.model.times import time_of
from parley.runtime.errors import failed_precondition
from parley.runtime.safe_markdown import inline, list_item, quote
from parley.v1 import debate_pb2
from parley.v1.agent_pb2 import Usage
from parley.v1.debate_pb2 import Debate
from parley.v1.moderated_pb2 import (
    CONFIDENCE_HIGH,
    CONFIDENCE_LOW,
    CONFIDENCE_MEDIUM,
    ConsideredPerspective,
    FollowUp,
    ModeratedOutcome,
    ModeratedSettings,
    Tension,
)
from parley.v1.orchestrator_pb2 import GetDecisionResponse

_MAX_SLUG: Final = 60
_LINK: Final = re.compile(r"https?://[^\s<>]+")
_CONFIDENCES: Final = {CONFIDENCE_HIGH: "High", CONFIDENCE_MEDIUM: "Medium", CONFIDENCE_LOW: "Low"}
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


def decision_of(debate: Debate, outcome: ModeratedOutcome) -> GetDecisionResponse:
    """Return the document of a completed debate and its outcome, and a name for its file: lower-case letters, digits, hyphens."""
    decided_at = time_of(debate.end_time if debate.HasField("end_time") else debate.update_time)
    blocks = [
        f"# Decision: {inline(outcome.topic) or inline(debate.id)}",
        _overview(debate, outcome, decided_at),
        "## Question",
        quote(debate.spec.question),
        *_perspectives(outcome),
        "## Points of Agreement",
        _points(outcome.agreements, "The perspectives agreed on nothing that the moderator noted."),
        "## Key Tensions",
        _points([_tension(each) for each in outcome.tensions], "The moderator noted none."),
        *_recommendation(outcome),
        "## Dissenting View",
        _dissents(outcome),
        "## Guidance",
        _points(outcome.guidance, "No person gave any."),
        "## End of the Rounds",
        _end(debate, outcome),
        "## Follow-up",
        _follow_up(outcome),
        "## Usage",
        _usage(debate.calls, debate.usage),
    ]
    file_name = _file_name(debate.id, outcome.topic, decided_at)
    return GetDecisionResponse(markdown="\n\n".join(blocks) + "\n", file_name=file_name)


def _overview(debate: Debate, outcome: ModeratedOutcome, decided_at: datetime) -> str:
    names = ", ".join(inline(each.perspective.name) for each in outcome.perspectives)
    lines = [
        f"**Date:** {decided_at:%Y-%m-%d}",
        f"**Debate ID:** {inline(debate.id)}",
        f"**Rounds:** {outcome.rounds}",
        f"**Perspectives:** {names or 'none'}",
        f"**Approval:** {_approval(debate, outcome)}",
    ]
    if debate.outcome.HasField("stand_in"):
        lines.append(f"**{inline(stand_in_line(debate)).replace(':', ':**', 1)}")
    if debate.demonstration:
        lines.append(f"**Demonstration:** {DEMONSTRATION}")
    return "\n".join(f"- {line}" for line in lines)


def _approval(debate: Debate, outcome: ModeratedOutcome) -> str:
    if outcome.approved:
        return "approved by a person"
    settings = format_settings(debate.spec)
    asked = isinstance(settings, ModeratedSettings) and settings.checkpoints
    return "not approved by the person who was asked" if asked else "no person was asked"


def _perspectives(outcome: ModeratedOutcome) -> Iterator[str]:
    yield "## Perspectives Considered"
    if not outcome.perspectives:
        yield "None joined."
    for each in outcome.perspectives:
        priorities = ", ".join(map(inline, each.perspective.priorities))
        yield f"### {inline(each.perspective.name) or inline(each.agent_id)}"
        trade_offs = inline(each.perspective.trade_offs)
        yield f"- **Priorities:** {priorities or 'none'}\n- **Trade-offs:** {trade_offs or 'none'}"
        yield "**Key arguments:**"
        yield _points(each.key_arguments, "None.")
        yield "**Trade-offs accepted:**"
        yield _points(each.trade_offs_accepted, "None.")
        yield from _absences(each)


def _absences(considered: ConsideredPerspective) -> Iterator[str]:
    rounds = sorted(set(considered.absent_rounds))
    if rounds:
        *first, last = map(str, rounds)
        named = f"rounds {', '.join(first)} and {last}" if first else f"round {last}"
        yield f"It said nothing in {named}, since its calls failed."
    if considered.muted_from_round:
        yield f"It was muted from round {considered.muted_from_round} on."


def _tension(tension: Tension) -> str:
    return f"**Open:** {tension.text}" if tension.open else tension.text


def _recommendation(outcome: ModeratedOutcome) -> Iterator[str]:
    yield "## Recommendation"
    recommended = outcome.recommendation
    yield quote(recommended) if recommended.strip() else "There is none."
    yield f"**Confidence:** {_CONFIDENCES.get(outcome.confidence, 'not said')}"
    yield "**Caveats:**"
    yield _points(outcome.caveats, "None.")


def _dissents(outcome: ModeratedOutcome) -> str:
    names = {each.agent_id: each.perspective.name for each in outcome.perspectives}
    points = [
        f"**{inline(names.get(each.agent_id) or each.agent_id)}:** {each.text}" for each in outcome.dissents
    ]
    return _points(points, "No perspective strongly disagrees.")


def _end(debate: Debate, outcome: ModeratedOutcome) -> str:
    texts = (_ENDS.get(debate.stop_reason, ""), inline(debate.stop_explanation or debate.rounds_ended_by))
    reason = ": ".join(each for each in texts if each)
    return f"- **Rounds held:** {outcome.rounds}\n- **Reason:** {reason or 'not recorded'}"


def _follow_up(outcome: ModeratedOutcome) -> str:
    if not outcome.HasField("follow_up"):
        return "None was offered."
    return _describe_follow_up(outcome.follow_up)


def _describe_follow_up(made: FollowUp) -> str:
    if not made.requested:
        return "An issue was offered, and not wanted."
    if made.failure:
        return f"An issue was wanted, and could not be made: {inline(made.failure)}"
    if not made.url:
        return "An issue was made; the tracker did not say where it is."
    return f"An issue was made: {f'<{made.url}>' if _LINK.fullmatch(made.url) else inline(made.url)}"


def _usage(calls: int, usage: Usage) -> str:
    cost = f"{usage.cost_micros / 1_000_000:.6f} US dollars" if usage.HasField("cost_micros") else "not known"
    lines = [
        f"Model calls: {calls:,}",
        f"Tokens: {usage.input_tokens:,} in, {usage.output_tokens:,} out",
        f"Cost: {cost}",
    ]
    return "\n".join(f"- {line}" for line in lines)


def _points(points: Sequence[str], nothing: str) -> str:
    """Return a list of these texts; if there are none, a sentence that says so."""
    return "\n".join(list_item(each) for each in points if each.strip()) or nothing


def _file_name(debate: str, topic: str, decided_at: datetime) -> str:
    return f"{decided_at:%Y-%m-%d}-{_slug(topic) or _slug(debate)}.md"


def _slug(text: str) -> str:
    """Return a text as lower-case ASCII letters, digits and hyphens; empty if it has no such letter."""
    plain = unicodedata.normalize("NFKD", text.casefold()).encode("ascii", "ignore").decode().lower()
    slug = re.sub(r"[^a-z0-9]+", "-", plain)[:_MAX_SLUG].strip("-")
    return slug if re.search("[a-z]", slug) else ""
