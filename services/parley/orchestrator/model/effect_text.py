"""What a debate changed, in plain sentences for people. Pure functions."""

from collections.abc import Callable, Iterator, Sequence
from typing import Final

from parley.orchestrator.model.times import describe_day
from parley.runtime.agent_names import join_words
from parley.runtime.work_words import probability_text
from parley.v1.effect_pb2 import (
    DECISION_COMPARISON_OTHER,
    DECISION_COMPARISON_SAME,
    DECISION_COMPARISON_TIE_BROKEN,
    DECISION_RELATION_OTHER_MATTER,
    QUESTION_KIND_OPEN,
    ChangedStand,
    DebateEffect,
    DecisionConfidence,
    DecisionRelation,
    RelatedDecision,
    TakenPosition,
    TakenUpIssue,
)

Name = Callable[[str], str]
"""Return what people call an agent."""
NameIssue = Callable[[ChangedStand, TakenUpIssue], str]
"""Return what people call an issue that an agent took up when it changed its stand."""

_NUMBERS: Final = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_MAX_QUOTE: Final = 90
_MAX_ISSUES: Final = 3


def effect_lines(
    effect: DebateEffect, calls: int, name: Name, name_issue: NameIssue | None = None, *, max_calls: int = 0
) -> list[str]:
    """Return what a debate added to its first drafts, a sentence or two an item.

    The positions come first, whole; after that they are quoted by how they begin. How the decision compares with the first
    drafts, and how sure it is, is part of the verdict, which stands above.

    Args:
        calls: Calls that it made.
        max_calls: Calls that all of its rounds would have taken at most; 0: all were held, or that is not known.
    """
    return [
        *_describe_positions(effect, name),
        *_describe_changes(effect, name, name_issue),
        *_describe_families(effect),
        _describe_calls(calls, max_calls),
    ]


def describe_votes(confidence: DecisionConfidence) -> str:
    """Return who votes for the decision, such as `two of three first drafts and the judge`; empty if it is not known."""
    if not confidence.votes_cast:
        return ""
    what = "first draft" if confidence.by_first_drafts else "final proposal"
    votes = count_of(confidence.votes, confidence.votes_cast, what)
    if not confidence.judge_agrees:
        return votes
    return f"{votes} and the judge" if confidence.votes else f"the judge and {votes}"


def describe_confidence(confidence: DecisionConfidence, cast: str = "") -> str:
    """Return how sure a decision is: with a probability if it has one, else by its votes; empty if nothing is known of it.

    `cast`: who voted for it, if a vote decided and not the positions that agents take.
    """
    if cast and not confidence.HasField("percent"):
        return f"For it: {cast}. {_describe_no_percentage(confidence)}"
    votes = describe_votes(confidence)
    if confidence.HasField("judge_agrees") and not confidence.judge_agrees:
        votes += ", but not the judge" if confidence.votes else ", nor the judge"
    if confidence.HasField("percent"):
        return f"The decision is right with a probability of {probability_text(confidence.percent)}; for it: {votes}."
    if not confidence.votes_cast:
        return f"No share of votes can be given: {confidence.unknown}." if confidence.unknown else ""
    return f"For it: {votes}. {_describe_no_percentage(confidence)}"


def _describe_no_percentage(confidence: DecisionConfidence) -> str:
    if confidence.unknown:
        return f"No probability is computed: {confidence.unknown}."
    is_open = confidence.question_kind == QUESTION_KIND_OPEN
    kind = "The question is open" if is_open else "It is not known of which kind the question is"
    return f"{kind}, so that no probability is computed."


def describe_comparison(effect: DebateEffect) -> str:
    """Return how the decision compares with the first vote, in a sentence; empty if that cannot be told."""
    if effect.comparison == DECISION_COMPARISON_SAME:
        return "The decision is that of the first drafts."
    if effect.comparison == DECISION_COMPARISON_TIE_BROKEN:
        return "The first drafts were tied, and the decision is one of their positions."
    if effect.comparison == DECISION_COMPARISON_OTHER:
        most = max(each.first_share for each in effect.positions)
        first = [each for each in effect.positions if each.first_share == most]
        if len(first) > 1:
            return f"The decision is none of the {_in_words(len(first))} positions that led among the first drafts."
        return f"The decision is not that of the first drafts: {_quote(first[0])} had the most of them."
    return ""


def describe_related(related: RelatedDecision) -> str:
    """Return how an answer stands to an earlier decision, such as `Reverses the decision of 3 March 2026 (ID): "…" Why: …`."""
    why = f" Why: {related.reason}" if related.reason else ""
    return (
        f"{name_of_relation(related).capitalize()} the decision of {describe_day(related.decided_at)}"
        f' ({related.debate_id}): "{related.decision}"{why}'
    )


def name_of_relation(related: RelatedDecision) -> str:
    """Return how an answer stands to an earlier decision, such as `reverses`: what comes before `the decision of …`."""
    if related.relation == DECISION_RELATION_OTHER_MATTER:
        return "is about another matter than"
    return DecisionRelation.Name(related.relation).removeprefix("DECISION_RELATION_").lower()


def count_of(count: int, total: int, what: str = "") -> str:
    """Return a part of a whole in words, such as `two of three drafts`, `all three drafts` or `the one draft`."""
    plural = f" {what}s" if what else ""
    if total == 1:
        return (f"the one {what}" if count else f"not the one {what}").strip()
    if count == total:
        return f"{'both' if total == 2 else f'all {_in_words(total)}'}{plural}"
    return f"{'none' if not count else _in_words(count)} of {_in_words(total)}{plural}"


def _in_words(number: int) -> str:
    return _NUMBERS[number] if number < len(_NUMBERS) else f"{number:,}"


def _describe_positions(effect: DebateEffect, name: Name) -> Iterator[str]:
    first, last = effect.first_vote_unknown, effect.last_vote_unknown
    if first and first == last:
        yield f"Who takes which position, at first and in the end, cannot be told: {first}."
        return
    if first:
        yield f"How the first drafts vote cannot be told: {first}."
    drafts = sum(len(each.first_agent_ids) for each in effect.positions)
    agents = sum(len(each.last_agent_ids) for each in effect.positions)
    ballots = sum(each.ballots for each in effect.positions)
    for each in effect.positions:
        parts = (
            []
            if first
            else [
                f"{count_of(len(each.first_agent_ids), drafts, 'first draft')}{_list(each.first_agent_ids, name)}"
            ]
        )
        parts += (
            []
            if last
            else [
                f"in the end {count_of(len(each.last_agent_ids), agents)}{_list(each.last_agent_ids, name)}"
            ]
        )
        parts += [f"{count_of(each.ballots, ballots)} in the last vote"] if ballots else []
        yield f"“{each.text}”: {'; '.join(parts)}."
    if last:
        yield f"Which positions the agents take in the end cannot be told: {last}."


def _list(agents: Sequence[str], name: Name) -> str:
    return f" ({', '.join(map(name, agents))})" if agents else ""


def _describe_changes(effect: DebateEffect, name: Name, name_issue: NameIssue | None) -> Iterator[str]:
    if (
        not effect.changes
        and effect.positions
        and not (effect.first_vote_unknown or effect.last_vote_unknown)
    ):
        yield "No agent changed its position."
    for each in effect.changes:
        left, took = (effect.positions[number - 1] for number in (each.from_position, each.to_position))
        when = f"In round {each.round}, " if each.round else "In a round that is not known, "
        issues = [
            name_issue(each, issue)
            if name_issue
            else f"issue {issue.number} of {name(issue.critic_agent_id)}"
            for issue in each.issues[:_MAX_ISSUES]
        ]
        more = len(each.issues) - len(issues)
        issues += [f"{_in_words(more)} more"] if more else []
        why = f", after taking up {join_words(issues)}" if issues else ""
        yield f"{when}{name(each.agent_id)} left {_quote(left)} for {_quote(took)}{why}."


def _quote(position: TakenPosition) -> str:
    text = position.text.rstrip(".")
    return f"“{text}”" if len(text) <= _MAX_QUOTE else f"“{text[:_MAX_QUOTE].rsplit(' ', 1)[0]} …”"


def _describe_families(effect: DebateEffect) -> Iterator[str]:
    agents, judge = effect.agent_families, effect.judge_family
    if list(agents) == [judge]:
        yield f"All models, the judge's too, are of one family ({judge}): they err alike."
    elif agents:
        of_judge = f", the judge's of {judge}" if judge else ""
        one = " alone" if len(agents) == 1 else ""
        yield f"The agents' models are of {join_words(agents)}{one}{of_judge}."


def _describe_calls(calls: int, max_calls: int) -> str:
    saved = max_calls - calls
    fewer = f", up to {_in_words(saved)} fewer than with all rounds" if saved > 0 else ""
    return f"It took {_in_words(calls)} calls{fewer}."
