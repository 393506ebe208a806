"""Where the agents of a debate disagree, what changed minds, and which issues lead to nothing: from what is recorded. Pure functions."""

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import Final

from parley.orchestrator.model.issue_table import IssueTable, TrackedIssue
from parley.orchestrator.model.names import names_of
from parley.orchestrator.model.spec import participants_of
from parley.v1.analysis_pb2 import DisagreementReport, DisputedIssue, FailedPattern, Insight
from parley.v1.critique_pb2 import ISSUE_STATUS_NOT_ANSWERED, ISSUE_STATUS_REJECTED
from parley.v1.debate_pb2 import Debate, Outcome
from parley.v1.effect_pb2 import ChangedStand
from parley.v1.panel_pb2 import Objection

_MAX_DISPUTES: Final = 20
_FEWEST_ISSUES: Final = 2
"""Of a pattern: one issue shows nothing."""
_NOT_KNOWN: Final = "it was not found out who takes which position"


def report_disagreement(debate: Debate, issues: IssueTable) -> DisagreementReport:
    """Return where the agents stood in the end, which issues divide them, and what stayed open."""
    effect = debate.outcome.effect
    in_the_end = [
        (number, each) for number, each in enumerate(effect.positions, start=1) if each.last_agent_ids
    ]
    in_the_end.sort(key=lambda each: -len(each[1].last_agent_ids))
    numbers = [number for number, _ in in_the_end]
    decided = effect.decided_position
    disputes = sorted((each for each in issues.issues if each.is_open), key=_by_severity)
    return DisagreementReport(
        positions=[each for _, each in in_the_end],
        decided_position=numbers.index(decided) + 1 if decided in numbers else 0,
        unknown="" if in_the_end else effect.last_vote_unknown or _NOT_KNOWN,
        disputes=map(_to_message, disputes[:_MAX_DISPUTES]),
        more_disputes=max(len(disputes) - _MAX_DISPUTES, 0),
        open=dict.fromkeys(_list_open(debate)),
    )


def _list_open(debate: Debate) -> Iterator[str]:
    outcome, names = debate.outcome, names_of(debate)
    yield from outcome.details.open_questions
    yield from (each.text for each in outcome.moderated.tensions if each.open)
    yield from [outcome.arena.missing] if outcome.arena.missing else []
    yield from (f"{names.of(each.agent_id)}: {names.put_in(each.text)}" for each in list_objections(outcome))


def list_objections(outcome: Outcome) -> list[Objection]:
    """Return what agents hold against the answer, of a debate of any format."""
    return [*outcome.panel.objections, *outcome.arena.dissent, *outcome.moderated.dissents]


def list_insights(debate: Debate, issues: IssueTable) -> list[Insight]:
    """Return the changes of mind, each with the issues that the agent took up in the same round."""
    positions = debate.outcome.effect.positions
    return [
        Insight(
            agent_id=change.agent_id,
            round=change.round,
            from_position=positions[change.from_position - 1].text,
            to_position=positions[change.to_position - 1].text,
            issues=map(_to_message, _issues_before(change, issues)),
        )
        for change in debate.outcome.effect.changes
    ]


def _issues_before(change: ChangedStand, issues: IssueTable) -> Iterator[TrackedIssue]:
    for each in change.issues:
        found = issues.find(change.round, each.critic_agent_id, change.agent_id, each.number)
        if found is not None:
            yield found


def list_failed_patterns(debate: Debate, issues: IssueTable) -> list[FailedPattern]:
    """Return the kinds of issues, by the roles of their critics, of which at least half was rejected or not answered."""
    roles = {each.id: each.role for each in participants_of(debate)}
    raised: defaultdict[str, list[TrackedIssue]] = defaultdict(list)
    for each in issues.issues:
        raised[roles.get(each.critic, "")].append(each)
    found = [_find_pattern(role, group) for role, group in raised.items() if role]
    return sorted(filter(None, found), key=lambda each: (-each.raised, each.role))


def _find_pattern(role: str, raised: Sequence[TrackedIssue]) -> FailedPattern | None:
    rejected = [each for each in raised if each.answer.status == ISSUE_STATUS_REJECTED]
    ignored = [each for each in raised if each.answer.status == ISSUE_STATUS_NOT_ANSWERED]
    failed = sorted([*rejected, *ignored], key=_by_severity)
    if len(raised) < _FEWEST_ISSUES or 2 * len(failed) < len(raised):
        return None
    return FailedPattern(
        role=role,
        raised=len(raised),
        rejected=len(rejected),
        not_answered=len(ignored),
        example=_to_message(failed[0]),
    )


def _by_severity(each: TrackedIssue) -> tuple[int, int]:
    return (1 if each.severity is None else -each.severity, each.number)


def _to_message(each: TrackedIssue) -> DisputedIssue:
    return DisputedIssue(
        number=each.number,
        round=each.round,
        critic_agent_id=each.critic,
        target_agent_id=each.target,
        issue=each.issue,
        answer=each.answer,
    )
