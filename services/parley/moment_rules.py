"""What stands out in a debate, by rules: a lone dissenter who won, a unanimous flip, a reversal of an old decision. Pure functions.

Who agrees with whom is what the debate itself found out and recorded; nothing is asked for it.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final

from parley.v1.effect_pb2 import DECISION_RELATION_REVERSES, RelatedDecision
from parley.v1.memory_pb2 import (
    MOMENT_KIND_LONE_DISSENTER_WON,
    MOMENT_KIND_REVERSAL,
    MOMENT_KIND_UNANIMOUS_FLIP,
    FinalStand,
    Moment,
    MomentKind,
    RecordDebateRequest,
)

_FEWEST_DRAFTS: Final = 3
"""Of a lone dissenter and those whom it dissents from: of two, each is alone."""
_FEWEST_FLIPS: Final = 2
"""One agent that changes its mind is no unanimity."""
_MAX_QUOTED: Final = 160
_MAX_NAME: Final = 64


def find_moments(record: RecordDebateRequest) -> list[Moment]:
    """Return the moments of a debate, always the same ones in the same order."""
    stands = sorted(record.stands, key=lambda each: each.agent_id)
    found = [
        *_find_lone_dissenter(stands),
        *_find_unanimous_flip(stands),
        *_find_reversals(stands, record.debate.related),
    ]
    for each in found:
        each.debate_id = record.debate.debate_id
        each.concluded_at.CopyFrom(record.debate.concluded_at)
    return found


def _find_lone_dissenter(stands: Sequence[FinalStand]) -> Iterator[Moment]:
    """Yield that one draft alone took the position that was decided for, against most of them, if it did.

    Where no other position had most of the drafts, who was alone with one dissented from none.
    """
    drafts = [each for each in stands if each.first_position and each.HasField("first_for_decision")]
    winners = [each for each in drafts if each.first_for_decision]
    if len(drafts) < _FEWEST_DRAFTS or len(winners) != 1:
        return
    leading, count = Counter(each.first_position for each in drafts).most_common(1)[0]
    if 2 * count > len(drafts):
        against = next(each for each in drafts if each.first_position == leading)
        text = (
            f"At first {_name(winners[0])} alone stood for {_quote(winners[0].first_text)}, which was decided for;"
            f" {count} of {len(drafts)} agents stood for {_quote(against.first_text)}."
        )
        yield _create_moment(MOMENT_KIND_LONE_DISSENTER_WON, winners, text)


def _find_unanimous_flip(stands: Sequence[FinalStand]) -> Iterator[Moment]:
    """Yield that all agreed at first, and in the end all for another position, which was decided for, if they did."""
    firsts = {each.first_position for each in stands}
    against = all(each.HasField("first_for_decision") and not each.first_for_decision for each in stands)
    if len(stands) < _FEWEST_FLIPS or len(firsts) != 1 or not against:
        return
    if all(each.for_decision for each in stands):
        text = (
            f"At first all {len(stands)} agents stood for {_quote(stands[0].first_text)},"
            f" and in the end all for {_quote(stands[0].text)}."
        )
        yield _create_moment(MOMENT_KIND_UNANIMOUS_FLIP, stands, text)


def _find_reversals(stands: Sequence[FinalStand], related: Sequence[RelatedDecision]) -> Iterator[Moment]:
    standing = [each for each in stands if each.for_decision]
    for each in related:
        if each.relation == DECISION_RELATION_REVERSES:
            day = f"{each.decided_at.ToDatetime():%Y-%m-%d}"
            why = f": {_quote(each.reason)}" if each.reason else ""
            text = f"The decision of {day}, {_quote(each.decision)}, was reversed{why}."
            moment = _create_moment(MOMENT_KIND_REVERSAL, standing, text)
            moment.earlier_debate_id = each.debate_id
            yield moment


def _create_moment(kind: MomentKind.ValueType, stands: Sequence[FinalStand], text: str) -> Moment:
    return Moment(kind=kind, agent_ids=[each.agent_id for each in stands], text=text)


def _name(stand: FinalStand) -> str:
    return _shorten(stand.agent_name.strip() or stand.agent_id, _MAX_NAME)


def _quote(text: str) -> str:
    return f"“{_shorten(text, _MAX_QUOTED).rstrip('.')}”"


def _shorten(text: str, most: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 1].rstrip()}…"
