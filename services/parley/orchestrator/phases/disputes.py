"""The rule `undisputed`: rounds end after the first in which the drafts take one position and no severe issue stays open.

What is not known counts as disputed.
"""

from collections.abc import Iterator, Sequence

from parley.orchestrator.engine.debate import Debate
from parley.orchestrator.model.contributions import Contribution
from parley.orchestrator.model.critiques import SEVERE
from parley.orchestrator.model.open_issues import count_open_issues, is_structured
from parley.v1.debate_pb2 import STOP_REASON_UNDISPUTED, DraftGroups
from parley.v1.event_pb2 import RoundAssessed, RoundsEnded


def find_end_undisputed(
    debate: Debate,
    number: int,
    drafts: Sequence[Contribution],
    groups: DraftGroups | None,
    made: Sequence[Contribution],
) -> RoundsEnded | None:
    """Record what is disputed after a round, and return why the rounds end; None if something is.

    `drafts` are those of the round, `groups` how they group by position, `made` all contributions of the round.
    """
    disputes = list(list_disputes(drafts, groups, made))
    agreed = "the drafts take one position" if len(drafts) > 1 else "there is one draft"
    nothing = f"nothing is disputed, since {agreed} and no issue of severity {SEVERE} or more is open"
    finding = f"still disputed: {'; '.join(disputes)}" if disputes else nothing
    found = RoundAssessed(round=number, ends_rounds=not disputes, finding=finding)
    debate.record_event(f"round/{number}/disputes/finding", found)
    return None if disputes else RoundsEnded(reason=STOP_REASON_UNDISPUTED, explanation=finding)


def list_disputes(
    drafts: Sequence[Contribution], groups: DraftGroups | None, made: Sequence[Contribution]
) -> Iterator[str]:
    """Yield what is disputed, or cannot be told, after a round with these drafts and contributions."""
    critiques = [each for each in made if each.target]
    if len(drafts) > 1:
        if groups is None or not groups.certain:
            yield "whether the drafts take one position cannot be told"
        elif len(groups.groups) > 1:
            yield f"the drafts take {len(groups.groups)} positions"
        missing = len({each.agent for each in drafts} - {each.target for each in critiques})
        if missing:
            yield f"{_count(missing, 'draft')} criticized by no agent"
    unread = sum(not is_structured(each) for each in critiques)
    if unread:
        yield f"{_count(unread, 'critique')} in prose, without single issues"
    severe = count_open_issues(made, SEVERE)
    if severe:
        yield f"{_count(severe, 'issue')} open with a severity of {SEVERE} or more"


def _count(number: int, what: str) -> str:
    return f"1 {what} is" if number == 1 else f"{number} {what}s are"
