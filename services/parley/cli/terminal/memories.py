"""What is remembered of past debates, as text for a terminal."""

import shutil
from collections.abc import Iterator, Sequence
from typing import Final

from google.protobuf.timestamp_pb2 import Timestamp

from parley.cli.terminal.markdown import plain_text
from parley.cli.terminal.words import enum_text, local_time_text, relation_text, to_line
from parley.runtime.printable import printable, printable_line
from parley.runtime.safe_markdown import inline, list_item, to_safe_markdown
from parley.runtime.work_words import probability_text
from parley.v1.critique_pb2 import IssueStatus
from parley.v1.effect_pb2 import DECISION_RELATION_OTHER_MATTER, DecisionConfidence, RelatedDecision
from parley.v1.memory_pb2 import (
    FLIP_OUTCOME_FLIP,
    FLIP_OUTCOME_UNKNOWN,
    CritiquePattern,
    FinalStand,
    FlipSettlement,
    GetRecordResponse,
    LedgerPosition,
    Moment,
    MomentKind,
    PastDebate,
    RecordedIssue,
    StandChange,
)
from parley.v1.panel_pb2 import Objection
from parley.v1.voting_pb2 import (
    VOTE_STRENGTH_CONTESTED,
    VOTE_STRENGTH_MODERATE,
    VOTE_STRENGTH_SPLIT,
    VOTE_STRENGTH_STRONG,
    VOTE_STRENGTH_UNANIMOUS,
    VOTE_STRENGTH_UNSPECIFIED,
    VOTE_STRENGTH_WEAK,
    VoteStrength,
)

_MAX_WIDTH: Final = 100
"""Longer lines are hard to read, however wide the terminal is."""
_INDENT: Final = "   "
_MAX_QUESTION_LINES: Final = 2
_MAX_CONCLUSION_LINES: Final = 3
_READ: Final = 4_000
"""Characters of a conclusion that are looked at for its first lines."""
_MAX_RELATED: Final = 2
_MAX_NAME: Final = 32
_HEAD: Final = 12
"""Columns of the names before what `memory show` says in its head."""
_STRENGTHS: Final = {
    VOTE_STRENGTH_UNANIMOUS: "unanimous",
    VOTE_STRENGTH_STRONG: "strong agreement",
    VOTE_STRENGTH_MODERATE: "moderate agreement",
    VOTE_STRENGTH_WEAK: "weak agreement",
    VOTE_STRENGTH_SPLIT: "split",
    VOTE_STRENGTH_CONTESTED: "contested",
}


def text_width() -> int:
    """Return the columns that lines may take: those of the terminal, at most 100; 80 without one."""
    return min(shutil.get_terminal_size().columns, _MAX_WIDTH)


def found_lines(number: int, debate: PastDebate, width: int) -> Iterator[str]:
    """Return the lines of a debate that a search found, shortened, and a blank one."""
    mark = f"{number}. "
    inner = width - len(mark)
    question = _wrap(debate.question, inner, _MAX_QUESTION_LINES)
    facts = (
        _date(debate.concluded_at),
        strength_text(debate.strength),
        confidence_text(debate.confidence),
        f"{debate.relevance.similarity_percent:.0f} % alike",
    )
    on_matter = [each for each in debate.related if each.relation != DECISION_RELATION_OTHER_MATTER]
    lines = [
        *question,
        ", ".join(each for each in facts if each),
        *_wrap(plain_text(debate.conclusion[:_READ]), inner, _MAX_CONCLUSION_LINES),
        *_dissent_lines(debate.dissents, inner),
        *(_related_line(each, inner) for each in on_matter[:_MAX_RELATED]),
        debate.debate_id,
    ]
    return _mark_lines(mark, lines)


def _mark_lines(mark: str, lines: Sequence[str]) -> Iterator[str]:
    """Yield lines with a mark before the first, the others below its text, and a blank one."""
    yield f"{mark}{lines[0]}"
    yield from (f"{' ' * len(mark)}{line}" for line in lines[1:])
    yield ""


def _dissent_lines(dissents: Sequence[Objection], width: int) -> Iterator[str]:
    if dissents:
        first, others = dissents[0], len(dissents) - 1
        more = f" (and {others} more)" if others else ""
        agent = to_line(first.agent_id, 32)
        yield _wrap(f"Against it: {agent}: {first.text}", width - len(more), 1)[0] + more


def _related_line(related: RelatedDecision, width: int) -> str:
    return _wrap(f"{_relation_text(related)} ({related.debate_id})", width, 1)[0]


def _relation_text(related: RelatedDecision) -> str:
    """Return `Reverses the decision of 2026-03-01`."""
    relation = relation_text(related) if related.relation else "Is about"
    return f"{relation} the decision of {_date(related.decided_at)}"


def _date(time: Timestamp) -> str:
    """Return a date on this machine's clock, such as `2026-03-01`."""
    return local_time_text(time)[:10]


def pattern_lines(number: int, pattern: CritiquePattern, width: int) -> Iterator[str]:
    """Return the lines of a kind of issue, with two more examples at most, shortened, and a blank one."""
    mark = f"{number}. "
    inner = width - len(mark)
    first, *others = dict.fromkeys(pattern.examples) or ["(no example)"]
    example = _wrap(first, inner, _MAX_QUESTION_LINES)
    alike = f"{pattern.similarity_percent:.0f} % alike" if pattern.HasField("similarity_percent") else ""
    severity = f"severity {pattern.severity:.1f}" if pattern.HasField("severity") else ""
    facts = (
        f"raised {_times(pattern.raised)} in {pattern.debates} debate{'' if pattern.debates == 1 else 's'}",
        f"taken up {_times(pattern.taken_up)}" if pattern.taken_up else "never taken up",
        severity,
        alike,
    )
    by = ", ".join(f"{each.agent_id} ({each.raised})" for each in pattern.critics)
    lines = [
        *example,
        ", ".join(each for each in facts if each),
        *(_wrap(f"Also: {each}", inner, 1)[0] for each in others),
        *_wrap(f"By {by}; {pattern.domain}, {_date(pattern.latest_at)}", inner, 2),
    ]
    return _mark_lines(mark, lines)


def position_lines(number: int, position: LedgerPosition, width: int) -> Iterator[str]:
    """Return the lines of where an agent stood, with what it changed, shortened, and a blank one."""
    mark = f"{number}. "
    inner = width - len(mark)
    side = _side_text(is_for=position.for_decision) if position.HasField("for_decision") else ""
    agent = to_line(position.agent_name or position.agent_id, _MAX_NAME)
    stand = _wrap(f"{agent}{side}: {position.stand}", inner, _MAX_QUESTION_LINES)
    lines = [
        *stand,
        _wrap(f"{_date(position.concluded_at)}, {position.domain}: {position.question}", inner, 1)[0],
        *(line for each in position.changes for line in _change_lines(each, inner)),
        position.debate_id,
    ]
    return _mark_lines(mark, lines)


def _change_lines(change: StandChange, width: int) -> Iterator[str]:
    """Yield what is known of a change; stands that are not opposed are not worth a line."""
    earlier = f"{_date(change.earlier_concluded_at)} ({change.earlier_debate_id})"
    if change.outcome == FLIP_OUTCOME_UNKNOWN:
        yield from _wrap(f"Perhaps a flip, from {earlier}: {change.earlier_stand}", width, 2)
    elif change.outcome == FLIP_OUTCOME_FLIP:
        yield from _wrap(f"Flip from {earlier}: {change.earlier_stand}", width, 2)
        yield (
            _settlement_line(change.settlement)
            if change.HasField("settlement")
            else "Open: no later decision and no feedback has settled it"
        )


def _settlement_line(settled: FlipSettlement) -> str:
    side = "later" if settled.took_later_side else "earlier"
    approved = ", and found good" if settled.approved else ""
    return f"Settled on {_date(settled.concluded_at)} by {settled.debate_id}, for the {side} side{approved}"


def moment_lines(moment: Moment, width: int) -> Iterator[str]:
    """Yield the lines of a moment: its day and kind, what happened, its debate, and a blank one."""
    kind = enum_text(MomentKind.DESCRIPTOR, moment.kind).replace("_", " ")
    yield f"{_date(moment.concluded_at)}  {kind}"
    reversed_one = f", reverses {moment.earlier_debate_id}" if moment.earlier_debate_id else ""
    below = [*_wrap(moment.text, width - len(_INDENT)), printable_line(f"{moment.debate_id}{reversed_one}")]
    yield from (f"{_INDENT}{line}" for line in below)
    yield ""


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def memory_head_lines(debate: PastDebate, width: int) -> Iterator[str]:
    """Yield what is known of a remembered debate besides its texts; its question is whole."""
    facts = (
        ("Debate", debate.debate_id),
        ("Question", debate.question),
        ("Decided", local_time_text(debate.concluded_at)),
        ("Domain", debate.domain),
        ("Agreement", strength_text(debate.strength)),
        ("Confidence", confidence_text(debate.confidence) or debate.confidence.unknown),
    )
    for name, text in facts:
        if text:
            first, *rest = _wrap(text, width - _HEAD)
            yield f"{name:<{_HEAD}}{first}"
            yield from (f"{' ' * _HEAD}{line}" for line in rest)


def memory_page(found: GetRecordResponse) -> str:
    """Return the conclusion of a remembered debate, and what else it left, as CommonMark; its texts cannot pose as ours."""
    sections = (
        ("Earlier decisions", [_related_item(each) for each in found.debate.related]),
        ("Against the decision", [_objection_item(each) for each in found.debate.dissents]),
        ("What it rests on", [list_item(f"{each.text} ({each.source})") for each in found.debate.evidence]),
        ("Where agents stood", [_stand_item(each) for each in found.stands]),
        ("Issues", [_issue_item(each) for each in found.issues]),
    )
    parts = [to_safe_markdown(printable(found.debate.conclusion.strip()))]
    parts += ["\n".join([f"## {title}", "", *items]) for title, items in sections if items]
    return "\n\n".join(parts)


def _related_item(related: RelatedDecision) -> str:
    why = f" Why: {printable_line(related.reason)}" if related.reason else ""
    decision = printable_line(related.decision)
    return list_item(f"{_relation_text(related)} ({inline(related.debate_id)}): {decision}{why}")


def _objection_item(objection: Objection) -> str:
    return list_item(f"{inline(objection.agent_id)}: {objection.text}")


def _stand_item(stand: FinalStand) -> str:
    side = _side_text(is_for=stand.for_decision) if stand.HasField("for_decision") else ""
    first = ""
    if stand.first_text and stand.first_text != stand.text:
        first_side = (
            _side_text(is_for=stand.first_for_decision) if stand.HasField("first_for_decision") else ""
        )
        first = f" At first{first_side}: {stand.first_text}"
    return list_item(f"{inline(stand.agent_name or stand.agent_id)}{side}: {stand.text}{first}")


def _side_text(*, is_for: bool) -> str:
    return " (for the decision)" if is_for else " (against it)"


def _issue_item(recorded: RecordedIssue) -> str:
    issue = recorded.issue
    severity = f", severity {issue.severity}" if issue.HasField("severity") else ""
    status = enum_text(IssueStatus.DESCRIPTOR, recorded.status).replace("_", " ") if recorded.status else ""
    outcome = f"{status}: {printable_line(recorded.reason)}" if recorded.reason else status
    ending = f" ({outcome})" if status else ""
    who = f"{inline(recorded.critic_agent_id)} to {inline(recorded.target_agent_id)}"
    return list_item(f"{who}{severity}: {issue.text}{ending}")


def strength_text(strength: VoteStrength.ValueType) -> str:
    """Return `strong agreement`; empty if it is not known."""
    if strength == VOTE_STRENGTH_UNSPECIFIED:
        return ""
    return _STRENGTHS.get(strength) or enum_text(VoteStrength.DESCRIPTOR, strength)


def confidence_text(confidence: DecisionConfidence) -> str:
    """Return `84 % sure (2 of 3 votes)`, or the part of it that is known."""
    votes = f"{confidence.votes} of {confidence.votes_cast} votes" if confidence.votes_cast else ""
    if not confidence.HasField("percent"):
        return votes
    sure = f"{probability_text(confidence.percent)} sure"
    return f"{sure} ({votes})" if votes else sure


def _wrap(text: str, width: int, most: int | None = None) -> Sequence[str]:
    """Return the text on lines of a width in columns, at most so many: then `…` stands at the end."""
    from rich.console import Console  # heavy: help needs none of it
    from rich.text import Text

    flat = printable_line(text)
    short = flat if most is None else flat[: width * (most + 1)]
    wrapped = Text(short, end="").wrap(Console(width=width), width)
    lines = [line.plain.rstrip() for line in wrapped] or [""]
    if most is None or (len(lines) <= most and short == flat):
        return lines
    return [*lines[: most - 1], _with_ellipsis(lines[most - 1], width)]


def _with_ellipsis(line: str, width: int) -> str:
    from rich.cells import cell_len, set_cell_size

    room = width - 2
    if cell_len(line) > room:
        cut = set_cell_size(line, room)
        line = cut.rpartition(" ")[0] or cut
    return f"{line.rstrip()} …"
